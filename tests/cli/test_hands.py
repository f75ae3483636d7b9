"""A run in one process and hands on it from outside: Ctrl-C, SIGKILL, a second holder, a message."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.agents import heard, let_go
from tests.cli.program import around, command, run, running

pytestmark = pytest.mark.slow
SLOW = ("run", "agent.py:slow", "Wait.", "--run-id", "slow1", "--db", "own.db")


def rows(folder: Path, name: str = "slow1") -> list[dict[str, Any]]:
    return run(folder, "show", name, "--json", "--db", "own.db").lines


def kinds(folder: Path, name: str = "slow1") -> list[str]:
    return [row["kind"] for row in rows(folder, name)]


def test_ctrl_c_once_rests_at_a_safe_boundary(shop: Path) -> None:
    with running(shop, *SLOW, "--json") as process:
        assert heard(shop) == "in the middle"
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        told = next(line for line in process.stderr if "Stopping" in line)
        assert "at once" in told
        let_go(shop)
        out, err = process.communicate()
    assert process.returncode == 4
    assert '"state":"paused","turns":1,"actions":1,"cut_off":0' in out
    assert err.splitlines()[-1] == "Go on with: shiftbook resume slow1 --db own.db"
    assert kinds(shop)[-2:] == ["ActionFinished", "RunRested"]
    again = run(shop, "resume", "slow1", "--db", "own.db")
    assert (again.code, again.out) == (0, "Done.\n")
    assert (shop / "log").read_text() == "slow1-1.1 1\n"


def test_ctrl_c_twice_cuts_off_and_can_be_resumed(shop: Path) -> None:
    with running(shop, *SLOW, "--json") as process:
        assert heard(shop) == "in the middle"
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        next(line for line in process.stderr if "Stopping" in line)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 4
    assert '"run":"slow1"' in out
    assert "run slow1 was cut off" in err
    assert err.splitlines()[-1] == "Go on with: shiftbook resume slow1 --db own.db"
    assert kinds(shop)[-1] == "ActionStarted"
    with running(shop, "resume", "slow1", "--db", "own.db") as process:
        assert heard(shop) == "in the middle"
        let_go(shop)
        assert process.wait() == 0
    assert (shop / "log").read_text() == "slow1-1.1 1\nslow1-1.1 2\n"


def test_a6_call_and_answer_are_beside_each_other_over_two_processes(shop: Path) -> None:
    with running(shop, *SLOW) as process:
        assert heard(shop) == "in the middle"
        process.kill()
        assert process.wait() == -signal.SIGKILL
    with running(shop, "resume", "slow", "--db", "own.db", "--json") as process:
        assert heard(shop) == "in the middle"
        let_go(shop, "once")
        out, _ = process.communicate()
    assert '"cut_off":1,"repeated":0' in out
    started = [(row["key"], row.get("attempt", 1)) for row in rows(shop) if row["kind"] == "ActionStarted"]
    assert started == [("slow1-1.1", 1), ("slow1-1.1", 2)]
    assert kinds(shop).count("ActionFinished") == 1
    messages = run(shop, "prompt", "slow1", "--turn", "2", "--json", "--db", "own.db").json["messages"]
    calls = [part["call"] for message in messages for part in message["parts"] if "call" in part]
    answers = [part["result"] for message in messages for part in message["parts"] if "result" in part]
    assert calls == answers == ["1.1"]
    assert run(shop, "verify", "slow1", "--db", "own.db").code == 0


def test_c3_a_message_from_another_process_comes_in_at_the_next_boundary(shop: Path) -> None:
    with running(shop, *SLOW) as process:
        assert heard(shop) == "in the middle"
        first = run(shop, "send", "slow1", "One.", "--db", "own.db")
        assert (first.code, "next boundary" in first.err) == (0, True)
        assert run(shop, "send", "slow1", "Two.", "--db", "own.db").code == 0
        assert run(shop, "send", "slow1", "Be short.", "--rule", "tone", "--db", "own.db").code == 0
        assert run(shop, "send", "slow1", "--withdraw", "tone", "--db", "own.db").code == 0
        let_go(shop)
        process.communicate()
    assert process.returncode == 0
    told = [
        (row["kind"], row.get("content"))
        for row in rows(shop)
        if row["kind"] in ("PersonSaid", "ActionFinished")
    ]
    assert told == [
        ("PersonSaid", "Wait."),
        ("ActionFinished", "through"),
        ("PersonSaid", "One."),
        ("PersonSaid", "Two."),
    ]
    assert kinds(shop).index("ModelAsked") < kinds(shop).index("ActionFinished")
    rules = [
        (row["author"], row["text"], row.get("withdrawn")) for row in rows(shop) if row["kind"] == "RuleSet"
    ]
    assert [rule[:2] for rule in rules] == [("person", "Be short."), ("person", "")]
    assert rules[1][2] is True


def test_a_run_at_work_is_held_and_can_be_read(shop: Path) -> None:
    with running(shop, *SLOW) as process:
        assert heard(shop) == "in the middle"
        held = run(shop, "resume", "slow1", "--db", "own.db")
        assert (held.code, held.out) == (7, "")
        assert f"held by process {process.pid} on " in held.err
        before = kinds(shop)
        assert before[-1] == "ActionStarted"
        assert run(shop, "verify", "slow1", "--db", "own.db").code == 0
        with running(shop, "tail", "slow1", "--db", "own.db", "--until-rest", "--json") as tail:
            let_go(shop)
            followed, _ = tail.communicate()
        assert process.wait() == 0
    assert followed.splitlines()[-1].startswith('{"position":')
    assert '"kind":"RunRested"' in followed.splitlines()[-1]


def test_l3_a_reply_that_was_cut_off_does_not_look_finished(shop: Path) -> None:
    with running(shop, "run", "agent.py:half", "Hello.", "--run-id", "half1", "--db", "own.db") as process:
        assert heard(shop) == "half said"
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 4
    cut = [row for row in rows(shop, "half1") if row["kind"] == "ModelInterrupted"]
    assert [row["parts"] for row in cut] == ["I was just say"] or cut[0]["parts"] == [
        {"text": "I was just say"}
    ]
    assert "ModelAnswered" not in kinds(shop, "half1")
    assert (
        "cut off (interrupted by a person): I was just say"
        in run(shop, "show", "half1", "--db", "own.db").out
    )


def test_sigterm_is_a_ctrl_c(shop: Path) -> None:
    with running(shop, *SLOW) as process:
        assert heard(shop) == "in the middle"
        process.terminate()
        assert process.stderr is not None
        next(line for line in process.stderr if "Stopping" in line)
        let_go(shop)
        process.communicate()
    assert process.returncode == 4
    assert kinds(shop)[-1] == "RunRested"


def test_a_reader_that_goes_away_does_not_stop_the_run(shop: Path) -> None:
    with running(shop, *SLOW) as process:
        assert heard(shop) == "in the middle"
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stderr.close()
        let_go(shop)
        assert process.wait() == 0
    assert kinds(shop)[-1] == "RunRested"


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["show", "--last", "--db", "own.db"],
        ["runs", "--json", "--db", "own.db"],
        ["prompt", "--last", "--db", "own.db"],
        ["verify", "--last", "--json", "--db", "own.db"],
        ["export", "--last", "--db", "own.db"],
    ],
    ids=lambda words: words[0],
)
def test_a_pipe_that_nobody_reads_ends_it_quietly(shop: Path, words: list[str]) -> None:
    run(shop, "run", "agent.py:shop", "Tea?", "--db", "own.db")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        ran = subprocess.run(
            command(*words),
            check=False,
            cwd=shop,
            env=around({}),
            stdout=gone,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert ran.returncode == 141, ran.stderr
    assert "Traceback" not in ran.stderr
    assert "Exception ignored" not in ran.stderr
    assert "Broken pipe" not in ran.stderr
