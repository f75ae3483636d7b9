"""One decision for one turn, by the cheapest meter that can make it.

While all that is fresh fits the cap by the bound, the bound decides and no tokenizer is loaded. As soon as
a policy would cut, drop, rebuild or stop by the bound, the gauge turns to the exact meter for good, the epoch
is measured again, and the policy decides by that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from shiftbook.entries import Entry
from shiftbook.policies.promise import Policy
from shiftbook.projections.knowledge import Knowledge
from shiftbook.prompt.epoch import (
    Budget,
    Choice,
    EpochPrompt,
    Extend,
    Full,
    Rebuild,
    RecallRoom,
    WantRecall,
    WantReport,
)
from shiftbook.prompt.measure import Gauge
from shiftbook.prompt.report_request import reserve


def decide(
    policy: Policy,
    prompt: EpochPrompt,
    fresh: Sequence[Entry],
    gauge: Gauge,
    *,
    cap: int,
    mark: int,
    reason: str | None = None,
    knowledge: Knowledge | None = None,
    gap_ms: int | None = None,
    asks_reports: bool = False,
    spread: float | None = None,
    recall: RecallRoom = RecallRoom(),
    brought: Mapping[int, Entry] = MappingProxyType({}),
) -> Choice:
    """What the policy chooses; with a `reason` the epoch has to end now.

    `knowledge` is what stands after the last of the fresh entries, `gap_ms` the time since the last request;
    `brought` are the entries that a `Recalled` among the fresh ones names. With `asks_reports` room is kept
    free below the cap for the request of a report, where the policy wants one; with a `spread` of prices it
    may rebuild to save. The only thing that changes is which meter the gauge and the prompt's sizes are by.
    """
    if prompt.meter != gauge.meter_in_use:
        gauge.measure_again(prompt)

    def ask() -> Choice:
        room = report_room(policy, cap, mark, prompt.fixed) if asks_reports else 0
        kept_free = reserve(cap, room, gauge.measure) if room else 0
        budget = Budget(
            cap=cap - kept_free,
            mark=min(mark, cap - kept_free),
            measure=gauge.measure,
            tools=gauge.tools,
            knowledge=Knowledge() if knowledge is None else knowledge,
            gap_ms=gap_ms,
            reserve=kept_free,
            spread=spread,
            recall=recall,
            brought=brought,
        )
        return _ask(policy, prompt, fresh, budget, reason)

    choice = ask()
    if gauge.is_bound and not _is_spared(choice, forced=reason is not None):
        gauge.turn_exact(prompt)
        choice = ask()
    return choice


def report_room(policy: Policy, cap: int, mark: int, fixed: int) -> int:
    """The tokens of a report under that policy, 0 where it wants none."""
    asked = getattr(policy, "report_room", None)
    return 0 if asked is None else int(asked(cap, mark, fixed))


def _ask(
    policy: Policy, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, reason: str | None
) -> Choice:
    if reason is None:
        return policy.choose(prompt, fresh, budget)
    return policy.reopen(prompt, fresh, budget, reason)


def _is_spared(choice: Choice, *, forced: bool) -> bool:
    """Whether nothing was cut, dropped or ended for want of room."""
    if isinstance(choice, Full | WantReport | WantRecall) or (isinstance(choice, Rebuild) and not forced):
        return False
    if isinstance(choice, Extend) and choice.warnings:
        return False
    recipe = choice.picks if isinstance(choice, Extend) else (*choice.head, *choice.picks)
    return all(pick.keep is None and pick.form != "dropped" for pick in recipe)
