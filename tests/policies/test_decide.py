"""What a policy is given to decide by: a budget that keeps the room of a report's request free."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from shiftbook.entries import Entry
from shiftbook.policies import Journal
from shiftbook.policies.decide import decide, report_room
from shiftbook.prompt.epoch import Budget, Choice, EpochPrompt
from tests.policies.test_cap import answered, begun, done

CAP = 8_000


class Given(Journal):
    """Keeps the budget that it was given last."""

    def __init__(self) -> None:
        self.budgets: list[Budget] = []

    def choose(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget) -> Choice:
        self.budgets.append(budget)
        return super().choose(prompt, fresh, budget)


@pytest.mark.parametrize("mark", [3_200, CAP])
def test_what_a_report_takes_is_kept_free_below_the_cap_and_told(mark: int) -> None:
    policy = Given()
    shift = begun(policy, CAP, mark)
    for asks in (False, True):
        decide(policy, shift.prompt, [], shift.gauge, cap=CAP, mark=mark, asks_reports=asks)
        budget = policy.budgets[-1]
        room = report_room(policy, CAP, mark, shift.prompt.fixed) if asks else 0
        assert budget.cap + budget.reserve == CAP
        assert budget.reserve >= room
        assert (budget.reserve > 0) is asks
        assert budget.mark == min(mark, budget.cap)


def test_a_prompt_of_another_meter_is_measured_again_before_anything_is_decided() -> None:
    shift = begun(Given(), CAP, 3_200)
    shift.happen(answered(1, {"n": 1}), done("1.1", "ok " * 300))
    assert shift.ask() is not None
    right = shift.prompt.tokens
    shift.prompt.meter, shift.prompt.tokens = "another", 7
    decide(shift.policy, shift.prompt, [], shift.gauge, cap=CAP, mark=3_200)
    assert (shift.prompt.tokens, shift.prompt.meter) == (right, shift.gauge.meter_in_use)
