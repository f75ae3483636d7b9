"""Everything that happened, in order, until the cap: nothing is ever dropped.

A batch that is too big to fit is cut, once, with handles. At the cap the policy says so and the run stops;
nothing is lost by that, a higher cap or another policy takes the run up again.
"""

from __future__ import annotations

from collections.abc import Sequence

from shiftbook.entries import Entry, Pick
from shiftbook.policies.fit import fit
from shiftbook.policies.sections import RULES, Brief, brief_left, brief_of, is_rule, without
from shiftbook.policies.units import (
    Unit,
    fresh_units,
    is_briefed,
    kept,
    old_units,
    order_of,
    recipe_of,
    unshown,
)
from shiftbook.prompt.epoch import Budget, Choice, EpochPrompt, Extend, Full, Rebuild
from shiftbook.prompt.grow import merged
from shiftbook.prompt.render import render_pick


class Transcript:
    """The whole history within the cap, else `Full`."""

    name = "transcript"

    def choose(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget) -> Choice:
        """All that is fresh at the end, cut if need be; `Full` when it does not fit."""
        units = fresh_units(fresh, budget.tools)
        fitted = fit(units, budget, prompt.fixed, budget.cap - prompt.tokens)
        if fitted is None:
            return Full(prompt.tokens + tokens_of(units, budget))
        order = [entry.position for entry in fresh]
        return Extend(recipe_of(fitted.units, order), fitted.warnings, fitted.made)

    def reopen(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, reason: str) -> Choice:
        """The same history in a new epoch: without reasoning and the provider's ids."""
        return reopened(prompt, fresh, budget, reason)


def reopened(prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, reason: str) -> Rebuild | Full:
    """A new epoch that shows all that the old one did, and what is fresh; `Full` when that does not fit."""
    # Where a brief told the rules, they have left the turns, and a section tells them here too.
    is_told = is_rule if is_briefed(prompt) else _is_nothing
    hidden = [entry for entry in (*prompt.shown.values(), *fresh) if is_told(entry)]
    last = max((entry.position for entry in fresh), default=prompt.upto)
    brief = Brief((), {}, ())
    if is_briefed(prompt):
        brief = brief_of(budget.knowledge, hidden, last, budget, budget.cap - prompt.fixed, RULES)
    old = old_units(prompt, budget.tools, is_told)
    new = kept(without(fresh_units(fresh, budget.tools), is_told))
    front = unshown(prompt)
    before = prompt.fixed + sum(notice_tokens(pick, budget) for pick in front) + brief.total
    before += tokens_of(old, budget)
    fitted = fit(new, budget, prompt.fixed, budget.cap - before)
    if fitted is None:
        return Full(before + tokens_of(new, budget))
    order = order_of(prompt, fresh)
    picks = [piece.pick for unit in old for piece in unit]
    return Rebuild(
        reason=reason,
        head=(*front, *brief.picks, *merged(picks, order)),
        picks=recipe_of(fitted.units, order),
        numbers={**numbers(prompt, before + fitted.tokens, budget), **brief.tokens},
        warnings=(*brief_left(prompt), *brief.warnings, *fitted.warnings),
    )


def _is_nothing(_entry: Entry) -> bool:
    return False


def tokens_of(units: Sequence[Unit], budget: Budget) -> int:
    """The size of units as they are."""
    return sum(piece.tokens(budget.measure) for unit in units for piece in unit)


def notice_tokens(pick: Pick, budget: Budget) -> int:
    """The size of the block that stands for a dropped range."""
    return sum(budget.measure(block) for block in render_pick(pick, {}))


def numbers(prompt: EpochPrompt, after: int, budget: Budget) -> dict[str, int]:
    """The figures behind a rebuild, for its entry."""
    return {
        "tokens_before": prompt.tokens,
        "tokens_after": after,
        "fixed": prompt.fixed,
        "cap": budget.cap + budget.reserve,
        "mark": budget.mark,
        **({"kept_free": budget.reserve} if budget.reserve else {}),
    }
