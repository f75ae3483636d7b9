"""How many runs of one agent, or of one tenant, may be at work at the same time, over all workers.

Counted from the leases that live, under a lock by agent and by tenant that is held until the new lease is
taken: two workers that claim in the same moment come one after the other, so a limit is never passed. A
tenant is a tag of the run that begins with `tenant:`.

A run over a limit is parked under the share that is used up, and costs nothing there. Whoever ends a run
wakes as many parked ones as there is room for: the greatest priority first, then who has waited longest. The
places of those that wait are counted with the runs at work, so that nobody who comes later, at their priority
or a lesser one, gets in before them. So a thousand runs of one agent keep no worker from the others, and none
of them waits for ever. The place of one that nobody takes is kept for some seconds only: its agent may have
no worker any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from shiftbook.journal.postgres import PostgresStore
from shiftbook.journal.postgres_connections import OwnConnection
from shiftbook.journal.postgres_database import Database
from shiftbook.workers.layout import SCHEMA
from shiftbook.workers.queue import Queue, Wake

TENANT = "tenant:"
"""How a tag that names a tenant begins."""

_AHEAD = f"""
SELECT count(*) FROM (
    SELECT 1 FROM {SCHEMA}.queued_runs
    WHERE share = %(share)s AND due IS NOT NULL AND run <> %(run)s AND (
        priority > %(priority)s
        OR priority = %(priority)s AND (%(since)s::timestamptz IS NULL OR since < %(since)s)
    )
    LIMIT %(most)s
) AS ahead
"""
"""Runs that wait for a share and go before this one; not more than matters are read."""

_HELD = "FROM shiftbook.leases WHERE host IS NOT NULL AND until_ms > shiftbook.now_ms()"
_COUNTS = {
    "agent": f"SELECT count(*) FROM (SELECT number {_HELD}) AS held "
    "JOIN shiftbook.runs ON runs.number = held.number WHERE split_part(runs.agent, '?', 1) = %s",
    "tenant": f"SELECT count(*) FROM (SELECT number {_HELD}) AS held "
    "JOIN shiftbook.tags ON tags.run = held.number WHERE tags.tag = %s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Runs at work at the same time; None is no limit. All workers of a database should have the same."""

    per_agent: int | None = None
    per_tenant: int | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """A limit that a run comes under: of an `agent` or a `tenant`, and how many are allowed."""

    what: str
    name: str
    allowed: int

    @property
    def key(self) -> str:
        """What runs are parked under, and locked by."""
        return f"{self.what} {self.name}"

    async def held(self, database: Database) -> int:
        """How many are at work."""
        ((held,),) = await database.rows(_COUNTS[self.what], (self.name,))
        return int(held)

    async def ahead(self, database: Database, wake: Wake, most: int) -> int:
        """How many wait for it and go before a run; at the most `most` are counted."""
        given = {
            "share": self.key,
            "run": wake.run,
            "priority": wake.priority,
            "since": wake.since,
            "most": most,
        }
        ((ahead,),) = await database.rows(_AHEAD, given)
        return int(ahead)


class ShareFull(Exception):
    """A share is used up: nothing was taken. Says so in a sentence; `key` is what to park the run under."""

    def __init__(self, share: Share, held: int, ahead: int = 0) -> None:
        others = f" and {ahead} that waited before this one" if ahead else ""
        super().__init__(f"the {share.key} has {held} at work{others}, of {share.allowed} allowed")
        self.key = share.key


class Gate:
    """Lets a worker claim a run where the shares allow it; one claim at a time in one process."""

    def __init__(self, store: PostgresStore, shares: Shares) -> None:
        self._store = store
        self._shares = shares
        self._turn = asyncio.Lock()
        self._own = OwnConnection(store.connections)

    async def look(self, wake: Wake) -> None:
        """Raise `ShareFull` where a claim would now: for whoever has something dear to do first."""
        shares = self._of(wake)
        if shares:
            job = partial(_see, shares=shares, wake=wake)
            await self._store.connections.run(job, again=job)

    @asynccontextmanager
    async def claim(self, wake: Wake) -> AsyncIterator[None]:
        """Within, nobody else claims for the same agent and tenants: take the lease here, and do no more.

        Raises `ShareFull` when there is no room, and what the store raises.
        """
        shares = self._of(wake)
        if not shares:
            yield
            return
        # On a connection of its own: a claim must not keep from the pool what its lease has to wait for.
        async with self._turn, self._own.lent() as database, database.transaction():
            # Everybody locks in the same order, the agent first: nobody waits in a circle.
            await database.rows(
                "SELECT pg_advisory_xact_lock(hashtextextended('shiftbook ' || key, 0)) "
                "FROM unnest(%s::text[]) AS key",
                ([share.key for share in shares],),
            )
            await _see(database, shares, wake)
            if wake.since is not None:
                await database.run(_LET_IN, (wake.run,))
            yield

    async def wake_parked(self, queue: Queue, wake: Wake) -> int:
        """Wake those that wait for a share of this run, as many as there is room for; how many."""
        return sum([await _wake_parked(queue, share) for share in self._of(wake)])

    async def wake_all_parked(self, queue: Queue) -> int:
        """The same for all shares: for the room that a worker left which died."""
        woken = 0
        for key in await queue.parked() if self._shares != Shares() else ():
            what, _, name = key.partition(" ")
            allowed = self._shares.per_agent if what == "agent" else self._shares.per_tenant
            if allowed is not None:
                woken += await _wake_parked(queue, Share(what, name, allowed))
        return woken

    def _of(self, wake: Wake) -> list[Share]:
        found: list[Share] = []
        if self._shares.per_agent is not None:
            found.append(Share("agent", wake.agent.partition("?")[0], self._shares.per_agent))
        if self._shares.per_tenant is not None:
            tenants = sorted({tag for tag in wake.tags if tag.startswith(TENANT)})
            found.extend(Share("tenant", tag, self._shares.per_tenant) for tag in tenants)
        return found

    async def close(self) -> None:
        """Let go of the connection."""
        await self._own.close()


_LET_IN = f"UPDATE {SCHEMA}.queued_runs SET share = NULL, since = NULL, due = NULL WHERE run = %s"


async def _see(database: Database, shares: Sequence[Share], wake: Wake) -> None:
    for share in shares:
        held = await share.held(database)
        room = share.allowed - held
        ahead = await share.ahead(database, wake, room) if room > 0 else 0
        if room <= ahead:
            raise ShareFull(share, held, ahead)


async def _wake_parked(queue: Queue, share: Share) -> int:
    async def room(database: Database) -> int:
        return share.allowed - await share.held(database)

    return await queue.unpark(share.key, room)
