"""A store on a PostgreSQL server, for any number of programs on any number of hosts."""

from __future__ import annotations

from functools import partial

from shiftbook.clock import Clock
from shiftbook.journal.postgres_address import PostgresAddress, parse_address
from shiftbook.journal.postgres_blobs import PostgresBlobs
from shiftbook.journal.postgres_cache import PostgresCache
from shiftbook.journal.postgres_catalogue import PostgresCatalogue
from shiftbook.journal.postgres_connections import AWAY_MS, CONNECTIONS_MAX, Connections
from shiftbook.journal.postgres_entries import PostgresEntries
from shiftbook.journal.postgres_inbox import PostgresInbox
from shiftbook.journal.postgres_leases import PostgresLeases
from shiftbook.journal.postgres_news import News
from shiftbook.journal.postgres_schema import prepare

AWAY_MS_REOPENED = 5_000
"""How long a job of a store for another thread waits for a database that is away: whoever waits for that
thread to end is not to wait long, and a lease is tried again by itself."""


class PostgresStore:
    """Keeps the promise `Store`. Make one with `open_postgres`; it belongs to the loop that made it."""

    def __init__(self, address: PostgresAddress, connections: Connections, clock: Clock) -> None:
        self.name = address.name
        self.connections = connections
        """Runs jobs of whoever wants something in one transaction with what the store writes."""
        news = News(connections)
        self.entries = PostgresEntries(connections, news, clock)
        self.leases = PostgresLeases(connections)
        self.inbox = PostgresInbox(connections, news)
        self.blobs = PostgresBlobs(connections)
        self.catalogue = PostgresCatalogue(connections)
        self.cache = PostgresCache(connections)
        self._news = news
        self._address = address
        self._clock = clock

    async def reopen(self) -> PostgresStore:
        """The same database once more, with one connection, for another thread's loop.

        Nothing is asked of it: it was looked at when this store was opened, and a newer release that has
        brought its layout up to date since must not cost a run its lease.
        """
        connections = Connections(self._address, self._clock, most=1, away_ms=AWAY_MS_REOPENED)
        return PostgresStore(self._address, connections, self._clock)

    async def close(self) -> None:
        """Let go of the server; followers are told."""
        await self.connections.close()
        await self._news.close()


async def open_postgres(
    address: str,
    clock: Clock,
    *,
    create: bool = True,
    read_only: bool = False,
    connections: int = CONNECTIONS_MAX,
    away_ms: int = AWAY_MS,
) -> PostgresStore:
    """Open a PostgreSQL database; see `shiftbook.journal.open.open_store`.

    `connections` bounds the pool; a job waits at most `away_ms` for a database that is away.
    """
    parsed = parse_address(address)
    pool = Connections(parsed, clock, read_only=read_only, most=connections, away_ms=away_ms)
    try:
        await pool.open(partial(prepare, create=create, read_only=read_only))
    except BaseException:
        await pool.close()
        raise
    return PostgresStore(parsed, pool, clock)
