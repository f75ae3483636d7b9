"""News of commits, within this store at once and to other processes by LISTEN and NOTIFY.

A NOTIFY that is part of a commit makes all commits of the server wait for one another, so news goes out by
a statement of its own soon after, for many commits at once. News may be lost: whoever follows also looks by
itself from time to time, and at once when it listens again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from shiftbook.clock import Clock
from shiftbook.ending import end
from shiftbook.errors import ShiftbookError
from shiftbook.journal.postgres_address import driver
from shiftbook.journal.postgres_connections import PAUSE_MS_MAX, PAUSE_MS_MIN, Connections
from shiftbook.journal.postgres_database import Database

CHANNEL = "shiftbook"

PAUSE_MS = 100
"""The shortest time between two announcements of one store, so that news costs little at any speed."""

RUNS_MAX = 100
"""Runs that one announcement names; if there are more it names none, and everybody looks."""


class News:
    """Wakes whoever follows: by run when it is known which, all of them when not."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._waiting: dict[asyncio.Future[None], str] = {}
        self._untold: set[str] = set()
        self._sending: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._hears = False

    @property
    def hears(self) -> bool:
        """Whether commits of other processes are told here now."""
        return self._hears

    def announce(self, run: str) -> None:
        """Something was committed to a run: tell it here at once, elsewhere soon."""
        self._tell(run)
        self._untold.add(run)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.ensure_future(self._send())

    def listen(self) -> None:
        """Begin to hear from other processes, on a connection of its own."""
        if self._listening is None:
            self._listening = asyncio.ensure_future(self._listen())

    async def wait(self, run: str, clock: Clock, pause_ms: float) -> bool:
        """Wait until told of a run, or for the pause; whether it was told."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[told] = run
        pause = asyncio.ensure_future(clock.sleep_ms(pause_ms))
        try:
            await asyncio.wait((told, pause), return_when=asyncio.FIRST_COMPLETED)
            return told.done()
        finally:
            self._waiting.pop(told, None)
            told.cancel()
            pause.cancel()

    async def close(self) -> None:
        """Stop to listen and send what is untold; whoever waits is woken."""
        for task in (self._listening, self._sending):
            if task is not None:
                await end(task)
        self._tell(None)

    def _tell(self, run: str | None) -> None:
        for future, wanted in list(self._waiting.items()):
            if (run is None or run == wanted) and not future.done():
                future.set_result(None)

    async def _send(self) -> None:
        while self._untold:
            runs, self._untold = sorted(self._untold), set()
            names = [""] if len(runs) > RUNS_MAX else runs

            async def tell(database: Database, names: list[str] = names) -> None:
                await database.rows(
                    "SELECT pg_notify(%s, name) FROM unnest(%s::text[]) AS name", (CHANNEL, names)
                )

            # Whoever missed it looks by itself; a commit is not undone for want of its announcement.
            with suppress(ShiftbookError):
                await self._connections.run(tell)
            paused = asyncio.Event()
            asyncio.get_running_loop().call_later(PAUSE_MS / 1000, paused.set)
            await paused.wait()

    async def _listen(self) -> None:
        psycopg = driver()
        pause_ms = float(PAUSE_MS_MIN)
        while not self._connections.is_closed:
            with suppress(psycopg.Error, OSError, ShiftbookError):
                database = await self._connections.connect()
                try:
                    await database.run(f"LISTEN {CHANNEL}")
                    self._hears, pause_ms = True, float(PAUSE_MS_MIN)
                    self._tell(None)
                    async for notice in database.connection.notifies():
                        self._tell(notice.payload or None)
                finally:
                    self._hears = False
                    await database.connection.close()
            await self._connections.clock.sleep_ms(pause_ms)
            pause_ms = min(pause_ms * 2, PAUSE_MS_MAX)
