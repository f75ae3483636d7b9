"""What the tests of `run` stand on: a store in memory, a clock that they own, small tools and agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from shiftbook.entries import Entry, What
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Store
from shiftbook.messages import Request
from shiftbook.providers.scripted import Scripted
from shiftbook.run.agent import Agent
from shiftbook.run.book import read_entries
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.validator import check_request
from shiftbook.tools.contract import Context
from shiftbook.tools.function import tool
from shiftbook.verify import verify

LEASE_MS = 30_000


@tool(repeat="safe")
async def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: 12 crates"


@tool(repeat="ask")
async def mail(to: str) -> str:
    """Write to somebody."""
    return f"mailed {to}"


@tool(repeat="keyed")
async def pay(amount: int, context: Context) -> str:
    """Pay under the call's key."""
    return f"{amount} under {context.key}"


def agent(script: Any, **changes: Any) -> Agent:
    """An agent whose requests are checked strictly, as a vendor would."""
    name = changes.pop("model", "scripted")
    values: dict[str, Any] = {"name": "tester", "tools": (look, mail, pay), "cap": 60_000} | changes
    return Agent(model=Scripted(script, name, check=check_request), **values)


class Desk:
    """A store, its clock, and what was asked of the journal."""

    def __init__(self, store: Store, clock: SimulatedClock) -> None:
        self.store, self.clock = store, clock

    async def entries(self, run: str) -> list[Entry]:
        """The run's entries."""
        return await read_entries(self.store, run)

    async def whats(self, run: str, *kinds: type[What]) -> list[Any]:
        """What happened, of these kinds."""
        return [entry.what for entry in await self.entries(run) if not kinds or isinstance(entry.what, kinds)]

    async def check(self, run: str) -> None:
        """The record is without fault."""
        verdict = await verify(self.store, run)
        assert verdict.ok, verdict.faults

    def expire(self) -> None:
        """Let every lease run out."""
        self.clock.advance(LEASE_MS + 1)


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    """A desk for one test."""
    clock = SimulatedClock()
    store = await open_store(":memory:", clock=clock)
    try:
        yield Desk(store, clock)
    finally:
        await store.close()


def run_async(main: Callable[[Desk], Any]) -> None:
    """Run a test's coroutine on a desk of its own."""

    async def on_desk() -> None:
        async with desk() as ground:
            await main(ground)

    asyncio.run(on_desk())


def said(request: Request) -> Sequence[str]:
    """The texts of a request, in order."""
    texts: list[str] = []
    for block in request.blocks:
        for part in block.parts:
            texts += [each.text for each in getattr(part, "content", (part,)) if hasattr(each, "text")]
    return texts
