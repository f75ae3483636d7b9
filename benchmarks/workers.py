"""Workers on PostgreSQL: runs a second, statements a run, what a look costs while many wait, a claim.

    python -m benchmarks.workers [--runs N] [--waiting N] [--finished N] [--seconds N]

Runs a second are measured against the same server in the same minute, made for it and with fsync on:
bare inserts of one kilobyte a commit over as many connections as there are workers, and the queue's
own limit, which is the same workers doing nothing with what they take. Looks and claims are measured
on a server without fsync, since they are about what is read. Statements and writing transactions are counted
by the server (its log, its transaction numbers): they are the same on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg

from benchmarks.workers_child import CONCURRENCY, TURNS, bench_agent
from shiftbook.clock import this_process
from shiftbook.journal.open import open_store
from shiftbook.workers import Queue, Settings, Worker, open_queue
from shiftbook.workers.entering import enter
from shiftbook.workers.jobs import Beat
from shiftbook.workers.shares import Gate, Shares
from tests import postgres

COUNTS = (1, 2, 4, 8)
CLAIMS = 200
HERE = "-c search_path=shiftbook_queue"
_APP = re.compile(r"^shiftbook( queue)?@LOG:  (?:statement|execute [^:]*): (.*(?:\n\t.*)*)", re.MULTILINE)


def main() -> None:
    """Measure and print."""
    ask = argparse.ArgumentParser(prog="python -m benchmarks.workers")
    ask.add_argument("--runs", type=int, default=120)
    ask.add_argument("--waiting", type=int, default=100_000)
    ask.add_argument("--finished", type=int, default=1_000_000)
    ask.add_argument("--seconds", type=int, default=20)
    given = ask.parse_args()
    with postgres.server("log_line_prefix=%a@", durable=True) as server:
        throughput(server, given.runs)
    # Looks and claims are about what is read: without the disk's moods.
    with postgres.server("log_line_prefix=%a@") as server:
        statements(server)
        idle(server, given.waiting, given.seconds)
        claims(server, given.finished)


# --- runs a second ---------------------------------------------------------------------------------------


def throughput(server: postgres.Server, runs: int) -> None:
    """Runs and entries a second by workers, beside the two limits."""
    print(f"{runs} runs of {TURNS} turns and a reply, {CONCURRENCY} at once in each worker")
    print("workers | bare commits/s | queue alone, wakes/s | runs/s | entries/s | of bare | CPU ms a run")
    for workers in COUNTS:
        bare = bare_commits(server, workers)
        wakes, _, took, _ = worked(server, "wakes", workers, runs * 4)
        alone = wakes / took
        taken, entries, took, cpu_s = worked(server, "runs", workers, runs)
        assert taken == runs, f"{taken} of {runs} runs came to rest"
        print(
            f"{workers:7} | {bare:14,.0f} | {alone:20,.0f} | {taken / took:6.1f} | {entries / took:9,.0f} | "
            f"{entries / took / bare:7.2f} | {cpu_s / taken * 1000:10.0f}"
        )


def bare_commits(server: postgres.Server, connections: int, seconds: float = 2) -> float:
    """Commits a second of one row of a kilobyte, over so many connections at once."""
    address = server.create()
    server.sql(address, "CREATE TABLE bare (id bigserial PRIMARY KEY, content text)")
    counts: list[int] = []

    def insert() -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            done, end = 0, time.perf_counter() + seconds
            while time.perf_counter() < end:
                connection.execute("INSERT INTO bare (content) VALUES (%s)", ("x" * 1024,), prepare=True)
                done += 1
            counts.append(done)

    threads = [threading.Thread(target=insert) for _ in range(connections)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    server.drop(address)
    return sum(counts) / seconds


def worked(server: postgres.Server, what: str, workers: int, runs: int) -> tuple[int, int, float, float]:
    """Worker processes work a queue off: what they took, the entries written, the seconds, their CPU."""
    address = server.create()
    asyncio.run(filled(address, what, runs))
    words = [sys.executable, "-m", "benchmarks.workers_child", address, what]
    pipe = subprocess.PIPE
    crew = [subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) for _ in range(workers)]
    try:
        for each in crew:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        for each in crew:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        told = [[float(word) for word in each.communicate()[0].split()] for each in crew]
    finally:
        for each in crew:
            each.kill()
    server.drop(address)
    # The clock is the machine's: from the first wake taken to the last that ended, in whatever process.
    took = max(each[3] for each in told) - min(each[2] for each in told if each[0])
    taken, entries, cpu_s = (sum(each[place] for each in told) for place in (0, 1, 4))
    return int(taken), int(entries), took, cpu_s


async def filled(address: str, what: str, runs: int) -> None:
    """A queue with so many runs, or so many wakes that nobody looks into."""
    store = await open_store(address)
    queue = await open_queue(store, create=True)
    assert queue is not None
    if what == "runs":
        agent = bench_agent()
        for number in range(runs):
            await enter(queue, agent, "Begin.", run=f"run{number}")
    else:
        with psycopg.connect(address, autocommit=True, options=HERE) as connection:
            connection.execute(_WAKES, (runs,))
    await store.close()


_WAKES = """
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)
SELECT 'bench:agent', 'shiftbook.wake', 'wake' || n, 'wake' || n, jsonb_build_object('run', 'wake' || n)
FROM generate_series(1, %s) AS n
"""

# --- statements a run ------------------------------------------------------------------------------------


def statements(server: postgres.Server, runs: int = 40) -> None:
    """What one worker asks of the database for each run, as the server counts it."""
    address = server.create()
    asyncio.run(filled(address, "runs", runs))
    with psycopg.connect(address, autocommit=True) as connection:
        before = transactions(connection)
        with logged(server) as asked:
            taken, entries = asyncio.run(worked_off(address))
        after = transactions(connection)
    assert taken == runs, f"{taken} of {runs} runs came to rest"
    of_queue = sum(times for what, times in asked.items() if what.startswith("procrastinate: "))
    print(f"\na run of {TURNS} turns and a reply ({entries / runs:.0f} entries), one worker, {runs} runs:")
    print(f"  {sum(asked.values()) / runs:.1f} statements, {of_queue / runs:.1f} of them procrastinate's")
    writing = (after - before - 1) / runs
    print(f"  {writing:.1f} transactions that write, {2 * TURNS + 2} of them commits of the run")
    for what, times in asked.most_common():
        if times >= runs / 2:
            print(f"  {times / runs:5.1f} a run  {what}")
    server.drop(address)


def transactions(connection: psycopg.Connection[Any]) -> int:
    """The number of the transaction that asks: those that write are counted, others have no number."""
    found = connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()
    assert found is not None
    return int(found[0])


async def worked_off(address: str) -> tuple[int, int]:
    """One worker until nothing waits: runs and entries."""
    store = await open_store(address)
    queue = await open_queue(store)
    assert queue is not None
    agent = bench_agent()
    settings = Settings(concurrency=CONCURRENCY, beat=Beat(upkeep_ms=59_000))
    worker = Worker(queue, settings, load=lambda reference: agent)
    await worker.work(once=True)
    await store.close()
    return worker.counts.taken, worker.counts.entries


@contextlib.contextmanager
def logged(server: postgres.Server) -> Iterator[Counter[str]]:
    """Statements that the server is asked within, by what they begin with; filled at the end."""
    assert server.data is not None
    log = server.data.parent / "log"
    asked: Counter[str] = Counter()
    server.sql(server.address, "ALTER SYSTEM SET log_statement = 'all'", "SELECT pg_reload_conf()")
    start = log.stat().st_size
    try:
        yield asked
    finally:
        server.sql(server.address, "ALTER SYSTEM SET log_statement = 'none'", "SELECT pg_reload_conf()")
        text = log.read_text(errors="replace")[start:]
        for found in _APP.finditer(text):
            who = "procrastinate: " if found[1] else ""
            asked[who + " ".join(found[2].split())[:70]] += 1


# --- what waiting costs ----------------------------------------------------------------------------------


def idle(server: postgres.Server, waiting: int, seconds: int) -> None:
    """What an idle worker asks of a database in which many runs wait, and what each look costs."""
    address = server.create()
    asyncio.run(filled(address, "wakes", 0))
    looks = {0: look_ms(address)}
    with psycopg.connect(address, autocommit=True, options=HERE) as connection:
        connection.execute(
            "INSERT INTO queued_runs (run, queue, priority, due) SELECT 'run' || n, 'bench:agent', 0, "
            "CASE WHEN n %% 2 = 0 THEN now() + interval '1 day' END FROM generate_series(1, %s) AS n",
            (waiting,),
        )
        connection.execute("ANALYZE")
    looks[waiting] = look_ms(address)
    with logged(server) as statements_asked:
        asyncio.run(listened(address, seconds))
    asked: Counter[str] = Counter()
    for statement, times in statements_asked.items():
        asked[_what(statement)] += times
    print(f"\n{waiting:,} runs wait, half of them for a moment tomorrow; an idle worker for {seconds} s:")
    for what, times in asked.most_common():
        print(f"  {times / seconds:5.2f} a second  {what}")
    for runs, (due, fetch) in looks.items():
        print(
            f"  {runs:>7,} waiting: a look at what is due {due:.3f} ms, at the queue {fetch:.3f} ms (medians)"
        )
    server.drop(address)


def _what(statement: str) -> str:
    for mark, name in (
        ("due <= ", "look at what is due"),
        ("procrastinate: SELECT id, status, task_name", "look at the queue"),
        ("heartbeat", "beat of the queue"),
        ("INTO shiftbook_queue.workers", "beat of the worker"),
        ("shiftbook_queue.upkeep", "turn of the upkeep"),
    ):
        if mark in statement:
            return name
    return (
        "the upkeep, and the worker's beginning and end" if statement.strip() else "is the connection alive?"
    )


def look_ms(address: str, times: int = 300) -> tuple[float, float]:
    """Median milliseconds of the two looks."""
    with psycopg.connect(address, autocommit=True, options=HERE) as connection:
        statements = (
            "SELECT 1 FROM queued_runs WHERE due <= now() LIMIT 1",
            "SELECT id FROM procrastinate_fetch_job_v2(NULL, NULL)",
        )
        due, fetch = (median_ms(connection, each, times) for each in statements)
    return due, fetch


def median_ms(connection: psycopg.Connection[Any], statement: str, times: int) -> float:
    """The median of so many executions."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        connection.execute(statement, prepare=True).fetchall()
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000


