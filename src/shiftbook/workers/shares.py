"""How many runs of one agent, or of one tenant, may be at work at the same time, over all workers.

Counted from the leases that live, under a lock by agent and by tenant that is held until the new lease is
taken: two workers that claim in the same moment come one after the other, so a limit is never passed. A
tenant is a tag of the run that begins with `tenant:`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from shiftbook.journal.postgres import PostgresStore
from shiftbook.journal.postgres_database import Database

TENANT = "tenant:"
"""How a tag that names a tenant begins."""

OPENING_MS = 60_000
"""How long the others wait while an agent's toolboxes are opened for a claim; then the claim fails."""

_HELD = "FROM shiftbook.leases WHERE host IS NOT NULL AND until_ms > shiftbook.now_ms()"
_OF_AGENT = (
    f"SELECT count(*) FROM (SELECT number {_HELD}) AS held JOIN shiftbook.runs ON runs.number = held.number "
    "WHERE split_part(runs.agent, '?', 1) = %s"
)
_OF_TENANT = (
    f"SELECT count(*) FROM (SELECT number {_HELD}) AS held JOIN shiftbook.tags ON tags.run = held.number "
    "WHERE tags.tag = %s"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Runs at work at the same time; None is no limit. All workers of a database should have the same."""

    per_agent: int | None = None
    per_tenant: int | None = None


class Gate:
    """Lets a worker claim a run where the shares allow it; one claim at a time in one process."""

    def __init__(self, store: PostgresStore, shares: Shares) -> None:
        self._store = store
        self._shares = shares
        self._turn = asyncio.Lock()
        self._database: Database | None = None

    @asynccontextmanager
    async def claim(self, agent: str, tags: Sequence[str]) -> AsyncIterator[str | None]:
        """Within, nobody else claims for the same agent and tenants: take the lease here.

        Yields None when there is room, else one sentence that says which limit is reached.
        """
        asked = self._asked(agent.partition("?")[0], tags)
        if not asked:
            yield None
            return
        async with self._turn:
            if self._database is None or not self._database.is_alive:
                # A connection of its own: a claim must not keep from the pool what its lease has to wait for.
                self._database = await self._store.connections.connect()
                await self._database.run(f"SET idle_in_transaction_session_timeout = {OPENING_MS}")
            database = self._database
            async with database.transaction():
                yield await self._full(database, asked)

    def _asked(self, agent: str, tags: Sequence[str]) -> list[tuple[str, str, str, int]]:
        found: list[tuple[str, str, str, int]] = []
        if self._shares.per_agent is not None:
            found.append(("agent", agent, _OF_AGENT, self._shares.per_agent))
        if self._shares.per_tenant is not None:
            tenants = sorted({tag for tag in tags if tag.startswith(TENANT)})
            found.extend(("tenant", tag, _OF_TENANT, self._shares.per_tenant) for tag in tenants)
        return found

    async def _full(self, database: Database, asked: list[tuple[str, str, str, int]]) -> str | None:
        # Everybody locks in the same order, the agent first: nobody waits in a circle.
        for what, name, _, _ in asked:
            await database.rows(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"shiftbook {what} {name}",)
            )
        for what, name, count, allowed in asked:
            ((held,),) = await database.rows(count, (name,))
            if held >= allowed:
                return f"the {what} {name} has {held} at work, of {allowed} allowed"
        return None

    async def close(self) -> None:
        """Let go of the connection."""
        if self._database is not None:
            await self._database.connection.close()
            self._database = None
