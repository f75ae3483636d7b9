"""A worker process of the storm: `python -m tests.chaos.worker ADDRESS`, with its oddities.

It believes to be on a host of its own, so that nobody can see by its process id that it is dead, and its
clock may be wrong by a minute: the engine's, and the one that procrastinate reads.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from datetime import UTC, datetime, timedelta

from procrastinate import utils

from shiftbook.clock import SystemClock
from shiftbook.errors import StoreUnusable
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Store
from shiftbook.workers import Settings, Worker, open_queue
from shiftbook.workers.jobs import Beat

READY = "ready to work"
"""What a worker writes once it is about to take runs."""

HOST, SKEW, LEASE, CONCURRENCY = "CHAOS_HOST", "CHAOS_SKEW_MS", "CHAOS_LEASE_MS", "CHAOS_CONCURRENCY"


class SkewedClock(SystemClock):
    """A clock that is off; durations and waits are not."""

    def __init__(self, skew_ms: int) -> None:
        self.skew_ms = skew_ms

    def now_ms(self) -> int:
        return super().now_ms() + self.skew_ms


def beat_for(lease_ms: int) -> Beat:
    """A queue that finds a dead worker about when its leases end."""
    return Beat(
        poll_ms=min(1_000, lease_ms // 4),
        heartbeat_ms=lease_ms // 4,
        stalled_ms=lease_ms,
        upkeep_ms=lease_ms // 4,
    )


def _oddities() -> int:
    host, skew_ms = os.environ[HOST], int(os.environ[SKEW])
    socket.gethostname = lambda: host
    real_time, real_now = time.time, utils.utcnow
    time.time = lambda: real_time() + skew_ms / 1000
    utils.utcnow = lambda: real_now() + timedelta(milliseconds=skew_ms)
    return skew_ms


async def work(address: str, skew_ms: int) -> None:
    """Work until SIGTERM."""
    lease_ms = int(os.environ[LEASE])
    clock = SkewedClock(skew_ms)
    store: Store | None = None
    while store is None:
        try:
            store = await open_store(address, clock=clock)
        except StoreUnusable as fault:
            # Born while the database is away: whoever supervises a worker would start it again.
            print(fault, flush=True)
            await clock.sleep_ms(500)
    queue = await open_queue(store)
    assert queue is not None
    settings = Settings(
        concurrency=int(os.environ[CONCURRENCY]), lease_ms=lease_ms, beat=beat_for(lease_ms), grace_ms=30_000
    )
    worker = Worker(queue, settings, clock=clock)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    print(READY, datetime.now(UTC).isoformat(), flush=True)
    await worker.work()
    print(worker.counts, flush=True)
    await store.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    asyncio.run(work(sys.argv[1], _oddities()))
