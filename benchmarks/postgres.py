"""What a turn costs on PostgreSQL, against the same server's own insert limit in the same run.

    python -m benchmarks.postgres [--json]

`turn`: one run, blocks of ten turns between bursts of the limit: one row of one kilobyte a commit, three
commits a turn, by a plain synchronous connection. `many`: fifty runs at once through one store, against as
many connections as it has, each of them inserting as fast as it can. The server flushes to the disk. The
ratios are the figures; milliseconds belong to the machine of the day.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import threading
import time
from typing import Any

import psycopg

from benchmarks.workload import TURNS_PER_BLOCK, message, workload_agent
from benchmarks.yardstick import COMMITS_PER_TURN
from shiftbook import open_store, start
from shiftbook.journal.postgres_connections import CONNECTIONS_MAX
from tests import postgres

BLOCKS = 60
WARM_BLOCKS = 10
RUNS = 50
BLOCKS_OF_EACH = 4
Figures = dict[str, Any]


class Yardstick:
    """One connection that inserts."""

    def __init__(self, address: str) -> None:
        self._connection = psycopg.connect(address, autocommit=True)
        self._connection.execute("CREATE TABLE IF NOT EXISTS bare (a bigserial PRIMARY KEY, b bytea)")
        self._row = b"x" * 1024

    def burst(self, turns: int) -> tuple[float, float]:
        """Commit as many rows as that many turns take; wall and CPU seconds of this process."""
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(turns * COMMITS_PER_TURN):
            self._connection.execute("INSERT INTO bare (b) VALUES (%s)", (self._row,))
        return time.perf_counter() - wall, time.process_time() - cpu

    def close(self) -> None:
        """Let go of the server."""
        self._connection.close()


async def turn(address: str) -> Figures:
    """A turn of one run; medians over blocks, after a warm-up."""
    yard = Yardstick(address)
    store = await open_store(address)
    run = await start(store, workload_agent("window", 40_000))
    ours: list[tuple[float, float]] = []
    bare: list[tuple[float, float]] = []
    for block in range(BLOCKS):
        wall, cpu = time.perf_counter(), time.process_time()
        await run.say(message(block))
        await run.finish()
        ours.append((time.perf_counter() - wall, time.process_time() - cpu))
        bare.append(yard.burst(TURNS_PER_BLOCK))
    await run.close()
    await store.close()
    yard.close()
    wall_ms, cpu_ms = (_median(ours, at) for at in (0, 1))
    bare_wall_ms, bare_cpu_ms = (_median(bare, at) for at in (0, 1))
    return {
        "wall_ms": round(wall_ms, 3),
        "cpu_ms": round(cpu_ms, 3),
        "bare3_wall_ms": round(bare_wall_ms, 3),
        "bare3_cpu_ms": round(bare_cpu_ms, 3),
        "wall_x": round(wall_ms / bare_wall_ms, 2),
        "cpu_x": round(cpu_ms / bare_cpu_ms, 2),
    }


def _median(blocks: list[tuple[float, float]], at: int) -> float:
    return statistics.median(block[at] for block in blocks[WARM_BLOCKS:]) / TURNS_PER_BLOCK * 1e3


async def many(address: str) -> Figures:
    """Turns a second of fifty runs in one process, against the inserts of as many connections."""
    store = await open_store(address)
    handles = [await start(store, workload_agent("window", 40_000)) for _ in range(RUNS)]

    async def work(number: int) -> None:
        for block in range(BLOCKS_OF_EACH):
            await handles[number].say(message(block))
            await handles[number].finish()

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work(number) for number in range(RUNS)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    for handle in handles:
        await handle.close()
    await store.close()
    count = RUNS * BLOCKS_OF_EACH * TURNS_PER_BLOCK
    limit = _limit(address, count)
    return {
        "runs": RUNS,
        "turns": count,
        "turns_per_s": round(count / wall),
        "cpu_ms": round(cpu / count * 1e3, 3),
        "limit_turns_per_s": round(limit),
        "wall_x": round(limit * wall / count, 2),
    }


def _limit(address: str, turns: int) -> float:
    """Turns' worth of bare commits a second over `CONNECTIONS_MAX` connections at once."""
    yards = [Yardstick(address) for _ in range(CONNECTIONS_MAX)]
    threads = [threading.Thread(target=yard.burst, args=(turns // len(yards),)) for yard in yards]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    for yard in yards:
        yard.close()
    return turns / took


def main() -> int:
    """Run both measures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.postgres", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    missing = postgres.why_not()
    if missing:
        print(missing, file=sys.stderr)
        return 2
    with postgres.server(durable=True) as server:
        results = {
            "turn": asyncio.run(turn(server.create())),
            "many": asyncio.run(many(server.create())),
        }
    print(json.dumps(results) if arguments.json else json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
