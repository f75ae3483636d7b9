"""No rebuild that only spares comes between a pause and its continuation; one that must be does come."""

from __future__ import annotations

import pytest

from shiftbook.entries import ModelAnswered
from shiftbook.messages import Reasoning, Text
from shiftbook.policies import Journal, Masking, Policy
from shiftbook.policies.cold import TTL_MS
from shiftbook.prompt.epoch import Extend, Rebuild
from tests.policies.test_cap import answered, begun, done, holds
from tests.prompt.shift import Shift

CAP, MARK = 60_000, 8_000
WORK = Reasoning("", {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}})


def paused(turn: int, text: str, *, at_work: bool) -> ModelAnswered:
    """A reply that paused; amid work of the vendor's own, or of none."""
    return ModelAnswered(turn, (Text(text), WORK) if at_work else (Text(text),), "pause")


def worked(policy: Policy, turns: int, spread: float | None = None) -> Shift:
    shift = begun(policy, CAP, MARK, spread=spread)
    shift.gauge.turn_exact(shift.prompt)
    for number in range(turns):
        shift.happen(answered(shift.turn, {"n": number}), done(f"{shift.turn}.1", "ok " * 400))
        assert shift.ask() is not None
    return shift


def turns_that_pay(spread: float) -> int:
    """How many turns of that kind go by before the first rebuild that pays."""
    shift = worked(Journal(), 0, spread)
    while len(shift.asked) < 300:
        shift.happen(answered(shift.turn, {"n": 1}), done(f"{shift.turn}.1", "ok " * 400))
        asked = shift.ask()
        assert asked is not None
        if isinstance(asked.choice, Rebuild):
            assert asked.choice.reason == "it pays"
            return len(shift.asked) - 2
    raise AssertionError("no rebuild pays")


def test_a_rebuild_that_pays_waits_for_a_paused_turn_to_be_gone_on_with() -> None:
    turns = turns_that_pay(4.0)
    for at_work in (False, True):
        shift = worked(Journal(), turns, 4.0)
        shift.happen(paused(shift.turn, "ok " * 400, at_work=at_work))
        asked = shift.ask()
        assert asked is not None
        assert isinstance(asked.choice, Extend if at_work else Rebuild)
        assert (asked.choice.picks[-1].form == "paused") is at_work
        holds(shift)


@pytest.mark.parametrize("policy", [Journal(), Masking()], ids=lambda policy: policy.name)
def test_a_cold_cache_is_no_reason_to_end_a_paused_turn(policy: Policy) -> None:
    for at_work in (False, True):
        shift = worked(policy, 50)
        assert shift.prompt.tokens > 2 * MARK
        shift.gap_ms = TTL_MS + 1
        shift.happen(paused(shift.turn, "I look.", at_work=at_work))
        asked = shift.ask()
        assert asked is not None
        assert isinstance(asked.choice, Extend if at_work else Rebuild)
        assert (asked.choice.picks[-1].form == "paused") is at_work
        holds(shift)


def test_the_cap_ends_a_paused_turn_where_it_must() -> None:
    shift = begun(Journal(), 8_000, 3_200)
    shift.gauge.turn_exact(shift.prompt)
    for number in range(200):
        shift.happen(answered(shift.turn, {"n": number}), done(f"{shift.turn}.1", "ok " * 150))
        assert shift.ask() is not None
        if shift.prompt.tokens > 7_400:
            break
    shift.happen(paused(shift.turn, "ok " * 900, at_work=True))
    asked = shift.ask()
    assert asked is not None
    assert isinstance(asked.choice, Rebuild)
    assert not [pick for pick in asked.choice.picks if pick.form == "paused"]
    holds(shift)
