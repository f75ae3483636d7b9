"""Workers from the command line: into the queue, out of it, who holds what, health and metrics."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from shiftbook.errors import BadInput
from shiftbook.workers import Settings, Worker
from shiftbook.workers.serving import parse_listen, serving
from tests.cli.agents import heard, let_go
from tests.cli.program import run, running
from tests.postgres import shared
from tests.workers.ground import PATIENCE_S, entered, fresh_database, queue_at, raw
from tests.workers.ground import shop as an_agent


@pytest.fixture
def db() -> Iterator[str]:
    """An empty PostgreSQL database."""
    with fresh_database() as address:
        yield address


def test_a_run_goes_into_the_queue_and_a_worker_brings_it_to_its_rest(shop: Path, db: str) -> None:
    begun = run(shop, "run", "agent.py:shop", "How many?", "--queue", "--run-id", "q1", "--db", db)
    assert (begun.code, begun.out) == (0, "q1\n")
    assert "`shiftbook worker` starts one" in begun.err
    other = run(shop, "run", "agent.py:shop", "Hm?", "--queue", "--json", "--priority", "3", "--db", db)
    assert other.json["queued"] is True
    before = run(shop, "workers", "--json", "--db", db).json
    assert before["waiting"] == {"ready": 2, "at_work": 0, "later": 0, "parked": 0}
    worked = run(shop, "worker", "--once", "--db", db)
    assert worked.code == 0, worked.err
    assert "2 runs taken: 2 at rest, 0 handed over, 0 cut off, 0 put off by a fault." in worked.err
    assert {row["state"] for row in run(shop, "runs", "--json", "--db", db).json} == {"finished"}
    sent = run(shop, "send", "q1", "And now?", "--db", db)
    assert "a worker takes it in" in sent.err
    assert "1 run taken: 1 at rest" in run(shop, "worker", "--once", "--db", db).err
    checked = run(shop, "verify", "q1", "--json", "--db", db)
    assert (checked.code, checked.json["ok"]) == (0, True)
    after = run(shop, "workers", "--json", "--db", db).json
    assert (after["workers"], after["held"], after["put_off"]) == ([], [], [])
    assert after["waiting"] == {"ready": 0, "at_work": 0, "later": 0, "parked": 0}


def test_a_worker_for_one_agent_leaves_the_others_where_they_are(shop: Path, db: str) -> None:
    for name in ("shop", "slow"):
        run(shop, "run", f"agent.py:{name}", "Go.", "--queue", "--run-id", name, "--db", db)
    told = run(shop, "worker", "--once", "--agent", "agent.py:shop", "--db", db)
    assert "1 run taken: 1 at rest" in told.err
    assert run(shop, "workers", "--json", "--db", db).json["waiting"]["ready"] == 1


@pytest.mark.slow
def test_sigterm_hands_a_run_over_and_the_board_tells_who_has_it(shop: Path, db: str) -> None:
    run(shop, "run", "agent.py:slow", "Wait.", "--queue", "--run-id", "s1", "--db", db)
    with running(shop, "worker", "--db", db) as process:
        assert heard(shop) == "in the middle"
        board = run(shop, "workers", "--json", "--db", db).json
        (held,) = board["held"]
        assert (held["run"], held["last"], held["state"]) == ("s1", "ActionStarted", "running")
        assert held["worker"] == board["workers"][0]["worker"]
        assert held["pid"] == process.pid
        assert held["since"] is not None
        told = run(shop, "workers", "--db", db)
        assert "s1" in told.out
        assert "1 run at work" in told.err
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        next(line for line in process.stderr if "handed over" in line)
        let_go(shop)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert "1 run taken: 0 at rest, 1 handed over" in err
    kinds = [row["kind"] for row in run(shop, "show", "s1", "--json", "--db", db).lines]
    assert kinds[-1] == "ActionFinished"
    assert "RunRested" not in kinds
    # It became due at once: a worker finds it with its first look.
    with raw(db) as connection:
        due = connection.execute("SELECT due <= clock_timestamp(), why FROM queued_runs").fetchall()
    assert due == [(True, "handed over")]
    resumed = run(shop, "resume", "s1", "--db", db)
    assert (resumed.code, resumed.out) == (0, "Done.\n")
    assert (shop / "log").read_text() == "s1-1.1 1\n"


def test_the_board_tells_a_worker_that_was_killed_from_one_that_beats_and_why_a_run_was_put_off(
    shop: Path, db: str
) -> None:
    for number, name in enumerate(("gone", "parked")):
        run(
            shop,
            "run",
            "agent.py:shop",
            "Go.",
            "--queue",
            "--run-id",
            name,
            "--priority",
            f"{number}",
            "--db",
            db,
        )
    (shop / "agent.py").rename(shop / "other.py")
    assert "2 put off by a fault" in run(shop, "worker", "--once", "--db", db).err
    with raw(db) as connection:
        connection.execute(
            "INSERT INTO workers (name, host, pid, concurrency, agents, began, seen) VALUES "
            "('here:1', 'here', 1, 4, '{}', now() - interval '3 h', now() + interval '1 h'), "
            "('there:2', 'there', 2, 4, '{}', now() - interval '4 d', now() - interval '5 min')"
        )
        connection.execute("UPDATE queued_runs SET share = 'agent x', since = now() WHERE run = 'parked'")
    board = run(shop, "workers", "--json", "--db", db).json
    assert [(each["worker"], each["beats"]) for each in board["workers"]] == [
        ("here:1", True),
        ("there:2", False),
    ]
    assert board["waiting"] == {"ready": 0, "at_work": 0, "later": 1, "parked": 1}
    told = run(shop, "workers", "--db", db)
    lines = told.out.splitlines()
    assert "0 s ago  " in lines[1]
    assert "5 min ago: does not beat" in lines[2]
    assert "4 d" in lines[2]
    assert "left to other workers" in " ".join(told.out.split())
    assert "1 due later, 1 waiting for a share, 1 worker and 1 not seen for 20 s or longer." in told.err


@pytest.mark.slow
def test_a_worker_without_its_database_says_so_in_sentences_and_ends_when_told(shop: Path, db: str) -> None:
    name = urlsplit(db).path[1:]
    lines: list[str] = []
    with running(shop, "worker", "--db", db) as process:
        assert process.stderr is not None
        lines.append(next(process.stderr))
        shared().sql(
            shared().address,
            f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
        )
        while "; again in" not in lines[-1]:
            lines.append(next(process.stderr))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)
    told = "".join(lines) + err
    assert process.returncode == 0, told
    assert "Traceback" not in told
    assert "procrastinate" not in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "agent.py:shop", "Hi", "--queue", "--db", "own.db"), "only there can runs wait in a queue"),
        (("worker", "--db", "own.db"), "only there can runs wait in a queue"),
        (("run", "agent.py:shop", "Go.", "--queue", "--db", "own.db"), "only there can runs wait in a queue"),
        (("worker", "--db", "own.db", "--concurrency", "0"), "give at least 1"),
        (("worker", "--db", "own.db", "--per-tenant", "-1"), "give at least 1"),
        (("worker", "--db", "own.db", "--listen", "http"), "give PORT, or HOST:PORT"),
        (("worker", "--db", "postgresql://u:secret@127.0.0.1:1/x"), "nothing listens there"),
    ],
)
def test_bad_input_is_one_sentence(shop: Path, words: tuple[str, ...], told: str) -> None:
    refused = run(shop, *words)
    assert refused.code == 2
    assert told in refused.err
    assert "secret" not in refused.err + refused.out
    assert refused.err.startswith("shiftbook: ")
    assert len(refused.err.splitlines()) == 1
    assert not (shop / "own.db").exists()


def test_a_worker_whose_agent_cannot_be_had_does_not_begin(shop: Path, db: str) -> None:
    refused = run(shop, "worker", "--agent", "agent.py:nobody", "--db", db)
    assert refused.code == 3
    assert "no 'nobody'" in refused.err


def test_the_board_reads_a_database_that_may_not_be_written(shop: Path, db: str) -> None:
    run(shop, "run", "agent.py:shop", "Go.", "--queue", "--run-id", "r1", "--db", db)
    with raw(db) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert run(shop, "workers", "--json", "--db", db).json["waiting"]["ready"] == 1
    assert [row["run"] for row in run(shop, "runs", "--json", "--db", db).json] == ["r1"]
    refused = run(shop, "run", "agent.py:shop", "Go.", "--queue", "--db", db)
    assert refused.code == 2
    assert "read-only" in refused.err


def test_a_reference_is_the_same_however_its_path_is_written(shop: Path, db: str) -> None:
    run(shop, "run", "./agent.py:shop", "Go.", "--queue", "--db", db)
    run(shop, "run", ".//agent.py:shop?cap=9000", "Go.", "--queue", "--db", db)
    told = run(shop, "worker", "--once", "--agent", "./x/../agent.py:shop", "--db", db)
    assert "2 runs taken: 2 at rest" in told.err


def test_the_board_asks_for_postgres(shop: Path) -> None:
    run(shop, "run", "agent.py:shop", "Go.", "--db", "own.db")
    refused = run(shop, "workers", "--db", "own.db")
    assert refused.code == 2
    assert "only there are workers" in refused.err


async def asked(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    """One request to a worker."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
    answer = (await asyncio.wait_for(reader.read(), PATIENCE_S)).decode()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body


