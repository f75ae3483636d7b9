"""Turns: retries with record, replies that break off, stops, limits, what a model sees, taking a run up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shiftbook.entries import (
    MODEL_VISIBLE,
    LimitReached,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    ModelInterrupted,
    PersonSaid,
    RunRested,
)
from shiftbook.projections.view import fold_all, view_to_plain
from shiftbook.providers.scripted import call, calls, cut, fails, hangs, say
from shiftbook.run.limits import Limits
from shiftbook.run.loop import resume, start
from shiftbook.run.mail import post
from shiftbook.run.restore import restore
from shiftbook.tools.function import tool
from tests.run.desk import Desk, agent, mail, run_async, said

RUN = "turning"


async def through(ground: Desk, script: Any, message: str | None = "Begin.", **changes: Any) -> Any:
    """A run of this script to its rest."""
    async with await start(
        ground.store, agent(script, **changes), message, run=RUN, clock=ground.clock
    ) as run:
        return await run.finish()


async def again(ground: Desk, script: Any, message: str | None = None, **changes: Any) -> Any:
    async with await resume(ground.store, RUN, agent(script, **changes), message, clock=ground.clock) as run:
        return await run.finish()


def test_b18_each_failed_attempt_is_a_record_and_one_request() -> None:
    async def main(ground: Desk) -> None:
        asked: list[tuple[int, int]] = []

        def script(request: Any) -> Any:
            asked.append((request.turn, request.attempt))
            return fails(times=3, status=503, retry_after_ms=4_000, then=say("done"))

        began_ms = ground.clock.now_ms()
        summary = await through(ground, script)
        assert summary.state == "finished"
        assert asked == [(1, 1), (1, 2), (1, 3), (1, 4)]
        failures = await ground.whats(RUN, ModelFailed)
        assert [(what.attempt, what.status) for what in failures] == [(1, 503), (2, 503), (3, 503)]
        assert ground.clock.now_ms() - began_ms >= 12_000
        await ground.check(RUN)

    run_async(main)


def test_retries_come_to_an_end_and_a_later_resume_begins_anew() -> None:
    async def main(ground: Desk) -> None:
        limits = Limits(retries=2)
        summary = await through(ground, [fails(times=4, then=say("done"))], limits=limits)
        assert summary.state == "failed"
        assert len(await ground.whats(RUN, ModelFailed)) == 3
        summary = await again(ground, [fails(times=4, then=say("done"))], limits=limits)
        assert summary.state == "finished"
        assert [what.attempt for what in await ground.whats(RUN, ModelFailed)] == [1, 2, 3, 4]
        await ground.check(RUN)

    run_async(main)


def test_a_wish_to_wait_for_days_ends_the_retries_and_says_so() -> None:
    async def main(ground: Desk) -> None:
        began_ms = ground.clock.now_ms()
        limits = Limits(wish_ms_max=60_000)
        longest = [fails(times=1, status=429, retry_after_ms=60_000, then=say("done"))]
        assert (await through(ground, longest, limits=limits)).state == "finished"
        assert ground.clock.now_ms() - began_ms >= 60_000
        days = [fails(times=1, status=429, retry_after_ms=259_200_000, then=say("done"))]
        summary = await again(ground, [say("unused"), *days], "And now?", limits=limits)
        assert summary.state == "failed"
        assert ground.clock.now_ms() - began_ms < 3_600_000
        failure = (await ground.whats(RUN, ModelFailed))[-1]
        assert failure.retry_at_ms is None
        assert "259200 s" in failure.error
        assert (await again(ground, [say("unused"), say("Later.")], limits=limits)).state == "finished"
        await ground.check(RUN)

    run_async(main)


def test_a_fault_for_good_is_not_tried_again() -> None:
    async def main(ground: Desk) -> None:
        summary = await through(ground, [fails(retryable=False, status=400)])
        assert summary.state == "failed"
        (failure,) = await ground.whats(RUN, ModelFailed)
        assert failure.retry_at_ms is None

    run_async(main)


def test_l3_a_reply_that_broke_off_is_a_record_and_stays_one_after_a_resume() -> None:
    async def main(ground: Desk) -> None:
        requests: list[Any] = []
        steps = [cut(after="The stock is", times=None), say("The stock is 12."), say("Yes.")]

        def script(request: Any) -> Any:
            requests.append(said(request))
            return steps[request.turn - 1]

        await through(ground, script)
        (broken,) = await ground.whats(RUN, ModelInterrupted)
        assert broken.parts[0].text == "The stock is"
        assert any("cut off" in text for text in requests[1])
        await again(ground, script, "Is that whole?")
        assert any("cut off" in text for text in requests[2])
        assert len(await ground.whats(RUN, ModelAnswered)) == 2
        await ground.check(RUN)

    run_async(main)


def test_a_run_that_failed_by_broken_replies_is_taken_up_by_a_message() -> None:
    async def main(ground: Desk) -> None:
        limits = Limits(interruptions=1)
        script = [cut(after="a", times=None), cut(after="b", times=None), say("whole")]
        assert (await through(ground, script, limits=limits)).state == "failed"
        assert (await again(ground, script, "Try again.", limits=limits)).state == "finished"
        await ground.check(RUN)

    run_async(main)


def test_a_provider_that_cancels_itself_is_a_failed_attempt_and_not_a_loop() -> None:
    async def main(ground: Desk) -> None:
        def script(request: Any) -> Any:
            if request.attempt < 3:
                raise asyncio.CancelledError
            return say("done")

        summary = await through(ground, script)
        assert summary.state == "finished"
        assert [what.attempt for what in await ground.whats(RUN, ModelFailed)] == [1, 2]

    run_async(main)


def test_a_request_that_hangs_is_given_up_after_its_time() -> None:
    async def main(ground: Desk) -> None:
        summary = await through(ground, [hangs(times=1, then=say("done"))], limits=Limits(request_ms=1))
        assert summary.state == "finished"
        (failure,) = await ground.whats(RUN, ModelFailed)
        assert "no reply within" in failure.error

    run_async(main)


def test_a_stop_cuts_the_reply_keeps_the_part_and_the_run_goes_on_later() -> None:
    async def main(ground: Desk) -> None:
        script = [hangs(times=None, part="Let me think"), say("done")]
        begun = asyncio.Event()

        class Watches:
            def entry(self, entry: Any) -> None: ...
            def progress(self, call: str, message: str) -> None: ...
            def delta(self, turn: int, attempt: int, event: Any) -> None:
                begun.set()

        run = await start(
            ground.store, agent(script), "Begin.", run=RUN, clock=ground.clock, watcher=Watches()
        )
        async with run:
            work = asyncio.create_task(run.finish())
            await begun.wait()
            run.stop("lunch")
            summary = await work
        assert (summary.state, summary.why) == ("paused", "lunch")
        (broken,) = await ground.whats(RUN, ModelInterrupted)
        assert broken.reason == "lunch"
        assert (await again(ground, script)).state == "finished"
        await ground.check(RUN)

    run_async(main)


def test_w2_a_limit_rests_the_run_and_a_higher_one_takes_it_up() -> None:
    async def main(ground: Desk) -> None:
        script = [call("look", {"place": "A"}), call("look", {"place": "B"}), say("done")]
        summary = await through(ground, script, limits=Limits(turns=2))
        assert (summary.state, summary.why) == ("limited", "turns")
        (reached,) = await ground.whats(RUN, LimitReached)
        assert (reached.value, reached.allowed) == (2, 2)
        assert (await again(ground, script)).state == "finished"
        await ground.check(RUN)

    run_async(main)


def test_w3_a_result_over_its_limit_is_cut_and_a_warning_says_so() -> None:
    async def main(ground: Desk) -> None:
        @tool(repeat="safe")
        async def pour() -> str:
            """Return far too much."""
            return "ä" * 5_000

        await through(ground, [call("pour"), say("done")], tools=(pour,), limits=Limits(result_bytes=1_001))
        (warned,) = [what for what in await ground.whats(RUN) if type(what).__name__ == "Warned"]
        assert warned.what == "result cut"
        answers = [what for what in await ground.whats(RUN) if type(what).__name__ == "ActionFinished"]
        text = answers[0].content[0].text
        assert text.startswith("ä" * 500 + "\n[")
        assert "8999 bytes left out" in text

    run_async(main)


def test_l6_only_what_a_model_may_see_is_in_its_requests() -> None:
    async def main(ground: Desk) -> None:
        seen: set[int] = set()

        def script(request: Any) -> Any:
            seen.update(position for block in request.blocks for position in block.entries)
            steps = [
                fails(message="side note", then=calls(call("look", {"place": "A"}), call("juggle"))),
                cut(after="half", times=None),
                say("done"),
                say("again"),
            ]
            return steps[request.turn - 1]

        await through(ground, script)
        await again(ground, script, "More.")
        entries = {entry.position: entry for entry in await ground.entries(RUN)}
        assert all(type(entries[position].what) in MODEL_VISIBLE for position in seen)
        visible = {position for position, entry in entries.items() if type(entry.what) in MODEL_VISIBLE}
        last_asked = max(position for position, entry in entries.items() if entry.kind == "ModelAsked")
        assert {position for position in visible if position < last_asked} <= seen
        assert {type(entry.what) for entry in entries.values()} >= {ModelFailed, RunRested, ModelAsked}

    run_async(main)


def test_what_was_written_first_is_heard_first() -> None:
    async def main(ground: Desk) -> None:
        await through(ground, [say("one")])
        await post(ground.store, RUN, "first", clock=ground.clock)
        await again(ground, [say("one"), say("two")], "second")
        texts = [what.content[0].text for what in await ground.whats(RUN, PersonSaid)]
        assert texts == ["Begin.", "first", "second"]
        await ground.check(RUN)

    run_async(main)


def test_a_holder_that_rests_hears_what_is_posted_since() -> None:
    async def main(ground: Desk) -> None:
        script = [say("one"), say("two")]
        async with await start(ground.store, agent(script), "Begin.", run=RUN, clock=ground.clock) as run:
            assert (await run.finish()).turns == 1
            await post(ground.store, RUN, "more", clock=ground.clock)
            assert (await run.finish()).turns == 2
            assert (await run.finish()).turns == 2

    run_async(main)


@pytest.mark.parametrize("every", [1, 2, 3, 7])
def test_a_view_from_a_snapshot_is_the_view_from_scratch(every: int) -> None:
    async def main(ground: Desk) -> None:
        script = [
            calls(call("look", {"place": "A"}), call("mail", {"to": "Ann"})),
            fails(then=call("look", {"place": "B"})),
            cut(after="half", times=None),
            say("done"),
        ]
        await through(ground, script, limits=Limits(snapshot_every=every), tools=(look_here, mail))
        kept = await restore(ground.store, RUN)
        await ground.store.cache.drop(RUN)
        scratch = await restore(ground.store, RUN)
        folded = fold_all(await ground.entries(RUN))
        assert view_to_plain(kept.view) == view_to_plain(scratch.view) == view_to_plain(folded)
        assert kept.prompts.prompt is not None
        assert scratch.prompts.prompt is not None
        assert kept.prompts.prompt.blocks == scratch.prompts.prompt.blocks
        assert kept.prompts.fresh == scratch.prompts.fresh

    run_async(main)


@tool(repeat="safe", name="look")
async def look_here(place: str) -> str:
    """Look at a place."""
    return place
