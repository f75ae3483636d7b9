"""A rebuild that pays: when it comes, that it comes no sooner, and that the run is cheaper for it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from shiftbook.entries import EpochOpened
from shiftbook.policies import Journal
from shiftbook.prompt.epoch import Rebuild
from shiftbook.providers.scripted import call, say
from shiftbook.run.loop import start
from tests.policies.test_cap import answered, begun, done, holds
from tests.prompt.shift import Asked, Shift
from tests.run.desk import Desk, agent, run_async

CAP, MARK = 60_000, 8_000


def worked(spread: float | None, turns: int = 200, size: int = 200) -> Shift:
    """A shift in which each turn brings the same, far below the cap."""
    shift = begun(Journal(), CAP, MARK, spread=spread)
    shift.gauge.turn_exact(shift.prompt)
    for number in range(turns):
        shift.happen(answered(shift.turn, {"n": number}), done(f"{shift.turn}.1", "ok " * size))
        assert shift.ask() is not None
    return shift


def epochs(shift: Shift) -> list[list[Asked]]:
    found: dict[int, list[Asked]] = {}
    for asked in shift.asked:
        found.setdefault(asked.epoch, []).append(asked)
    return list(found.values())


def opening(asked: Sequence[Asked]) -> int:
    return MARK if asked[0].epoch == 1 else min(MARK, max(asked[0].tokens, MARK // 2))


def read_beyond(asked: Sequence[Asked]) -> int:
    return sum(max(0, each.tokens - opening(asked)) for each in asked)


@pytest.mark.parametrize("spread", [1.0, 11.5, 24.0])
def test_an_epoch_ends_with_the_first_request_that_makes_going_on_as_dear_as_a_rebuild(spread: float) -> None:
    shift = worked(spread)
    told = epochs(shift)
    assert len(told) > 3
    for ended, opened in pairwise(told):
        writing = spread * (opening(ended) - shift.prompt.fixed)
        choice = opened[0].choice
        assert isinstance(choice, Rebuild)
        assert choice.reason == "it pays"
        assert abs(choice.numbers["writing"] - writing) <= 1
        assert read_beyond(ended) < writing <= choice.numbers["reading"]
        # What the request would have read that opens the new epoch instead is all that is added.
        assert choice.numbers["reading"] - read_beyond(ended) > ended[-1].tokens - opening(ended)
    holds(shift)


def test_without_prices_nothing_is_rebuilt_to_save() -> None:
    assert {asked.epoch for asked in worked(None, turns=60).asked} == {1}


def price(shift: Shift, spread: float) -> float:
    """All requests, in reads of a token: what stood in the one before is read, the rest is written."""
    total, before, epoch = 0.0, 0, 0
    for asked in shift.asked:
        read = before if asked.epoch == epoch else shift.prompt.fixed
        total += read + (1 + spread) * (asked.tokens - read)
        before, epoch = asked.tokens, asked.epoch
    return total


@pytest.mark.parametrize("spread", [4.0, 11.5, 24.0])
def test_it_is_cheaper_than_to_wait_for_the_cap_and_than_to_rebuild_too_soon(
    spread: float,
) -> None:
    saving = price(worked(spread), spread)
    assert saving < price(worked(None), spread)
    assert saving < price(worked(spread / 8), spread)


def test_the_engine_asks_for_the_prices_of_the_model_in_use() -> None:
    steps = [call("look", {"place": "shelf " * 300}) for _ in range(60)]

    def opened(model: str, saving: bool) -> list[EpochOpened]:
        found: list[EpochOpened] = []

        async def main(ground: Desk) -> None:
            one = agent([*steps, say("Done.")], model=model, policy="journal", mark=10_000, saving=saving)
            async with await start(ground.store, one, "Begin.", run="saving", clock=ground.clock) as run:
                assert (await run.finish()).state == "finished"
            await ground.check("saving")
            found.extend(await ground.whats("saving", EpochOpened))

        run_async(main)
        return found

    known = "anthropic:claude-opus-4-5"
    paid = [what for what in opened(known, saving=True) if what.reason == "it pays"]
    assert paid
    assert all(what.numbers["reading"] >= what.numbers["writing"] > 0 for what in paid)
    assert {what.reason for what in opened(known, saving=False)} == {"start"}
    assert {what.reason for what in opened("anthropic:no-such-model", saving=True)} == {"start"}
