"""Where the stores of these tests are: in memory, in a file, in both ways to commit."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

from shiftbook.clock import Clock
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Store
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.ground import OpenStore

Place = Literal["memory", "file in-loop", "file writer"]
PLACES: tuple[Place, ...] = ("memory", "file in-loop", "file writer")
FILE_PLACES: tuple[Place, ...] = PLACES[1:]


@contextlib.asynccontextmanager
async def opening(place: Place, folder: Path) -> AsyncIterator[OpenStore]:
    """A factory that opens one and the same database."""
    address = f":memory:{folder}" if place == "memory" else str(folder / "book.db")
    commits: Literal["in-loop", "writer"] = "writer" if place == "file writer" else "in-loop"

    async def open_again(clock: Clock) -> Store:
        return await open_store(address, clock=clock, commits=commits)

    # A database in memory lives as long as one of its stores.
    keeper = await open_again(SimulatedClock())
    try:
        yield open_again
    finally:
        await keeper.close()
