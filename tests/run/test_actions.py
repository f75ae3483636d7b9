"""Announce, act, record: cut-off calls, keys, attempts, and who may answer a call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from shiftbook.entries import ActionFinished, ActionStarted, ModelAnswered, ModelAsked
from shiftbook.errors import AgentMistake, Fenced
from shiftbook.providers.scripted import call, calls, say
from shiftbook.run.limits import Limits
from shiftbook.run.loop import resume, start
from shiftbook.run.mail import post
from shiftbook.testing.crash import Crash, Dies, Seams
from shiftbook.tools.contract import Context, TryAgain
from shiftbook.tools.function import tool
from tests.run.desk import LEASE_MS, Desk, agent, mail, run_async, said

RUN = "acting"


async def dies(ground: Desk, script: Any, death: Dies, run: str = RUN, **changes: Any) -> None:
    """A first process that dies there."""
    seams = Seams(death)
    first = seams.agent(agent(script, **changes))
    with pytest.raises(Crash):
        async with await start(
            seams.store(ground.store), first, "Begin.", run=run, clock=ground.clock, lease_ms=LEASE_MS
        ) as handle:
            await handle.finish()
    ground.expire()


async def goes_on(ground: Desk, script: Any, run: str = RUN, **changes: Any) -> Any:
    """A later process that comes to the end."""
    async with await resume(ground.store, run, agent(script, **changes), clock=ground.clock) as handle:
        return await handle.finish()


def stealing(ground: Desk, script: Callable[[], Any], thieves: list[Any]) -> Any:
    """A tool during which the lease runs out and another process takes the run to its end."""

    @tool(repeat="ask", name="look")
    async def look_away(place: str) -> str:
        """Look at a place."""
        ground.expire()
        thieves.append(await goes_on(ground, script(), tools=(look_away, mail)))
        return "seen too late"

    return look_away


def test_a1_killed_in_a_tool_then_a_new_message_gives_a_valid_request_with_the_pair_closed_in_place() -> None:
    async def main(ground: Desk) -> None:
        requests: list[Any] = []

        def script(request: Any) -> Any:
            requests.append(said(request))
            return [call("mail", {"to": "Ann"}), say("done")][request.turn - 1]

        await dies(ground, script, Dies(1, "before", "tool.mail"))
        await post(ground.store, RUN, "Are you there?", clock=ground.clock)
        await goes_on(ground, script)
        texts = requests[-1]
        assert texts.index("Are you there?") == len(texts) - 1
        assert "outcome of this call is unknown" in texts[-2]
        await ground.check(RUN)

    run_async(main)


def test_a4_b16_the_second_answer_to_a_call_is_refused_and_the_winners_stands() -> None:
    async def main(ground: Desk) -> None:
        def script() -> Any:
            return [call("look", {"place": "A"}), say("done")]

        thieves: list[Any] = []
        loser = agent(script(), tools=(stealing(ground, script, thieves), mail))
        handle = await start(ground.store, loser, "Begin.", run=RUN, clock=ground.clock, lease_ms=LEASE_MS)
        with pytest.raises(Fenced, match="this writer stops"):
            await handle.finish()
        await handle.close()
        (answer,) = await ground.whats(RUN, ActionFinished)
        assert answer.outcome == "unknown"
        assert thieves[0].state == "finished"
        # Whoever lost reads what the winner wrote and has nothing to do.
        again = await goes_on(ground, script(), tools=(stealing(ground, script, thieves), mail))
        assert again == thieves[0]
        assert len(thieves) == 1
        await ground.check(RUN)

    run_async(main)


def test_a6_a_call_and_its_answer_stay_in_their_run() -> None:
    async def main(ground: Desk) -> None:
        script = [call("pay", {"amount": 5}), say("done")]
        await dies(ground, script, Dies(1, "before", "tool.pay"), run="one")
        async with await start(ground.store, agent(script), "Begin.", run="two", clock=ground.clock) as run:
            await run.finish()
        assert await ground.whats("one", ActionFinished) == []
        await goes_on(ground, script, run="one")
        for name in ("one", "two"):
            keys = {what.key for what in await ground.whats(name, ActionStarted)}
            assert keys == {f"{name}-1.1"}
            (answer,) = await ground.whats(name, ActionFinished)
            assert answer.content[0].text == f"5 under {name}-1.1"
            await ground.check(name)

    run_async(main)


def test_a7_cancelled_in_a_tool_the_run_stops_and_the_next_request_ends_with_the_user() -> None:
    async def main(ground: Desk) -> None:
        asked: list[Any] = []

        def script(request: Any) -> Any:
            asked.append(request.turn)
            return [calls(call("hang"), call("mail", {"to": "Ann"})), say("done")][request.turn - 1]

        begun = asyncio.Event()

        @tool(repeat="safe")
        async def hang() -> str:
            """Never come back."""
            begun.set()
            await asyncio.get_running_loop().create_future()
            return ""

        hanging = agent(script, tools=(hang, mail), limits=Limits(parallel=1))
        async with await start(ground.store, hanging, "Begin.", run=RUN, clock=ground.clock) as run:
            work = asyncio.create_task(run.finish())
            await begun.wait()
            run.cancel()
            summary = await work
            assert (summary.state, asked) == ("cancelled", [1])
            answers = await ground.whats(RUN, ActionFinished)
            assert [(what.call, what.outcome) for what in answers] == [
                ("1.1", "cancelled"),
                ("1.2", "cancelled"),
            ]
            assert "may have taken effect" in answers[0].content[0].text
            assert "Nothing was done" in answers[1].content[0].text
            assert (await run.finish()).state == "cancelled"
            assert asked == [1]
            await run.say("Go on.")
            assert (await run.finish()).state == "finished"
        await ground.check(RUN)

    run_async(main)


def test_a8_a_crash_is_told_as_unknown_and_nobody_is_blamed() -> None:
    async def main(ground: Desk) -> None:
        script = [call("mail", {"to": "Ann"}), say("done")]
        await dies(ground, script, Dies(1, "after", "tool.mail"))
        summary = await goes_on(ground, script)
        (answer,) = await ground.whats(RUN, ActionFinished)
        text = answer.content[0].text
        assert answer.outcome == "unknown"
        assert "may or may not have taken effect" in text
        assert "Do not assume" in text
        assert not {"user", "person", "stopped", "cancelled"} & set(text.lower().split())
        assert (summary.cut_off, summary.repeated) == (1, 0)

    run_async(main)


def test_b3_what_is_repeated_is_the_recorded_call_and_the_model_is_not_asked_again() -> None:
    async def main(ground: Desk) -> None:
        amounts = iter([5, 6, 7])

        def script(request: Any) -> Any:
            return call("pay", {"amount": next(amounts)}) if request.turn == 1 else say("done")

        await dies(ground, script, Dies(1, "after", "tool.pay"))
        await goes_on(ground, script)
        (answer,) = await ground.whats(RUN, ActionFinished)
        assert answer.content[0].text == f"5 under {RUN}-1.1"
        assert next(amounts) == 6
        starts = await ground.whats(RUN, ActionStarted)
        assert [(what.key, what.attempt) for what in starts] == [(f"{RUN}-1.1", 1), (f"{RUN}-1.1", 2)]

    run_async(main)


def test_b8_the_last_answer_and_the_next_request_are_one_commit() -> None:
    async def main(ground: Desk) -> None:
        script = [calls(call("look", {"place": "A"}), call("look", {"place": "B"})), say("done")]
        async with await start(ground.store, agent(script), "Begin.", run=RUN, clock=ground.clock) as run:
            await run.finish()
        rows = await ground.store.entries.read(RUN)
        kinds = [row.kind for row in rows]
        last = max(index for index, kind in enumerate(kinds) if kind == "ActionFinished")
        # The chain's head stands on the last row of a commit.
        assert rows[last].head is None
        assert rows[last + 1].kind == "ModelAsked"
        assert rows[last + 1].head is not None
        assert rows[last - 1].kind == "ActionFinished"
        assert rows[last - 1].head is not None

    run_async(main)


def test_b13_one_key_through_retry_time_out_and_resume_and_another_for_an_equal_call() -> None:
    async def main(ground: Desk) -> None:
        seen: list[tuple[str, str, int]] = []

        @tool(repeat="keyed", attempts=5, timeout_s=0.001)
        async def deliver(order: str, context: Context) -> str:
            """Deliver an order."""
            seen.append((context.call, context.key, context.attempt))
            assert context.headers() == {"Idempotency-Key": context.key}
            if context.attempt == 1:
                raise TryAgain("not yet")
            if context.attempt == 2:
                await asyncio.get_running_loop().create_future()
            return "delivered"

        script = [call("deliver", {"order": "A"}), call("deliver", {"order": "A"}), say("done")]
        await dies(ground, script, Dies(2, "after", "tool.deliver"), tools=(deliver,))
        await goes_on(ground, script, tools=(deliver,))
        assert seen == [
            *(("1.1", f"{RUN}-1.1", attempt) for attempt in (1, 2, 3, 4)),
            *(("2.1", f"{RUN}-2.1", attempt) for attempt in (1, 2, 3)),
        ]
        await ground.check(RUN)

    run_async(main)


def test_b17_killed_between_two_attempts_each_attempt_is_a_record() -> None:
    async def main(ground: Desk) -> None:
        @tool(repeat="safe", attempts=4)
        async def flaky(context: Context) -> str:
            """Come right at the fourth attempt."""
            if context.attempt < 4:
                raise TryAgain("busy")
            return "done"

        script = [call("flaky"), say("done")]
        await dies(ground, script, Dies(2, "after", "tool.flaky"), tools=(flaky,))
        assert [what.attempt for what in await ground.whats(RUN, ActionStarted)] == [1, 2]
        await goes_on(ground, script, tools=(flaky,))
        assert [what.attempt for what in await ground.whats(RUN, ActionStarted)] == [1, 2, 3, 4]
        (answer,) = await ground.whats(RUN, ActionFinished)
        assert answer.outcome == "done"

    run_async(main)


def test_c8_tools_that_finish_in_the_same_instant_in_threads_all_keep_their_results() -> None:
    async def main(ground: Desk) -> None:
        together = threading.Barrier(8)

        @tool(repeat="safe")
        def meet(number: int) -> str:
            """Wait for the others."""
            together.wait(30)
            return f"number {number}"

        script = [calls(*(call("meet", {"number": number}) for number in range(8))), say("done")]
        async with await start(
            ground.store, agent(script, tools=(meet,)), "Begin.", run=RUN, clock=ground.clock
        ) as run:
            await run.finish()
        answers = {what.call: what.content[0].text for what in await ground.whats(RUN, ActionFinished)}
        assert answers == {f"1.{number + 1}": f"number {number}" for number in range(8)}
        await ground.check(RUN)

    run_async(main)


def test_a_call_is_not_tried_more_often_than_the_limit_over_all_resumes() -> None:
    async def main(ground: Desk) -> None:
        script = [call("pay", {"amount": 5}), say("done")]
        limits = Limits(attempts=2)
        await dies(ground, script, Dies(1, "after", "tool.pay"), limits=limits)
        seams = Seams(Dies(1, "after", "tool.pay"))
        second = await resume(
            seams.store(ground.store), RUN, seams.agent(agent(script, limits=limits)), clock=ground.clock
        )
        with pytest.raises(Crash):
            await second.finish()
        ground.expire()
        await goes_on(ground, script, limits=limits)
        assert [what.attempt for what in await ground.whats(RUN, ActionStarted)] == [1, 2]
        (answer,) = await ground.whats(RUN, ActionFinished)
        assert answer.outcome == "unknown"

    run_async(main)


def test_a_time_out_is_unknown_and_another_calls_cancellation_is_not_touched() -> None:
    async def main(ground: Desk) -> None:
        release, cancelled = threading.Event(), []

        @tool(repeat="ask", timeout_s=0.001)
        def slow() -> str:
            """Take too long."""
            release.wait(30)
            return "too late"

        @tool(repeat="safe")
        def steady(context: Context) -> str:
            """Work on while the other one is given up."""
            assert release.wait(30)
            cancelled.append(context.cancelled.is_set())
            return "done"

        script = [calls(call("slow"), call("steady")), say("done")]
        watched = agent(script, tools=(slow, steady))
        async with await start(ground.store, watched, "Begin.", run=RUN, clock=ground.clock) as run:
            async for entry in run.entries():
                if isinstance(entry.what, ActionFinished) and entry.what.call == "1.1":
                    release.set()
        outcomes = {what.call: what.outcome for what in await ground.whats(RUN, ActionFinished)}
        assert outcomes == {"1.1": "unknown", "1.2": "done"}
        assert cancelled == [False]
        turns = [what.turn for what in await ground.whats(RUN, ModelAsked, ModelAnswered)]
        assert turns == [1, 1, 2, 2]

    run_async(main)


def test_a_question_that_hangs_is_given_up_in_time_or_by_a_cancellation() -> None:
    async def main(ground: Desk) -> None:
        asked = asyncio.Event()

        async def hang(context: Context) -> Any:
            asked.set()
            return await asyncio.get_running_loop().create_future()

        def asking(timeout_s: float | None) -> Any:
            @tool(repeat="reconcile", reconcile=hang, timeout_s=timeout_s)
            async def send() -> str:
                """Send something."""
                return "sent"

            return send

        script = [call("send"), call("send"), say("done")]
        await dies(ground, script, Dies(1, "after", "tool.send"), tools=(asking(None),))
        async with await resume(
            ground.store, RUN, agent(script, tools=(asking(None),)), clock=ground.clock
        ) as run:
            work = asyncio.create_task(run.finish())
            await asked.wait()
            run.cancel()
            assert (await work).state == "cancelled"
        seams = Seams(Dies(1, "after", "tool.send"))
        second = seams.agent(agent(script, tools=(asking(None),)))
        handle = await resume(seams.store(ground.store), RUN, second, "Go on.", clock=ground.clock)
        with pytest.raises(Crash):
            await handle.finish()
        ground.expire()
        summary = await goes_on(ground, script, tools=(asking(0.001),))
        assert summary.state == "finished"
        outcomes = [(what.call, what.outcome) for what in await ground.whats(RUN, ActionFinished)]
        assert outcomes == [("1.1", "unknown"), ("2.1", "unknown")]
        await ground.check(RUN)

    run_async(main)


@pytest.mark.parametrize("name", ["parallel", "attempts", "snapshot_every"])
def test_a_limit_with_which_nothing_could_go_on_is_refused(name: str) -> None:
    with pytest.raises(AgentMistake, match=f"The limit {name} is 0"):
        Limits(**{name: 0})
