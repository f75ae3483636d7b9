"""Another model takes over: declared, in a new epoch, found again on a resume, and never in silence."""

from __future__ import annotations

from typing import Any

import pytest

from shiftbook.entries import (
    AgentDeclared,
    EpochOpened,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    ModelInterrupted,
    Warned,
)
from shiftbook.errors import AgentMistake, AgentUnusable, ProviderFault
from shiftbook.providers.scripted import Scripted, call, fails, say
from shiftbook.run.agent import declare
from shiftbook.run.limits import Limits
from shiftbook.run.loop import resume, start
from shiftbook.testing.crash import Crash, Dies, Seams
from shiftbook.testing.validator import check_request
from tests.run.desk import LEASE_MS, Desk, agent, run_async

RUN = "falling"
GONE = fails(times=None, retryable=False, status=404, message="there is no such model")
BUSY = fails(times=None, status=529, message="overloaded")


def other(name: str, script: Any) -> Scripted:
    return Scripted(script, name, check=check_request)


async def through(ground: Desk, script: Any, message: str | None = "Begin.", **changes: Any) -> Any:
    async with await start(
        ground.store, agent(script, **changes), message, run=RUN, clock=ground.clock
    ) as run:
        return await run.finish()


async def again(ground: Desk, script: Any, message: str | None = None, **changes: Any) -> Any:
    async with await resume(ground.store, RUN, agent(script, **changes), message, clock=ground.clock) as run:
        return await run.finish()


async def models(ground: Desk) -> list[str]:
    return [what.model for what in await ground.whats(RUN, AgentDeclared)]


@pytest.mark.parametrize(
    ("fault", "attempts"),
    [(GONE, 1), (BUSY, 3), (fails(times=None, retryable=False, status=401, message="no key"), 1)],
)
def test_a_model_that_cannot_be_had_is_followed_by_the_next_in_a_new_epoch(fault: Any, attempts: int) -> None:
    async def main(ground: Desk) -> None:
        script = [call("look", {"place": "A"}), fault]
        second = other("second", [GONE, GONE, call("look", {"place": "B"}), say("Done.")])
        summary = await through(ground, script, fallback=(second,), limits=Limits(retries=2))
        assert (summary.state, summary.reply) == ("finished", "Done.")
        assert await models(ground) == ["scripted", "second"]
        assert [what.epoch for what in await ground.whats(RUN, EpochOpened)] == [1, 2]
        assert [what.attempt for what in await ground.whats(RUN, ModelFailed)] == list(range(1, attempts + 1))
        assert [what.turn for what in await ground.whats(RUN, ModelInterrupted)] == [2]
        warned = [what.detail for what in await ground.whats(RUN, Warned)]
        assert warned == ["The model scripted cannot be had; the run goes on with second."]
        await ground.check(RUN)

    run_async(main)


@pytest.mark.parametrize("status", [400, 413, 422, None])
def test_a_request_that_is_wrong_is_not_handed_on(status: int | None) -> None:
    async def main(ground: Desk) -> None:
        wrong = fails(times=None, retryable=False, status=status, message="it is too long")
        summary = await through(ground, [wrong], fallback=(other("second", [say("Done.")] * 2),))
        assert summary.state == "failed"
        assert await models(ground) == ["scripted"]

    run_async(main)


def test_when_none_can_be_had_the_run_rests_and_begins_again_with_the_first() -> None:
    async def main(ground: Desk) -> None:
        rest = (other("second", [GONE] * 9), other("third", [GONE] * 9))
        summary = await through(ground, [GONE], fallback=rest)
        assert summary.state == "failed"
        assert await models(ground) == ["scripted", "second", "third"]
        again_with = await again(ground, [say("Done.")] * 9, fallback=rest)
        assert again_with.state == "finished"
        assert await models(ground) == ["scripted", "second", "third", "scripted"]
        await ground.check(RUN)

    run_async(main)


def test_one_holder_too_begins_again_with_the_first() -> None:
    async def main(ground: Desk) -> None:
        heals = [False]

        def first(request: Any) -> Any:
            return say("Done.") if heals[0] else GONE

        one = agent(first, fallback=(other("second", [GONE] * 9),))
        async with await start(ground.store, one, "Begin.", run=RUN, clock=ground.clock) as run:
            assert (await run.finish()).state == "failed"
            heals[0] = True
            assert (await run.finish()).state == "finished"
        assert await models(ground) == ["scripted", "second", "scripted"]
        await ground.check(RUN)

    run_async(main)