async def listened(address: str, seconds: int) -> None:
    """One worker with nothing to do."""
    store = await open_store(address)
    queue = await open_queue(store)
    assert queue is not None
    worker = Worker(queue, Settings(beat=Beat(poll_ms=1_000)))
    task = asyncio.create_task(worker.work())
    await worker.clock.sleep_ms(seconds * 1000)
    worker.stop()
    await task
    await store.close()


# --- what a claim costs ----------------------------------------------------------------------------------


def claims(server: postgres.Server, finished: int) -> None:
    """The cost of a claim in an empty journal, and in one with many finished runs."""
    address = server.create()
    before = asyncio.run(claimed(address, "early"))
    began = time.perf_counter()
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in _FINISHED:
            connection.execute(statement, (finished,))
        connection.execute("VACUUM ANALYZE")
    made_s = time.perf_counter() - began
    after = asyncio.run(claimed(address, "late"))
    print(f"\na claim (fetch, take, both limits counted, lease, given back), median of {CLAIMS}:")
    print(f"  empty journal {before:.2f} ms, beside {finished:,} finished runs {after:.2f} ms")
    print(f"  (these were made in {made_s:.0f} s)")
    print(f"  ratio {after / before:.2f}")
    server.drop(address)


_FINISHED = (
    """
    INSERT INTO shiftbook.leases (run, epoch, until_ms, mail, checksum)
    SELECT 'old' || n, 1, 0, 0, '\\x00' FROM generate_series(1, %s) AS n
    """,
    """
    INSERT INTO shiftbook.runs (number, agent, state, ended, opened_ms)
    SELECT number, 'bench:agent', 'finished', false, 0 FROM shiftbook.leases WHERE run LIKE 'old%%'
    ORDER BY number LIMIT %s
    """,
    """
    INSERT INTO shiftbook.tags (run, place, tag)
    SELECT number, 0, 'tenant:bench' FROM shiftbook.runs WHERE opened_ms = 0 ORDER BY number LIMIT %s
    """,
    """
    INSERT INTO shiftbook_queue.queued_runs (run, queue, priority)
    SELECT 'old' || n, 'bench:agent', 0 FROM generate_series(1, %s) AS n
    """,
)


async def claimed(address: str, name: str) -> float:
    """Median milliseconds of a claim."""
    store = await open_store(address)
    queue = await open_queue(store, create=True)
    assert isinstance(queue, Queue)
    agent = bench_agent()
    gate = Gate(queue.store, Shares(per_agent=1_000, per_tenant=1_000))
    for number in range(CLAIMS):
        await enter(queue, agent, "Begin.", run=f"{name}{number}", tags=["tenant:bench"])
    took = []
    with psycopg.connect(address, autocommit=True, options=HERE) as connection:
        for _ in range(CLAIMS):
            began = time.perf_counter()
            found = connection.execute("SELECT lock FROM procrastinate_fetch_job_v2(NULL, NULL)").fetchone()
            assert found is not None
            wake = await queue.take(found[0], "bench")
            assert wake is not None
            async with gate.claim(wake):
                lease = await store.leases.take(found[0], this_process(), 30_000)
            took.append(time.perf_counter() - began)
            await store.leases.give_back(lease)
    await gate.close()
    await store.close()
    return statistics.median(took) * 1000


if __name__ == "__main__":
    main()
