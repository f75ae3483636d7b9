"""Where the stores of these tests are: in memory, in a file in both ways to commit, on a server."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import apsw
import pytest

from shiftbook.clock import Clock, SystemClock
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Lease, Store
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.ground import Ground, OpenStore, Writer, said
from tests import postgres

Place = Literal["memory", "file in-loop", "file writer", "postgres"]
PLACES: tuple[Place, ...] = ("memory", "file in-loop", "file writer")
FILE_PLACES: tuple[Place, ...] = PLACES[1:]
STORES: tuple[Place, ...] = (*PLACES, "postgres")


@contextlib.asynccontextmanager
async def opening(place: Place, folder: Path) -> AsyncIterator[OpenStore]:
    """A factory that opens one and the same database."""
    if place == "postgres":
        opened: list[Store] = []
        with fresh_database() as address:
            yield partial(_open_again, address, opened)
            # A store that is broken on purpose may never have been closed.
            for store in opened:
                await store.close()
        return
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


async def _open_again(address: str, opened: list[Store], clock: Clock) -> Store:
    store = await open_store(address, clock=clock)
    opened.append(store)
    return store


@contextlib.contextmanager
def fresh_database() -> Iterator[str]:
    """The address of an empty database on the session's PostgreSQL server; dropped at the end."""
    missing = postgres.why_not()
    if missing:
        pytest.skip(missing)
    server = postgres.shared()
    address = server.create()
    try:
        yield address
    finally:
        server.drop(address)


@contextlib.contextmanager
def quick_folder(otherwise: Path) -> Iterator[Path]:
    """A folder in memory where there is one: for tests of locks and sizes, which need no slow disk."""
    shared = Path("/dev/shm")
    if shared.is_dir() and os.access(shared, os.W_OK):
        with tempfile.TemporaryDirectory(prefix="shiftbook", dir=shared) as folder:
            yield Path(folder)
    else:
        yield otherwise


async def make(path: Path, entries: int = 1, seed: int = 0) -> str:
    """A database file with one more run of so many entries; returns the run."""

    async def open_again(clock: Clock) -> Store:
        return await open_store(str(path), clock=clock)

    ground = Ground(open_again, SimulatedClock(seed))
    writer = await ground.begin(await ground.open())
    for number in range(entries - 1):
        await writer.append(said(f"{number}"))
    await ground.close()
    return writer.run


async def holding(store: Store, run: str) -> Writer:
    """A writer under the lease that a run is under now."""
    seen = await store.leases.look(run)
    head = await store.entries.head(run)
    lease = Lease(run, seen.epoch, seen.until_ms)
    return Writer(store, lease, SystemClock(), head.position, head.head)


def raw(path: Path, *statements: str) -> list[tuple[Any, ...]]:
    """Do something to a database file behind Shiftbook's back; returns the last statement's rows."""
    connection = apsw.Connection(str(path))
    rows = [connection.execute(statement).fetchall() for statement in statements][-1]
    connection.close()
    return rows
