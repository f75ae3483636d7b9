"""A small pool of connections that runs jobs, and outlives a database that is away for a while.

A job is an async function of a `Database`. When its connection dies, it is run again on another one as soon
as there is one, with a growing pause and an end, if that is safe: nothing of it was written, or it can tell
what was. Else `StoreError` says that it is not known. Refusals and the database's errors are told at once.
"""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from shiftbook.clock import Clock
from shiftbook.errors import StoreError
from shiftbook.journal.postgres_address import PostgresAddress, driver
from shiftbook.journal.postgres_database import Database, Known, connect
from shiftbook.journal.postgres_errors import closed, door_code, lost, not_connected, translated

if TYPE_CHECKING:
    from psycopg import AsyncConnection

T = TypeVar("T")
Job = Callable[[Database], Awaitable[T]]

CONNECTIONS_MAX = 4
"""Connections that one store keeps at the most, besides one that listens; more jobs wait for their turn."""

AWAY_MS = 60_000
"""How long a job waits for a database that is away before it is given up."""

PAUSE_MS_MIN = 20
PAUSE_MS_MAX = 2_000
"""Bounds of the pause between two attempts; it doubles."""

_COLLIDED = frozenset({"40001", "40P01"})
"""The server undid a transaction that collided with another one: it may simply be run again."""

_PASSING = frozenset({"", "53300"})
"""Why no connection came about, where that may pass: no server answered, or it has none left."""


class _Away(Exception):
    """An attempt failed in a way that may pass; `uncertain` when it may have been written all the same."""

    def __init__(self, reason: StoreError, uncertain: bool = False) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.uncertain = uncertain


class Connections:
    """Runs jobs of one store, on the loop that made it."""

    def __init__(
        self,
        address: PostgresAddress,
        clock: Clock,
        *,
        read_only: bool = False,
        most: int = CONNECTIONS_MAX,
        away_ms: int = AWAY_MS,
    ) -> None:
        self.address = address
        self.clock = clock
        self.known = Known()
        self._read_only = read_only
        self._away_ms = away_ms
        self._free: deque[Database] = deque()
        self._turns = asyncio.Semaphore(most)
        self._closed = False

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    async def connect(self) -> Database:
        """A connection of its own for whoever listens. Raises what `connect` raises."""
        return await connect(self.address, self.clock, self.known, read_only=self._read_only)

    async def run(self, job: Job[T], *, again: Job[T] | None = None) -> T:
        """Run a job. `again` is what is run after a connection died while the job was committing; without
        it, that is an error, since nobody can know what was written."""
        async with self._turns:
            return await self._run(job, again)

    async def open(self, job: Job[T]) -> T:
        """Run the job that opens the store: a database that is away then is told at once."""
        self._away_ms, away_ms = 0, self._away_ms
        try:
            return await self._run(job, job)
        finally:
            self._away_ms = away_ms

    async def _run(self, job: Job[T], again: Job[T] | None) -> T:
        until_ms: float | None = None
        unsure: StoreError | None = None
        pause_ms = float(PAUSE_MS_MIN)
        while True:
            try:
                return await self._attempt(job)
            except _Away as away:
                if away.uncertain:
                    unsure = away.reason
                    if again is None:
                        raise unsure from None
                    job = again
                now_ms = self.clock.steady_ms()
                until_ms = now_ms + self._away_ms if until_ms is None else until_ms
                if now_ms >= until_ms:
                    raise unsure or away.reason from None
            await self.clock.sleep_ms(min(pause_ms, until_ms - now_ms))
            pause_ms = min(pause_ms * 2, PAUSE_MS_MAX)

    async def _attempt(self, job: Job[T]) -> T:
        """Run the job on a connection; `_Away` when it may be run again later."""
        name = self.address.name
        if self._closed:
            raise closed(name)
        failures = _failures()
        try:
            database = await self._borrow()
        except failures as error:
            refused = not_connected(error, name)
            if door_code(error) in _PASSING:
                raise _Away(refused) from None
            raise refused from None
        try:
            return await job(database)
        except failures as error:
            if _is_lost(database, error):
                self.known.forget()
                reason = lost(name) if database.uncertain else not_connected(error, name)
                raise _Away(reason, database.uncertain) from None
            if getattr(error, "sqlstate", None) in _COLLIDED:
                raise _Away(StoreError(f"{name}: a transaction collided with others too often.")) from None
            raise translated(error, name) from None
        finally:
            await self._give_back(database)

    async def _borrow(self) -> Database:
        while self._free:
            database = self._free.pop()
            if database.is_alive and not has_news(database.connection):
                database.uncertain = False
                return database
            await database.connection.close()
        return await self.connect()

    async def _give_back(self, database: Database) -> None:
        if self._closed or not database.is_alive:
            await database.connection.close()
        else:
            self._free.append(database)

    async def close(self) -> None:
        """Let go of all connections; whoever is at work ends first."""
        if self._closed:
            return
        self._closed = True
        while self._free:
            await self._free.pop().connection.close()


class OwnConnection:
    """A connection that one user keeps beside the pool, made when it is first lent and when it died."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._database: Database | None = None

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[Database]:
        """The connection, for one at a time. The driver's errors come out in our words, nobody else's."""
        name = self._connections.address.name
        try:
            database = await self._alive()
        except _failures() as error:
            raise not_connected(error, name) from None
        self._database = database
        try:
            yield database
        except _failures() as error:
            gone = _is_lost(database, error)
            raise (not_connected(error, name) if gone else translated(error, name)) from None

    async def _alive(self) -> Database:
        database, self._database = self._database, None
        if database is not None:
            if database.is_alive and not has_news(database.connection):
                return database
            await database.connection.close()
        return await self._connections.connect()

    async def close(self) -> None:
        """Let go of it."""
        if self._database is not None:
            await self._database.connection.close()
            self._database = None


def _failures() -> tuple[type[Exception], ...]:
    return (driver().Error, OSError, UnicodeError)


def _is_lost(database: Database, error: Exception) -> bool:
    return isinstance(error, OSError) or bool(database.connection.closed or database.connection.broken)


def has_news(connection: AsyncConnection[Any]) -> bool:
    """Whether there is something to read on an idle connection: a server writes there to say goodbye."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))
