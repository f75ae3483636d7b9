"""What the tests of export and import share: stores that nobody else has, and the text of a whole run."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator

from shiftbook import Store, UnknownRun, open_store
from shiftbook.testing.clock import SimulatedClock
from shiftbook.transfer import export_run
from tests import records

RUN = "warehouse1"
NUMBERS = itertools.count()


async def lines_of(store: Store, run: str = RUN) -> list[str]:
    return [line async for line in export_run(store, run)]


@contextlib.asynccontextmanager
async def in_memory(clock: SimulatedClock | None = None) -> AsyncIterator[Store]:
    store = await open_store(f":memory:{next(NUMBERS)}", clock=clock or SimulatedClock(3))
    try:
        yield store
    finally:
        await store.close()


def exported() -> list[str]:
    """The export of the whole run, made anew for each test that asks."""

    async def make() -> list[str]:
        clock = SimulatedClock(7)
        async with in_memory(clock) as store:
            await records.warehouse(store, clock)
            return await lines_of(store)

    return asyncio.run(make())


async def nothing_there(store: Store) -> bool:
    """Whether the run is not there: nothing was written of it."""
    try:
        await store.entries.head(RUN)
    except UnknownRun:
        return not await store.catalogue.runs()
    return False
