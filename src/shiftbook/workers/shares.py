"""How many runs of one agent, or of one tenant, may be at work at the same time, over all workers.

Counted from the leases that live, under a lock by agent and by tenant that is held until the new lease is
taken: two workers that claim in the same moment come one after the other, so a limit is never passed. A
tenant is a tag of the run that begins with `tenant:`.

A run over a limit is parked under the share that is used up, and costs nothing there. Whoever ends a run
wakes as many parked ones as there is room for: the greatest priority first, then who has waited longest. So a
thousand runs of one agent keep no worker from the others, and none of them waits for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from shiftbook.journal.postgres import PostgresStore
from shiftbook.journal.postgres_database import Database
from shiftbook.workers.queue import Queue

TENANT = "tenant:"
"""How a tag that names a tenant begins."""

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


class ShareFull(Exception):
    """A share is used up: nothing was taken. Says so in a sentence; `key` is what to park the run under."""

    def __init__(self, share: Share, held: int) -> None:
        super().__init__(f"the {share.key} has {held} at work, of {share.allowed} allowed")
        self.key = share.key


class Gate:
    """Lets a worker claim a run where the shares allow it; one claim at a time in one process."""

    def __init__(self, store: PostgresStore, shares: Shares) -> None:
        self._store = store
        self._shares = shares
        self._turn = asyncio.Lock()
        self._database: Database | None = None

    async def look(self, agent: str, tags: Sequence[str]) -> None:
        """Raise `ShareFull` where a claim would now: for whoever has something dear to do first."""
        shares = self._of(agent, tags)
        if shares:
            job = partial(_see, shares=shares)
            await self._store.connections.run(job, again=job)

    @asynccontextmanager
    async def claim(self, agent: str, tags: Sequence[str]) -> AsyncIterator[None]:
        """Within, nobody else claims for the same agent and tenants: take the lease here, and do no more.

        Raises `ShareFull` when there is no room.
        """
        shares = self._of(agent, tags)
        if not shares:
            yield
            return
        async with self._turn:
            if self._database is None or not self._database.is_alive:
                # A connection of its own: a claim must not keep from the pool what its lease has to wait for.
                self._database = await self._store.connections.connect()
            database = self._database
            async with database.transaction():
                # Everybody locks in the same order, the agent first: nobody waits in a circle.
                await database.rows(
                    "SELECT pg_advisory_xact_lock(hashtextextended('shiftbook ' || key, 0)) "
                    "FROM unnest(%s::text[]) AS key",
                    ([share.key for share in shares],),
                )
                await _see(database, shares)
                yield

    async def wake_parked(self, queue: Queue, agent: str, tags: Sequence[str]) -> int:
        """Wake those that wait for a share of this run, as many as there is room for; how many."""
        return sum([await _wake_parked(queue, share) for share in self._of(agent, tags)])

    async def wake_all_parked(self, queue: Queue) -> int:
        """The same for all shares: for the room that a worker left which died."""
        woken = 0
        for key in await queue.parked() if self._shares != Shares() else ():
            what, _, name = key.partition(" ")
            allowed = self._shares.per_agent if what == "agent" else self._shares.per_tenant
            if allowed is not None:
                woken += await _wake_parked(queue, Share(what, name, allowed))
        return woken

    def _of(self, agent: str, tags: Sequence[str]) -> list[Share]:
        found: list[Share] = []
        if self._shares.per_agent is not None:
            found.append(Share("agent", agent.partition("?")[0], self._shares.per_agent))
        if self._shares.per_tenant is not None:
            tenants = sorted({tag for tag in tags if tag.startswith(TENANT)})
            found.extend(Share("tenant", tag, self._shares.per_tenant) for tag in tenants)
        return found

    async def close(self) -> None:
        """Let go of the connection."""
        if self._database is not None:
            await self._database.connection.close()
            self._database = None


async def _see(database: Database, shares: Sequence[Share]) -> None:
    for share in shares:
        held = await share.held(database)
        if held >= share.allowed:
            raise ShareFull(share, held)


async def _wake_parked(queue: Queue, share: Share) -> int:
    async def room(database: Database) -> int:
        return share.allowed - await share.held(database)

    return await queue.unpark(share.key, room)
