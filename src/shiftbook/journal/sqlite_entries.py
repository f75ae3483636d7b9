"""Entries in SQLite: append through a way to commit, read and follow on a connection of the loop's thread.

A row that no release can have written - another type, an unknown kind, a gap in the positions - is
`Damaged` when it is read, whatever a crafted file holds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from shiftbook.clock import Clock
from shiftbook.codec import Row, genesis
from shiftbook.errors import Damaged
from shiftbook.journal.admission import POSITION_MAX
from shiftbook.journal.promises import PAGE_ROWS, Commit, Head
from shiftbook.journal.sqlite_append import append
from shiftbook.journal.sqlite_commits import Commits
from shiftbook.journal.sqlite_database import Database
from shiftbook.journal.sqlite_reader import News, Reader
from shiftbook.journal.sqlite_rows import COLUMNS, row_of, span

POLL_MS_MIN = 5
POLL_MS_MAX = 250
"""Bounds of the pause between two looks for commits of other processes; it doubles while nothing comes."""


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
        seen: tuple[int, int] | None = None
        while True:
            # The version is read before the rows: a commit in between shows as a new version next time.
            version = (self._news.told, self._reader.read(data_version))
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
    """A number that changes whenever another connection, of whatever process, has committed."""
    return int(database.rows("PRAGMA data_version")[0][0])


def read_rows(database: Database, run: str, after: int, limit: int) -> list[Row]:
    """A page of a run's rows, each checked for being a row at all."""
    first, last = span(database.number(run))
    after = min(max(after, 0), POSITION_MAX)
    found = database.rows(
        f"SELECT {COLUMNS} FROM entries WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?",
        (first + after, last, max(limit, 0)),
    )
    return [row_of(columns, run, after + place) for place, columns in enumerate(found, start=1)]


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
        raise Damaged(
            f"Entry {position}, the last of run {run}, carries no chain head: the run's end is gone."
        )
    return Head(position, head)
