"""Entries in PostgreSQL: append behind a guard, read in pages, follow by news and by looking."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from shiftbook.clock import Clock
from shiftbook.codec import Row, genesis
from shiftbook.errors import Damaged
from shiftbook.journal.admission import POSITION_MAX
from shiftbook.journal.postgres_append import append, append_again
from shiftbook.journal.postgres_connections import Connections
from shiftbook.journal.postgres_database import Database
from shiftbook.journal.postgres_news import News
from shiftbook.journal.postgres_rows import COLUMNS, row_of
from shiftbook.journal.promises import PAGE_ROWS, Commit, Head

POLL_MS_MIN = 10
POLL_MS_MAX = 250
POLL_MS_HEARING = 2_000
"""Bounds of the pause between two looks for commits of other processes, which doubles while nothing comes;
the last is for a store that hears of them and looks only in case it missed one."""


class PostgresEntries:
    """Keeps the promise `Entries`."""

    def __init__(self, connections: Connections, news: News, clock: Clock) -> None:
        self._connections = connections
        self._news = news
        self._clock = clock

    async def append(self, commit: Commit) -> None:
        await self._connections.run(
            partial(append, commit=commit), again=partial(append_again, commit=commit)
        )
        self._news.announce(commit.run)

    async def read(self, run: str, after: int = 0, limit: int = PAGE_ROWS) -> list[Row]:
        return await self._connections.run(partial(read_rows, run=run, after=after, limit=limit))

    async def head(self, run: str) -> Head:
        return await self._connections.run(partial(read_head, run=run))

    async def follow(self, run: str, after: int = 0) -> AsyncIterator[list[Row]]:
        self._news.listen()
        pause_ms = float(POLL_MS_MIN)
        while True:
            rows = await self.read(run, after)
            if rows:
                after = rows[-1].position
                pause_ms = float(POLL_MS_MIN)
                yield rows
                continue
            told = await self._news.wait(run, self._clock, pause_ms)
            most = POLL_MS_HEARING if self._news.hears else POLL_MS_MAX
            pause_ms = POLL_MS_MIN if told else min(pause_ms * 2, most)


async def read_rows(database: Database, run: str, after: int, limit: int) -> list[Row]:
    """A page of a run's rows, each checked for being the one at its position."""
    number = await database.number(run)
    after = min(max(after, 0), POSITION_MAX)
    found = await database.rows(
        f"SELECT {COLUMNS} FROM shiftbook.entries WHERE run = %s AND position > %s "
        "ORDER BY position LIMIT %s",
        (number, after, max(limit, 0)),
    )
    return [row_of(columns, run, after + place) for place, columns in enumerate(found, start=1)]


async def read_head(database: Database, run: str) -> Head:
    """A run's last position and the chain's head there."""
    found = await database.rows(
        "SELECT position, head FROM shiftbook.entries WHERE run = %s ORDER BY position DESC LIMIT 1",
        (await database.number(run),),
    )
    if not found:
        return Head(0, genesis(run))
    ((position, head),) = found
    if head is None:
        raise Damaged(
            f"Entry {position}, the last of run {run}, carries no chain head: the run's end is gone."
        )
    return Head(position, head)
