"""One decision for one turn, by the cheapest meter that can make it.

While all that is fresh fits the cap by the bound, the bound decides and no tokenizer is loaded. As soon as
a policy would cut, drop, rebuild or stop by the bound, the gauge turns to the exact meter for good, the epoch
is measured again, and the policy decides by that.
"""

from __future__ import annotations

from collections.abc import Sequence

from shiftbook.entries import Entry
from shiftbook.policies.promise import Policy
from shiftbook.prompt.epoch import Choice, EpochPrompt, Extend, Full, Rebuild
from shiftbook.prompt.measure import Gauge


def decide(
    policy: Policy,
    prompt: EpochPrompt,
    fresh: Sequence[Entry],
    gauge: Gauge,
    *,
    cap: int,
    mark: int,
    reason: str | None = None,
) -> Choice:
    """What the policy chooses; with a `reason` the epoch has to end now.

    The only thing that changes is which meter the gauge and the prompt's sizes are by.
    """
    if prompt.meter != gauge.meter_in_use:
        gauge.measure_again(prompt)
    choice = _ask(policy, prompt, fresh, gauge, cap, mark, reason)
    if gauge.is_bound and not _is_spared(choice, forced=reason is not None):
        gauge.turn_exact(prompt)
        choice = _ask(policy, prompt, fresh, gauge, cap, mark, reason)
    return choice


def _ask(
    policy: Policy,
    prompt: EpochPrompt,
    fresh: Sequence[Entry],
    gauge: Gauge,
    cap: int,
    mark: int,
    reason: str | None,
) -> Choice:
    budget = gauge.budget(cap, mark)
    if reason is None:
        return policy.choose(prompt, fresh, budget)
    return policy.reopen(prompt, fresh, budget, reason)


def _is_spared(choice: Choice, *, forced: bool) -> bool:
    """Whether nothing was cut, dropped or ended for want of room."""
    if isinstance(choice, Full) or (isinstance(choice, Rebuild) and not forced):
        return False
    recipe = choice.picks if isinstance(choice, Extend) else (*choice.head, *choice.picks)
    return all(pick.keep is None and pick.form != "dropped" for pick in recipe)
