"""Reading on the loop's thread, and the news that something was committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from shiftbook.clock import Clock
from shiftbook.journal.sqlite_database import Database
from shiftbook.journal.sqlite_errors import DRIVER_ERRORS, closed

T = TypeVar("T")


class News:
    """Tells followers within this store that something was committed, and that the store was closed."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()
        self.told = 0
        """How often there was news: a connection does not see its own commits as a new version."""

    def tell(self) -> None:
        """Wake everybody who waits."""
        self.told += 1
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