def test_a_run_stays_with_the_model_that_took_over() -> None:
    async def main(ground: Desk) -> None:
        second = other("second", [GONE, say("One."), say("Two.")])
        assert (await through(ground, [GONE, *[say("first")] * 5], fallback=(second,))).reply == "One."
        assert (await again(ground, [say("first")] * 5, "More.", fallback=(second,))).reply == "Two."
        assert await models(ground) == ["scripted", "second"]
        assert len(await ground.whats(RUN, EpochOpened)) == 2

    run_async(main)


def test_more_models_than_replies_may_be_cut_off_in_a_row() -> None:
    async def main(ground: Desk) -> None:
        rest = [other(f"model {n}", [GONE] * 9) for n in range(5)]
        summary = await through(ground, [GONE], fallback=(*rest, other("last", [say("Done.")] * 9)))
        assert (summary.state, summary.reply) == ("finished", "Done.")

    run_async(main)


def points(script: Any, **changes: Any) -> int:
    passed: list[int] = []

    async def main(ground: Desk) -> None:
        seams = Seams()
        one = seams.agent(agent(script, **changes))
        async with await start(
            seams.store(ground.store), one, "Begin.", run=RUN, clock=seams.clock(ground.clock)
        ) as run:
            await run.finish()
        passed.append(len(seams.passed))

    run_async(main)
    return passed[0]


SCRIPT: Any = [call("look", {"place": "A"}), fails(times=1, then=GONE)]
SECOND: Any = [GONE, GONE, call("look", {"place": "B"}), say("Done.")]


def test_a_death_at_any_point_of_the_change_is_resumed_with_the_right_model() -> None:
    count = points(SCRIPT, fallback=(other("second", SECOND),))
    assert count > 40

    def at(number: int) -> None:
        async def main(ground: Desk) -> None:
            asked: list[tuple[str, int]] = []

            def noting(name: str, script: Any) -> Any:
                def answer(request: Any) -> Any:
                    asked.append((name, request.turn))
                    return script[request.turn - 1]

                return answer

            def made() -> Any:
                return agent(
                    noting("scripted", SCRIPT), fallback=(other("second", noting("second", SECOND)),)
                )

            seams = Seams(Dies(number))
            with pytest.raises(Crash):
                async with await start(
                    seams.store(ground.store),
                    seams.agent(made()),
                    "Begin.",
                    run=RUN,
                    clock=seams.clock(ground.clock),
                    lease_ms=LEASE_MS,
                ) as run:
                    await run.finish()
            ground.expire()
            if not await ground.store.catalogue.runs():
                return  # It died before there was a run.
            known = {what.turn for what in await ground.whats(RUN, ModelAnswered)}
            before = len(asked)
            async with await resume(ground.store, RUN, made(), clock=ground.clock) as run:
                summary = await run.finish()
            assert summary.state == "finished", (number, summary)
            assert not known.intersection(turn for _, turn in asked[before:]), number
            assert await models(ground) == ["scripted", "second"]
            assert [what.epoch for what in await ground.whats(RUN, EpochOpened)] == [1, 2]
            turns = [what.turn for what in await ground.whats(RUN, ModelAsked)]
            assert turns == [1, 2, 3, 4]
            await ground.check(RUN)

        run_async(main)

    for number in range(1, count + 1):
        at(number)


def test_what_is_wrong_with_a_fallback_is_told_before_anything_is_written() -> None:
    with pytest.raises(AgentMistake, match="'second' stands twice"):
        agent([], fallback=(other("second", []), other("second", [])))
    with pytest.raises(AgentMistake, match="'scripted' stands twice"):
        agent([], fallback=(other("scripted", []),))
    assert declare(agent([])).blob != declare(agent([], fallback=(other("second", []),))).blob

    class Unusable:
        name = "unusable"

        def check(self) -> None:
            raise AgentUnusable("The model unusable needs a key: set one.")

        async def reply(self, request: Any, emit: Any) -> Any:
            raise ProviderFault("never asked", retryable=False)

    async def main(ground: Desk) -> None:
        with pytest.raises(AgentUnusable, match="needs a key"):
            await through(ground, [say("Done.")], fallback=(Unusable(),))
        assert await ground.store.catalogue.runs() == []

    run_async(main)
