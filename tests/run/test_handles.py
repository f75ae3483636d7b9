"""A handle that is left early, used twice, or closed: one loop at a time, and none without its lease."""

from __future__ import annotations

import asyncio

import pytest

from shiftbook.entries import ActionFinished, ActionStarted, Entry, ModelAsked
from shiftbook.errors import BadInput
from shiftbook.providers.scripted import call, say
from shiftbook.run.loop import resume, start
from shiftbook.tools.function import tool
from tests.run.desk import Desk, agent, run_async

RUN = "handled"
SCRIPT = [*[call("look", {"place": place}) for place in "ABCDEF"], say("done")]


def test_an_iteration_that_was_left_works_no_more_once_the_handle_is_closed() -> None:
    async def main(ground: Desk) -> None:
        held = None  # Somebody who holds the generator keeps Python from closing it.
        async with await start(ground.store, agent(SCRIPT), "Begin.", run=RUN, clock=ground.clock) as handle:
            held = handle.entries()
            async for entry in held:
                if isinstance(entry.what, ActionFinished):
                    break
        before = (await ground.store.entries.head(RUN)).position
        for _ in range(50):
            await asyncio.sleep(0)
        assert (await ground.store.entries.head(RUN)).position == before
        async with await resume(ground.store, RUN, agent(SCRIPT), clock=ground.clock) as handle:
            assert (await handle.finish()).repeated == 0
        del held
        await ground.check(RUN)

    run_async(main)


def test_after_an_iteration_that_was_left_the_next_goes_on_where_it_was() -> None:
    async def main(ground: Desk) -> None:
        seen: list[Entry] = []
        left = []
        async with await start(ground.store, agent(SCRIPT), "Begin.", run=RUN, clock=ground.clock) as handle:
            for _ in range(4):
                left.append(handle.entries())
                async for entry in left[-1]:
                    seen.append(entry)
                    if isinstance(entry.what, ActionStarted | ModelAsked):
                        break
            assert (await handle.finish()).state == "finished"
            seen += [entry async for entry in handle.entries()]
        assert [entry.position for entry in seen] == list(range(1, len(seen) + 1))
        assert (await ground.store.entries.head(RUN)).position == len(seen)
        await ground.check(RUN)

    run_async(main)


def test_a_handle_has_one_loop_at_a_time_and_none_after_its_end() -> None:
    async def main(ground: Desk) -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        @tool(repeat="safe")
        async def look(place: str) -> str:
            """Look at a place."""
            begun.set()
            await go_on.wait()
            return place

        looking = agent(SCRIPT, tools=(look,))
        async with await start(ground.store, looking, "Begin.", run=RUN, clock=ground.clock) as handle:
            first = asyncio.ensure_future(handle.finish())
            await begun.wait()
            with pytest.raises(BadInput, match="at work in this handle already"):
                await handle.finish()
            go_on.set()
            assert (await first).state == "finished"
            await handle.say("Once more.")
        before = (await ground.store.entries.head(RUN)).position
        with pytest.raises(BadInput, match="was closed"):
            await handle.finish()
        assert (await ground.store.entries.head(RUN)).position == before
        await ground.check(RUN)

    run_async(main)
