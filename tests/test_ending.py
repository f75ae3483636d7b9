"""A task that is told to end is waited for, however often it does not listen, and never for ever."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from shiftbook import ending
from shiftbook.clock import SystemClock
from shiftbook.ending import end, leave
from shiftbook.entries import ActionStarted, ModelAsked
from shiftbook.journal.open import open_store
from shiftbook.journal.postgres_address import parse_address
from shiftbook.journal.postgres_connections import Connections
from shiftbook.journal.postgres_news import News
from shiftbook.providers.scripted import Scripted, call, say
from shiftbook.run.agent import Agent
from shiftbook.run.book import read_entries
from shiftbook.run.loop import start
from shiftbook.tools.function import tool


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "AGAIN_S", 0.001)


async def deaf(times: int) -> str:
    """Swallows so many cancellations."""
    for _ in range(times):
        with suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()
    await asyncio.get_running_loop().create_future()
    return "never"


async def begun(work: Awaitable[Any]) -> asyncio.Future[Any]:
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    return task


async def complaints(act: Callable[[], Awaitable[None]]) -> list[str]:
    """What asyncio has to say of tasks that nobody asked."""
    said: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, told: said.append(told["message"]))
    await act()
    gc.collect()
    return said


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_task_that_swallows_cancellations_is_told_again_until_it_ends(times: int) -> None:
    async def main() -> None:
        task = await begun(deaf(times))
        assert await end(task)
        assert task.cancelled()

    asyncio.run(main())


def test_a_task_that_never_listens_is_left_behind_and_named(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        task = await begun(deaf(ending.TELLINGS + 1))
        with caplog.at_level(logging.WARNING, "shiftbook"):
            assert not await end(task)
        assert "deaf" in caplog.text

    asyncio.run(main())


def test_what_comes_of_a_task_that_was_told_to_end_is_nobodys_complaint() -> None:
    async def fails() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            raise ValueError("no")

    async def over() -> None:
        raise ValueError("no")

    async def main() -> None:
        for work in (fails, over):
            for way in (end, leave):

                async def act(work: Any = work, way: Any = way) -> None:
                    task = await begun(work())
                    told = way(task)
                    if told is not None:
                        await told
                    await asyncio.wait({task})

                assert await complaints(act) == []

    asyncio.run(main())


def test_news_that_swallows_its_end_ends() -> None:
    async def main() -> None:
        address = parse_address("postgresql://nobody@localhost/none")
        news = News(Connections(address, SystemClock()))
        news._listening = await begun(deaf(2))  # type: ignore[assignment]
        news._sending = await begun(deaf(1))  # type: ignore[assignment]
        await asyncio.wait_for(news.close(), 60)
        assert news._listening.done()  # type: ignore[union-attr]

    asyncio.run(main())


def test_a_run_that_is_left_ends_at_its_next_act_though_a_tool_swallows_the_cancellation() -> None:
    """The tool's answer is recorded, the model is not asked any more."""

    async def main() -> None:
        there = asyncio.Event()

        @tool(repeat="ask")
        async def work() -> str:
            """Take long, and do not listen."""
            there.set()
            with suppress(asyncio.CancelledError):
                await asyncio.get_running_loop().create_future()
            return "worked"

        store = await open_store(":memory:")
        agent = Agent(name="deaf", model=Scripted([call("work"), say("done")]), tools=(work,))
        async with await start(store, agent, "Begin.", run="one") as run:
            asking = asyncio.create_task(run.finish())
            await there.wait()
            await end(asking)
        asked = [each for each in await read_entries(store, "one") if isinstance(each.what, ModelAsked)]
        assert len(asked) == 1
        await store.close()

    asyncio.run(main())


def test_a_tool_that_fails_while_it_is_cut_off_is_nobodys_complaint() -> None:
    async def main() -> None:
        there = asyncio.Event()

        @tool(repeat="ask")
        async def work() -> str:
            """Fail when told to end."""
            there.set()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                await asyncio.sleep(0)
                raise ValueError("no")

        async def act() -> None:
            store = await open_store(":memory:")
            agent = Agent(name="sour", model=Scripted([call("work"), say("done")]), tools=(work,))
            async with await start(store, agent, "Begin.", run="one") as run:
                entries = run.entries()
                while not isinstance((await anext(entries)).what, ActionStarted):
                    pass
                await there.wait()
                await entries.aclose()  # type: ignore[attr-defined]
            await store.close()

        assert await complaints(act) == []

    asyncio.run(main())


def test_whoever_is_cancelled_while_he_ends_a_task_leaves_nothing_that_asyncio_complains_of() -> None:
    async def main() -> None:
        complaints: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
        go = asyncio.Event()

        async def dies_late() -> None:
            with suppress(asyncio.CancelledError):
                await go.wait()
            await go.wait()
            raise OSError("the disk")

        task = asyncio.create_task(dies_late())
        await asyncio.sleep(0)
        ender = asyncio.create_task(end(task))
        await asyncio.sleep(0)
        ender.cancel()
        await asyncio.wait({ender})
        assert ender.cancelled()
        go.set()
        await asyncio.wait({task})
        del task, ender
        gc.collect()
        await asyncio.sleep(0)
        assert complaints == []

    asyncio.run(main())
