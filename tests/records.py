"""Real runs in small, made by the engine under a clock that the test owns: what is checked, carried and told.

`warehouse` has all that a run can have today: parallel calls, a failed attempt, a reply cut half-way, a call
that a dead process left open, mail, media, a payload in a blob, odd values, and rebuilds of the prompt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from shiftbook import Agent, Entry, Store, open_store, post, resume, start, tool
from shiftbook.providers.scripted import Script, Scripted, Step, call, calls, cut, fails, say
from shiftbook.testing.clock import SimulatedClock
from shiftbook.tools.results import Image
from shiftbook.views import entries_of

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
ODD = {
    "zebra": 1,
    "alpha": float("nan"),
    "bytes": b"\x00\xff",
    "text": "nul \x00 esc \x1b[31m lone \udc88 high",
}
LONG = "long " * 14_000


@tool(repeat="safe")
async def count(place: str) -> str:
    """How many boxes stand there."""
    return f"{len(place)} boxes at {place}"


@tool(repeat="safe")
async def odd() -> Any:
    """Values that JSON cannot say."""
    return ODD


@tool(repeat="safe")
async def long_list() -> str:
    """A list that is longer than a row may be."""
    return LONG


@tool(repeat="safe")
async def photo() -> Image:
    """A picture."""
    return Image(PNG)


STEPS: list[Step] = [
    calls(call("count", {"place": "A"}), call("count", {"place": "B"}), text="Counting."),
    fails(then=call("odd")),
    call("photo"),
    call("long_list"),
    cut(after="I was about to", then=say("Never said.")),
    call("count", {"place": "\x1b]0;title\x07\u202e"}),
    say("All counted."),
    say("Thank you."),
    call("count", {"place": "C"}),
    say("Three boxes."),
]


def agent(
    script: Script = STEPS,
    tools: Sequence[Any] = (count, odd, long_list, photo),
    *,
    policy: str = "window",
    cap: int = 3_400,
) -> Agent:
    """An agent that follows a script."""
    return Agent(
        name="warehouse",
        model=Scripted(script),
        instructions="You keep the warehouse.",
        tools=tools,
        policy=policy,
        cap=cap,
        reference="tests/records.py:warehouse",
    )


async def die_in_a_call(
    store: Store, run: str, clock: SimulatedClock, script: Script, **options: Any
) -> None:
    """Take the run up and lose the process in the middle of its next call of `count`."""
    begun = asyncio.Event()

    @tool(repeat="safe", name="count")
    async def stuck(place: str) -> str:
        """How many boxes stand there."""
        begun.set()
        await asyncio.Event().wait()
        return place

    holder = agent(script, (stuck, odd, long_list, photo), **options)
    handle = await resume(store, run, holder, clock=clock)
    work = asyncio.ensure_future(handle.finish())
    dying = asyncio.ensure_future(begun.wait())
    await asyncio.wait({work, dying}, return_when=asyncio.FIRST_COMPLETED)
    assert begun.is_set(), "the run came to rest without the call that it should die in"
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await handle.close()


async def warehouse(store: Store, clock: SimulatedClock, run: str = "warehouse1") -> str:
    """Drive the whole of it, and leave one message waiting in the inbox."""
    keeper = agent()
    async with await start(store, keeper, "Count the boxes.", clock=clock, run=run, tags=["demo"]) as handle:
        await handle.finish()
        clock.advance(1_000)
        await post(store, run, "Thanks \x00\udc88", clock=clock)
        await handle.finish()
    await post(store, run, "And C?", clock=clock)
    await die_in_a_call(store, run, clock, STEPS)
    clock.advance(60_000)
    async with await resume(store, run, keeper, clock=clock) as handle:
        await handle.finish()
    await post(store, run, "Still there?", clock=clock)
    return run


@dataclass(frozen=True)
class Place:
    """A store in a file, and the raw database behind its back."""

    store: Store
    path: Path
    run: str

    def sql(self, statement: str, bindings: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Do something to the database that no Shiftbook would."""
        connection = apsw.Connection(str(self.path))
        try:
            return connection.execute(statement, tuple(bindings)).fetchall()
        finally:
            connection.close()


async def opened(folder: Path, name: str = "book.db", *, clock: SimulatedClock | None = None) -> Place:
    """An empty store in a file."""
    path = folder / name
    return Place(await open_store(str(path), clock=clock or SimulatedClock(7)), path, "warehouse1")


async def made(folder: Path, *, clock: SimulatedClock | None = None) -> Place:
    """A store in a file that holds the warehouse's run."""
    clock = clock or SimulatedClock(7)
    place = await opened(folder, clock=clock)
    await warehouse(place.store, clock)
    return place


async def of(store: Store, run: str) -> list[Entry]:
    """All entries of a run."""
    return [entry async for entry in entries_of(store, run)]
