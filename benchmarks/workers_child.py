"""A worker process of the benchmark: ready, then at a word from its parent until the queue is empty.

    python -m benchmarks.workers_child ADDRESS runs|wakes

With `wakes` it does nothing with what it takes: that is the queue's own limit.
"""

from __future__ import annotations

import asyncio
import sys
import time

from shiftbook.journal.open import open_store
from shiftbook.providers.scripted import Scripted, call, say
from shiftbook.run.agent import Agent
from shiftbook.tools.function import tool
from shiftbook.workers import Queue, Settings, Worker, open_queue
from shiftbook.workers.jobs import Beat

TURNS = 10
CONCURRENCY = 4


@tool(repeat="safe")
async def lookup(q: str) -> str:
    """Look up an item."""
    return q * 100


def bench_agent() -> Agent:
    """Ten turns, each one reply with a call and its result, then a final reply; nothing is waited for."""
    steps = [call("lookup", {"q": f"item-{turn}"}, text=f"Step {turn}.") for turn in range(TURNS)]
    return Agent(
        name="bench",
        model=Scripted([*steps, say("done")]),
        tools=(lookup,),
        cap=100_000,
        reference="bench:agent",
    )


class Timed(Worker):
    """Notes when it took its first wake and when its last one ended."""

    first_s = last_s = 0.0

    async def wake(self, run: str) -> None:
        self.first_s = self.first_s or time.perf_counter()
        await self.seen(run)
        self.last_s = time.perf_counter()

    async def seen(self, run: str) -> None:
        """What is done with a wake."""
        await super().wake(run)


class Idle(Timed):
    """Takes a wake and leaves it at that."""

    async def seen(self, run: str) -> None:
        self.counts.taken += 1


async def work(address: str, what: str) -> None:
    """Work off what is there; the count on stdout."""
    store = await open_store(address)
    queue = await open_queue(store)
    assert isinstance(queue, Queue)
    agent = bench_agent()
    kind = Idle if what == "wakes" else Timed
    # No upkeep in between, and no second look: what is measured is the work.
    beat = Beat(upkeep_ms=59_000)
    worker = kind(queue, Settings(concurrency=CONCURRENCY, beat=beat), load=lambda reference: agent)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    began_s = time.process_time()
    await worker.work(once=True)
    cpu_s = time.process_time() - began_s
    print(worker.counts.taken, worker.counts.entries, worker.first_s, worker.last_s, cpu_s, flush=True)
    await store.close()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2]))
