"""Work in a task that has lived through a cancellation: who cancels himself in it does not end the run.

A task counts how often it was told to end, and keeps the count when it goes on all the same. Only what is
told while something is awaited wants an end of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from shiftbook.ending import tellings
from shiftbook.entries import ActionFinished, ModelFailed
from shiftbook.providers.scripted import call, say
from shiftbook.testing.crash import Dies
from shiftbook.tools.contract import Context
from shiftbook.tools.function import tool
from tests.run.desk import Desk, look, run_async
from tests.run.test_actions import RUN as ACTING
from tests.run.test_actions import dies, goes_on
from tests.run.test_turns import RUN, through
from tests.tools.contexts import a_context


class Ends:
    """Somebody else's tool, which raises a cancellation of its own."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def run(self, arguments: Mapping[str, Any], context: Context) -> Any:
        raise asyncio.CancelledError

    async def reconcile(self, arguments: Mapping[str, Any], context: Context) -> Any:
        raise asyncio.CancelledError


async def live_through() -> None:
    """The current task is told to end, and goes on."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    assert tellings() == 1


def test_a_provider_that_cancels_itself_is_a_failed_attempt() -> None:
    async def main(ground: Desk) -> None:
        await live_through()

        def script(request: Any) -> Any:
            if request.attempt < 3:
                raise asyncio.CancelledError
            return say("done")

        assert (await through(ground, script)).state == "finished"
        assert [what.attempt for what in await ground.whats(RUN, ModelFailed)] == [1, 2]

    run_async(main)


def test_a_tool_that_cancels_itself_has_an_outcome_and_the_run_goes_on() -> None:
    async def main(ground: Desk) -> None:
        await live_through()
        script = [call("look", {"place": "A"}), say("done")]
        assert (await through(ground, script, tools=(Ends(look),))).state == "finished"
        assert [what.outcome for what in await ground.whats(RUN, ActionFinished)] == ["cancelled"]

    run_async(main)


def test_a_question_that_cancels_itself_leaves_the_outcome_unknown_and_the_run_goes_on() -> None:
    async def never(context: Context) -> Any:
        raise AssertionError

    @tool(repeat="reconcile", reconcile=never)
    async def send() -> str:
        """Send something."""
        return "sent"

    async def main(ground: Desk) -> None:
        script = [call("send"), say("done")]
        await dies(ground, script, Dies(1, "after", "tool.send"), tools=(send,))
        await live_through()
        assert (await goes_on(ground, script, tools=(Ends(send),))).state == "finished"
        assert [what.outcome for what in await ground.whats(ACTING, ActionFinished)] == ["unknown"]

    run_async(main)


def test_a_function_that_cancels_itself_fails_and_one_that_is_told_ends() -> None:
    @tool(repeat="safe")
    async def gives_up() -> str:
        """Give up."""
        raise asyncio.CancelledError("by itself")

    @tool(repeat="safe")
    async def waits() -> str:
        """Wait for ever."""
        return str(await asyncio.get_running_loop().create_future())

    async def main() -> None:
        await live_through()
        with pytest.raises(RuntimeError, match="gives_up"):
            await gives_up.run({}, a_context())
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await waits.run({}, a_context())

    asyncio.run(main())
