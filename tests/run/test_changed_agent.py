"""A run taken up by another version of its agent: nothing is given to code that did not promise it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shiftbook.entries import (
    ActionFinished,
    ActionStarted,
    AgentDeclared,
    EpochOpened,
    ModelAnswered,
    ModelAsked,
    ModelInterrupted,
)
from shiftbook.projections.view import VIEW_VERSION
from shiftbook.providers.scripted import call, calls, say
from shiftbook.run.limits import Limits
from shiftbook.run.loop import resume, start
from shiftbook.testing.crash import Crash, Dies, Seams
from shiftbook.tools.function import tool
from tests.run.desk import LEASE_MS, Desk, agent, look, mail, pay, run_async

RUN = "changing"


async def left_at(ground: Desk, script: Any, dies: Dies, **changes: Any) -> None:
    """A run whose first process died there."""
    seams = Seams(dies)
    first = seams.agent(agent(script, **changes))
    with pytest.raises(Crash):
        async with await start(
            seams.store(ground.store), first, "Begin.", run=RUN, clock=ground.clock, lease_ms=LEASE_MS
        ) as run:
            await run.finish()
    ground.expire()


async def taken_up(ground: Desk, script: Any, **changes: Any) -> Any:
    async with await resume(ground.store, RUN, agent(script, **changes), clock=ground.clock) as run:
        return await run.finish()


@pytest.mark.parametrize("seam", ["before", "inside"])
def test_an_open_request_of_the_old_agent_is_closed_and_not_sent_by_the_new_one(seam: Any) -> None:
    async def main(ground: Desk) -> None:
        asked: list[tuple[int, str]] = []

        def script(request: Any) -> Any:
            asked.append((request.turn, request.instructions))
            return say("done, after a while and in several pieces of text")

        await left_at(ground, script, Dies(1, seam, "model"), instructions="Old.")
        asked.clear()
        summary = await taken_up(ground, script, instructions="New.")
        assert summary.state == "finished"
        assert asked == [(2, "New.")]
        assert [what.turn for what in await ground.whats(RUN, ModelInterrupted)] == [1]
        assert [what.turn for what in await ground.whats(RUN, ModelAnswered)] == [2]
        await ground.check(RUN)

    run_async(main)


def test_an_agent_changed_before_the_first_request_leaves_a_sound_record() -> None:
    async def main(ground: Desk) -> None:
        # Death before the second commit, which would announce the first request.
        await left_at(ground, [say("done")], Dies(2, "before", "entries.append"), instructions="Old.")
        await taken_up(ground, [say("done")], instructions="New.")
        await ground.check(RUN)
        await taken_up(ground, [say("done"), say("again")], instructions="New.")

    run_async(main)


def test_a_snapshot_taken_when_the_agent_changes_resumes_the_run() -> None:
    async def main(ground: Desk) -> None:
        limits = Limits(snapshot_every=1)
        script = [call("look", {"place": "A"}), call("look", {"place": "B"}), say("done")]
        await left_at(ground, script, Dies(2, "before", "model"), instructions="Old.")
        seams = Seams(Dies(1, "before", "model"))
        second = seams.agent(agent(script, instructions="New.", limits=limits))
        run = await resume(seams.store(ground.store), RUN, second, clock=ground.clock)
        with pytest.raises(Crash):
            await run.finish()
        ground.expire()
        assert await ground.store.cache.load(RUN, "run", VIEW_VERSION) is not None
        summary = await taken_up(ground, script, instructions="New.", limits=limits)
        assert summary.state == "finished"
        await ground.check(RUN)

    run_async(main)


@tool(repeat="safe", name="look")
async def waits(place: str) -> str:
    """Look at a place."""
    await asyncio.sleep(0)
    return place


@pytest.mark.parametrize(
    "change",
    [{"model": "another"}, {"instructions": "New."}, {"parameters": {"top_p": 1}}, {"tools": (look,)}],
)
def test_p7_any_change_is_declared_and_starts_an_epoch(change: dict[str, Any]) -> None:
    async def main(ground: Desk) -> None:
        async with await start(
            ground.store, agent([say("one")], instructions="Old."), "Begin.", run=RUN, clock=ground.clock
        ) as run:
            await run.finish()
        changed = agent([say("one"), say("two")], **({"instructions": "Old."} | change))
        async with await resume(ground.store, RUN, changed, "Go on.", clock=ground.clock) as run:
            await run.finish()
        assert len(await ground.whats(RUN, AgentDeclared)) == 2
        assert [what.epoch for what in await ground.whats(RUN, EpochOpened)] == [1, 2]
        await ground.check(RUN)

    run_async(main)


@tool(repeat="keyed", name="look")
async def look_keyed(place: str) -> str:
    """Look at a place."""
    return f"{place}: looked at with a key"


def test_a_changed_repeat_policy_is_declared_and_later_calls_run() -> None:
    async def main(ground: Desk) -> None:
        script = [call("look", {"place": "A"}), say("one"), call("look", {"place": "B"}), say("two")]
        async with await start(ground.store, agent(script), "Begin.", run=RUN, clock=ground.clock) as run:
            await run.finish()
        changed = agent(script, tools=(look_keyed, mail, pay))
        async with await resume(ground.store, RUN, changed, "Again.", clock=ground.clock) as run:
            await run.finish()
        outcomes = [what.outcome for what in await ground.whats(RUN, ActionFinished)]
        assert outcomes == ["done", "done"]
        await ground.check(RUN)

    run_async(main)


@tool(repeat="safe", name="look")
async def look_elsewhere(place: str, floor: int) -> str:
    """Look at a place on a floor."""
    raise AssertionError("the call was given to code that did not promise it")


@pytest.mark.parametrize("tools", [(mail, pay), (look_elsewhere, mail), (look_keyed, mail)])
@pytest.mark.parametrize("moment", ["before", "inside"])
def test_a3_a_call_in_flight_is_never_given_to_changed_code(tools: Any, moment: Any) -> None:
    async def main(ground: Desk) -> None:
        script = [call("look", {"place": "A"}), say("done")]
        await left_at(ground, script, Dies(1, moment, "tool.look"), tools=(waits, mail, pay))
        summary = await taken_up(ground, script, tools=tools)
        assert summary.state == "finished"
        (finished,) = await ground.whats(RUN, ActionFinished)
        assert finished.outcome == "unknown"
        assert "outcome of this call is unknown" in finished.content[0].text
        assert len(await ground.whats(RUN, ActionStarted)) == 1
        await ground.check(RUN)

    run_async(main)


@pytest.mark.parametrize("tools", [(mail, pay), (look_elsewhere, mail), (look_keyed, mail)])
def test_a3_a_call_that_was_not_started_is_never_given_to_changed_code(tools: Any) -> None:
    async def main(ground: Desk) -> None:
        script = [calls(call("mail", {"to": "Ann"}), call("look", {"place": "A"})), say("done")]
        await left_at(
            ground, script, Dies(1, "before", "tool.mail"), tools=(look, mail), limits=Limits(parallel=1)
        )
        summary = await taken_up(ground, script, tools=tools)
        assert summary.state == "finished"
        outcomes = {what.call: what.outcome for what in await ground.whats(RUN, ActionFinished)}
        assert outcomes["1.2"] in ("cancelled", "failed")
        assert all(what.call != "1.2" for what in await ground.whats(RUN, ActionStarted))
        await ground.check(RUN)

    run_async(main)


def test_a3_a_call_of_a_tool_that_was_not_there_is_not_given_to_one_that_came_later() -> None:
    async def main(ground: Desk) -> None:
        script = [calls(call("mail", {"to": "Ann"}), call("look", {"place": "A"})), say("done")]
        # `look` is unknown to the first agent. It dies after the reply is written, before that is told.
        await left_at(ground, script, Dies(3, "after", "entries.append"), tools=(mail,))
        assert len(await ground.whats(RUN, ModelAnswered, ModelAsked)) == 2
        await taken_up(ground, script, tools=(mail, look))
        assert all(what.call != "1.2" for what in await ground.whats(RUN, ActionStarted))
        await ground.check(RUN)

    run_async(main)
