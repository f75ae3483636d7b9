"""Code that is not ours: what a tool raises is a result, what a provider gives leaves a readable run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from shiftbook.entries import ActionFinished, ModelAnswered, ModelFailed, ModelInterrupted
from shiftbook.errors import BadInput
from shiftbook.messages import Call, Emit, Reply, Request, Text, TextDelta, Usage
from shiftbook.providers.scripted import call, say
from shiftbook.run.loop import Run, resume, start
from shiftbook.run.mail import post
from shiftbook.tools.function import tool
from tests.run.desk import Desk, agent, run_async

RUN = "odd"


class Speechless(Exception):
    """An error whose message cannot be had."""

    def __str__(self) -> str:
        raise ValueError("no words")


ODD_ERRORS: list[Callable[[], BaseException]] = [
    Speechless,
    lambda: SystemExit(7),
    lambda: StopIteration(3),
    lambda: asyncio.CancelledError("by itself"),
    lambda: ValueError("\x00\udc88\x1b[31m"),
]


@pytest.mark.parametrize("make", [*ODD_ERRORS, GeneratorExit, KeyboardInterrupt])
def test_whatever_a_tool_on_a_thread_raises_is_its_result(make: Callable[[], BaseException]) -> None:
    @tool(repeat="safe")
    def breaks() -> str:
        """Break."""
        raise make()

    raises(breaks)


@pytest.mark.parametrize("make", ODD_ERRORS)
def test_whatever_a_tool_on_the_loop_raises_is_its_result(make: Callable[[], BaseException]) -> None:
    @tool(repeat="safe")
    async def breaks() -> str:
        """Break."""
        raise make()

    raises(breaks)


def raises(breaks: Any) -> None:
    """The run goes on after that tool and its failure is on record, with a traceback."""

    async def main(ground: Desk) -> None:
        odd = agent([call("breaks"), say("done")], tools=(breaks,))
        async with await start(ground.store, odd, "Begin.", run=RUN, clock=ground.clock) as run:
            assert (await run.finish()).state == "finished"
        (finished,) = await ground.whats(RUN, ActionFinished)
        assert finished.outcome == "failed"
        assert "Traceback" in finished.traceback
        await ground.check(RUN)

    run_async(main)


class Gives:
    """A provider of somebody else's, whose first reply is what its function makes."""

    name = "odd"

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._asked = 0

    async def reply(self, request: Request, emit: Emit) -> Reply:
        """The next reply."""
        self._asked += 1
        made: Any = self._make() if self._asked == 1 else say("done")
        if isinstance(made, BaseException):
            raise made
        return made  # type: ignore[no-any-return]  # that is what is tried here


@pytest.mark.parametrize(
    "make",
    [
        lambda: None,
        lambda: {"parts": []},
        lambda: Reply("words", "end", Usage()),  # type: ignore[arg-type]
        lambda: Reply((Text("words"),), "tool_use", Usage()),  # type: ignore[arg-type]
        lambda: Reply((Text("words"),), "end", None),  # type: ignore[arg-type]
        lambda: Reply((Text("words"),), "end", Usage(output=1.5)),  # type: ignore[arg-type]
        lambda: Reply((Text("words"),), "end", Usage(), model=4),  # type: ignore[arg-type]
        lambda: Reply((Text(4),), "end", Usage()),  # type: ignore[arg-type]
        lambda: Reply((Call("", "look", ["a"]),), "calls", Usage()),  # type: ignore[arg-type]
        lambda: Reply((Call("", "look", {"place": object()}),), "calls", Usage()),
        Speechless,
    ],
)
def test_j2_what_no_entry_can_hold_is_a_failed_attempt_and_the_run_is_taken_up_later(
    make: Callable[[], Any],
) -> None:
    async def main(ground: Desk) -> None:
        odd = agent([], tools=())
        object.__setattr__(odd, "model", Gives(make))
        async with await start(ground.store, odd, "Begin.", run=RUN, clock=ground.clock) as run:
            assert (await run.finish()).state == "failed"
        (failed,) = await ground.whats(RUN, ModelFailed)
        assert failed.error
        await ground.check(RUN)
        async with await resume(ground.store, RUN, odd, clock=ground.clock) as run:
            assert (await run.finish()).reply == "done"
        await ground.check(RUN)

    run_async(main)


def test_a_stop_that_comes_with_the_last_piece_leaves_the_reply_whole() -> None:
    class LastPiece:
        name = "last piece"

        async def reply(self, request: Request, emit: Emit) -> Reply:
            emit(TextDelta("The whole reply."))
            return say("The whole reply.")

    class Stops:
        """Somebody who looks on and has seen enough."""

        run: Run

        def entry(self, entry: Any) -> None: ...

        def progress(self, call: str, message: str) -> None: ...

        def delta(self, turn: int, attempt: int, event: Any) -> None:
            self.run.stop("seen enough")

    async def main(ground: Desk) -> None:
        watcher = Stops()
        stopped = agent([], tools=())
        object.__setattr__(stopped, "model", LastPiece())
        async with await start(
            ground.store, stopped, "Begin.", run=RUN, clock=ground.clock, watcher=watcher
        ) as run:
            watcher.run = run
            assert (await run.finish()).state == "paused"
        assert await ground.whats(RUN, ModelInterrupted) == []
        (answered,) = await ground.whats(RUN, ModelAnswered)
        assert answered.parts == (Text("The whole reply."),)
        await ground.check(RUN)

    run_async(main)


@pytest.mark.parametrize("message", [5, b"x", ["words"], (Text(5),), (object(),)])  # type: ignore[arg-type]
def test_j2_a_message_that_no_entry_can_hold_is_refused_at_every_door(message: Any) -> None:
    async def main(ground: Desk) -> None:
        with pytest.raises(BadInput, match="A message is a text"):
            await start(ground.store, agent([say("done")]), message, run=RUN, clock=ground.clock)
        async with await start(ground.store, agent([say("done")]), run=RUN, clock=ground.clock) as run:
            with pytest.raises(BadInput, match="A message is a text"):
                await run.say(message)
            with pytest.raises(BadInput, match="A message is a text"):
                await post(ground.store, RUN, message)
            await run.say("words")
            assert (await run.finish()).state == "finished"
        await ground.check(RUN)

    run_async(main)
