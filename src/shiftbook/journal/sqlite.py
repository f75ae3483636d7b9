"""A store in one SQLite file, or in memory: the six promises over a writing and a reading connection."""

from __future__ import annotations

from typing import Literal

from shiftbook.clock import Clock
from shiftbook.journal.sqlite_blobs import SqliteBlobs
from shiftbook.journal.sqlite_cache import SqliteCache
from shiftbook.journal.sqlite_catalogue import SqliteCatalogue
from shiftbook.journal.sqlite_commits import Commits, InLoop, WriterThread
from shiftbook.journal.sqlite_database import BUSY_MS, Address, Database, open_database
from shiftbook.journal.sqlite_entries import SqliteEntries
from shiftbook.journal.sqlite_inbox import SqliteInbox
from shiftbook.journal.sqlite_leases import SqliteLeases
from shiftbook.journal.sqlite_reader import News, Reader


class SqliteStore:
    """Keeps the promise `Store`. Make one with `open_sqlite`; it belongs to the loop that made it."""

    def __init__(self, address: Address, clock: Clock, reader: Reader, commits: Commits, news: News) -> None:
        # Absolute, so that the store can be opened again from whatever folder a tool has gone to.
        self.name = address.name if address.in_memory else address.target
        self.entries = SqliteEntries(reader, commits, news, clock)
        self.leases = SqliteLeases(reader, commits)
        self.inbox = SqliteInbox(reader, commits)
        self.blobs = SqliteBlobs(reader)
        self.catalogue = SqliteCatalogue(reader, commits)
        self.cache = SqliteCache(reader, commits)
        self._reader = reader
        self._commits = commits
        self._news = news
        self._address = address
        self._clock = clock

    async def reopen(self) -> SqliteStore:
        """The same database once more, for the loop of another thread."""
        return await open_sqlite(self._address, self._clock, create=False)

    async def close(self) -> None:
        """Finish the commits that were handed in and let go of the file; followers are told."""
        await self._commits.close()
        self._reader.close()
        self._news.tell()


async def open_sqlite(
    address: Address,
    clock: Clock,
    *,
    commits: Literal["in-loop", "writer"] = "in-loop",
    create: bool = True,
    read_only: bool = False,
    busy_ms: int = BUSY_MS,
) -> SqliteStore:
    """Open a SQLite database; see `shiftbook.journal.open.open_store`."""
    news = News()
    writing = await open_database(address, clock, create=create, read_only=read_only, busy_ms=busy_ms)
    try:
        reading = await _reading(address, clock, writing, read_only=read_only, busy_ms=busy_ms)
    except BaseException:
        writing.connection.close(True)
        raise
    way: Commits = InLoop(writing, news.tell) if commits == "in-loop" else WriterThread(writing, news.tell)
    return SqliteStore(address, clock, Reader(reading), way, news)


async def _reading(
    address: Address, clock: Clock, writing: Database, *, read_only: bool, busy_ms: int
) -> Database:
    # In memory nothing blocks, and locks there do not wait: one connection serves both.
    if address.in_memory:
        return writing
    return await open_database(address, clock, read_only=read_only, busy_ms=busy_ms)
