"""Lulls of a storm: stretches in which the service is asked for nothing, and how the queue stood in each.

A lull that outlasts the leases of dead workers is a fault of somebody's: runs are there, workers are there,
and nobody takes them. So each is told with what waits for whom.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import psycopg

STANDS = """
SELECT (SELECT count(*) FROM shiftbook.runs WHERE state <> 'finished'),
    (SELECT count(*) FROM shiftbook.leases WHERE host IS NOT NULL AND until_ms > shiftbook.now_ms()),
    (SELECT count(*) FROM shiftbook_queue.queued_runs WHERE due <= now()),
    (SELECT count(*) FROM shiftbook_queue.queued_runs WHERE due > now()),
    (SELECT count(*) FROM shiftbook_queue.procrastinate_jobs WHERE status = 'todo'),
    (SELECT count(*) FROM shiftbook_queue.procrastinate_jobs WHERE status = 'doing'),
    (SELECT count(*) FROM shiftbook_queue.procrastinate_jobs AS job WHERE status = 'doing' AND NOT EXISTS (
        SELECT 1 FROM shiftbook_queue.procrastinate_workers AS at_work
        WHERE at_work.id = job.worker_id AND at_work.last_heartbeat > now() - %s * interval '1 millisecond'
    )),
    (SELECT count(*) FROM shiftbook_queue.procrastinate_workers
        WHERE last_heartbeat > now() - %s * interval '1 millisecond')
"""


@dataclass
class Lulls:
    """Watches how often the service has acted; `longest_ms` is the longest that it did not.

    What `see` returns is for the report: how things stand, once for each lull of `least_ms`.
    """

    address: str
    stalled_ms: int
    least_ms: float
    longest_ms: float = 0
    _acted: int = 0
    _since_ms: float | None = None
    _told: bool = False

    async def see(self, acted: int, now_ms: float) -> str | None:
        """Look at how often the service has acted by now."""
        if acted == 0 or self._since_ms is None or acted != self._acted:  # It begins with the first.
            self._acted, self._since_ms, self._told = acted, now_ms, False
            return None
        lasts_ms = now_ms - self._since_ms
        self.longest_ms = max(self.longest_ms, lasts_ms)
        if self._told or lasts_ms < self.least_ms:
            return None
        self._told = True
        return f"nothing was done for {lasts_ms / 1000:.1f} s: {await asyncio.to_thread(self._stands)}"

    def _stands(self) -> str:
        try:
            with psycopg.connect(self.address, autocommit=True) as connection:
                found = connection.execute(STANDS, (self.stalled_ms, self.stalled_ms)).fetchone()
        except psycopg.OperationalError:
            return "the database is away"
        assert found is not None
        left, leases, due, later, ready, taken, stalled, beating = found
        return (
            f"{left} runs are not finished, {leases} leases live, {due} runs are due and {later} later, "
            f"{ready} wakes wait, {taken} are taken ({stalled} of them by workers that do not beat), "
            f"{beating} workers beat"
        )
