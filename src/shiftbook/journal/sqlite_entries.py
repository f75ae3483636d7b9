"""Entries in SQLite: append through a way to commit, read and follow on a connection of the loop's thread.

A row that no release can have written - another type, an unknown kind, a gap in the positions - is
`Damaged` when it is read, whatever a crafted file holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TypeVar

from shiftbook.clock import Clock
from shiftbook.codec import Row, genesis
from shiftbook.entries import FORMAT, KIND_NUMBERS
from shiftbook.errors import Damaged, NewerFormat
from shiftbook.journal.promises import PAGE_ROWS, Commit, Head
from shiftbook.journal.sqlite_append import POSITION_MAX, append, span
from shiftbook.journal.sqlite_commits import Commits
from shiftbook.journal.sqlite_database import Database
from shiftbook.journal.sqlite_errors import DRIVER_ERRORS, closed

T = TypeVar("T")

POLL_MS_MIN = 5
POLL_MS_MAX = 250
"""Bounds of the pause between two looks for commits of other processes; it doubles while nothing comes."""

_KINDS = {number: name for name, number in KIND_NUMBERS.items()}
_SHAPES = frozenset(
    {
        (int, int, int, int, int, bytes, str, bytes),
        (int, int, int, int, int, bytes, str, type(None)),
    }
)


class News:
    """Tells followers within this store that something was committed, and that the store was closed."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def tell(self) -> None:
        """Wake everybody who waits."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def wait(self, clock: Clock, pause_ms: float) -> bool:
        """Wait until told, or for the pause; whether it was told."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(told)
        pause = asyncio.ensure_future(clock.sleep_ms(pause_ms))
        try:
            await asyncio.wait((told, pause), return_when=asyncio.FIRST_COMPLETED)
            return told.done()
        finally:
            self._waiting.discard(told)
            told.cancel()
            pause.cancel()


class Reader:
    """Reads on the loop's thread, each a finished statement, so that no reader holds up a checkpoint."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._closed = False

    def read(self, job: Callable[[Database], T]) -> T:
        """Run a job that only reads."""
        if self._closed:
            raise closed(self._database.address.name)
        try:
            return job(self._database)
        except DRIVER_ERRORS as error:
            raise self._database.translated(error) from None

    def close(self) -> None:
        """Let go of the connection."""
        self._closed = True
        self._database.connection.close(True)


class SqliteEntries:
    """Keeps the promise `Entries`."""

    def __init__(self, reader: Reader, commits: Commits, news: News, clock: Clock) -> None:
        self._reader = reader
        self._commits = commits
        self._news = news
        self._clock = clock

    async def append(self, commit: Commit) -> None:
        await self._commits.write(partial(append, commit=commit))

    async def read(self, run: str, after: int = 0, limit: int = PAGE_ROWS) -> list[Row]:
        return self._reader.read(partial(read_rows, run=run, after=after, limit=limit))

    async def head(self, run: str) -> Head:
        return self._reader.read(partial(read_head, run=run))

    async def follow(self, run: str, after: int = 0) -> AsyncIterator[list[Row]]:
        pause_ms = float(POLL_MS_MIN)
        seen: int | None = None
        while True:
            # The version is read before the rows: a commit in between shows as a new version next time.
            version = self._reader.read(data_version)
            if version != seen:
                rows = self._reader.read(partial(read_rows, run=run, after=after, limit=PAGE_ROWS))
                if rows:
                    after = rows[-1].position
                    pause_ms, seen = float(POLL_MS_MIN), None
                    yield rows
                    continue
                seen = version
            told = await self._news.wait(self._clock, pause_ms)
            pause_ms = POLL_MS_MIN if told else min(pause_ms * 2, POLL_MS_MAX)


def data_version(database: Database) -> int:
    """A number that changes whenever another connection, of this process or not, has committed."""
    return int(database.rows("PRAGMA data_version")[0][0])


def read_rows(database: Database, run: str, after: int, limit: int) -> list[Row]:
    """A page of a run's rows, each checked for being a row at all."""
    first, last = span(database.number(run))
    after = min(max(after, 0), POSITION_MAX)
    found = database.rows(
        "SELECT id, kind, version, at_ms, epoch, salt, payload, head FROM entries "
        "WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?",
        (first + after, last, max(limit, 0)),
    )
    rows = []
    expected = after
    for columns in found:
        expected += 1
        if (*map(type, columns),) not in _SHAPES or columns[0] & POSITION_MAX != expected:
            raise Damaged(f"Entry {expected} of run {run} is missing or not a row that Shiftbook wrote.")
        _id, kind, version, at_ms, epoch, salt, payload, head = columns
        name = _KINDS.get(kind)
        if name is None:
            raise _unknown_kind(run, expected, kind, version)
        rows.append(Row(expected, name, version, at_ms, epoch, salt, payload, head))
    return rows


def _unknown_kind(run: str, position: int, kind: int, version: int) -> Exception:
    if version > FORMAT:
        return NewerFormat(
            f"Entry {position} of run {run} has format {version}; this Shiftbook reads up to {FORMAT}. Update "
            "Shiftbook to read this run; nothing was changed."
        )
    return Damaged(f"Entry {position} of run {run} is of kind {kind}, which does not exist.")


def read_head(database: Database, run: str) -> Head:
    """A run's last position and the chain's head there."""
    found = database.rows(
        "SELECT id, head FROM entries WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
        span(database.number(run)),
    )
    if not found:
        return Head(0, genesis(run))
    ((entry, head),) = found
    position = entry & POSITION_MAX
    if type(head) is not bytes:
        raise Damaged(f"Entry {position}, the last of run {run}, carries no chain head: the run's end is gone.")
    return Head(position, head)