def figures(text: str) -> dict[str, float]:
    """Prometheus text as values by name; every line is a comment or a value."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_health_and_metrics_follow_the_worker(db: str) -> None:
    async def main() -> None:
        async with queue_at(db) as queue:
            agent = an_agent()
            for run_id in ("one", "two"):
                await entered(queue, agent, run_id)
            worker = Worker(queue, Settings(), load=lambda reference: agent)
            async with serving(worker, queue.store, "127.0.0.1", 0) as port:
                assert await asked(port, "/health") == (503, "no queue, or stopping\n")
                work = asyncio.create_task(worker.work())
                while worker.counts.rested < 2:
                    await worker.clock.sleep_ms(5)
                assert await asked(port, "/health") == (200, "ok\n")
                code, text = await asked(port, "/metrics")
                told: dict[str, Any] = figures(text)
                assert code == 200
                assert told["shiftbook_worker_taken_total"] == 2
                assert told["shiftbook_worker_rested_total"] == 2
                assert told["shiftbook_worker_entries_total"] > 10
                assert told['shiftbook_queue_wakes{state="ready"}'] == 0
                assert (await asked(port, "/"))[0] == 404
                assert (await asked(port, "/metrics", "POST"))[0] == 405
                worker.stop()
                assert (await asked(port, "/health"))[0] == 503
                await asyncio.wait_for(work, PATIENCE_S)

    asyncio.run(main())


def test_an_address_to_listen_on_is_read_or_refused() -> None:
    assert parse_listen("9100") == ("127.0.0.1", 9100)
    assert parse_listen("0.0.0.0:9100") == ("0.0.0.0", 9100)
    assert parse_listen("[::1]:0") == ("::1", 0)
    for text in ("", "x", "here:", ":70000", "-1"):
        with pytest.raises(BadInput):
            parse_listen(text)


@pytest.mark.parametrize("package", ["psycopg", "procrastinate"])
@pytest.mark.parametrize(
    "words", [("worker",), ("run", "agent.py:shop", "Hi", "--queue")], ids=lambda each: each[0]
)
def test_without_its_packages_a_worker_names_the_extra_that_has_them(
    package: str, words: tuple[str, ...], shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    ran = run(shop, *words, "--db", "postgresql://jo:s3cret@h/db")
    assert ran.code == 2
    assert f"needs the package {package}" in ran.err
    assert "pip install 'shiftbook[workers]'" in ran.err
    assert "s3cret" not in ran.err


def test_the_compose_file_builds_what_is_there_and_calls_what_the_program_has(tmp_path: Path) -> None:
    """As far as can be told without a container engine."""
    yaml = import_module("yaml")
    top = Path(__file__).parents[2]
    services = yaml.safe_load((top / "docker-compose.yml").read_text())["services"]
    assert set(services) == {"database", "worker"}
    worker = services["worker"]
    assert (worker["build"], worker["depends_on"]["database"]["condition"]) == (".", "service_healthy")
    lines = (top / "Dockerfile").read_text().splitlines()
    copied = [each for line in lines if line.startswith("COPY") for each in line.split()[1:-1]]
    kept = (top / ".dockerignore").read_text().splitlines()
    assert copied
    for each in copied:
        assert (top / each).exists()
        assert f"!{each}" in kept, "the engine is not sent it"
    assert int(worker["stop_grace_period"].rstrip("s")) * 1000 > Settings().grace_ms
    assert ":9100/health" in worker["healthcheck"]["test"][-1]
    assert worker["command"][-2:] == ["--listen", "0.0.0.0:9100"]
    (entry,) = [line for line in lines if line.startswith("ENTRYPOINT")]
    assert json.loads(entry.removeprefix("ENTRYPOINT ")) == ["shiftbook"]
    help_text = run(tmp_path, *worker["command"][:1], "--help").out
    for word in worker["command"][1:]:
        assert not word.startswith("--") or word in help_text
