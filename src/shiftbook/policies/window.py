"""The newest turns, whole: when the cap is near, the oldest are dropped in one go down to the mark.

It never slides by one message: between two rebuilds the prompt only grows, so that the provider's cache
holds, and after a rebuild there is room again. A turn, a reply with all its answers, is dropped or kept as
one; one block in front says which entries are not shown, and behind it stand the standing rules. The newest
batch stays, cut if need be.
"""

from __future__ import annotations

from collections.abc import Sequence

from shiftbook.entries import Entry, PersonSaid, Pick
from shiftbook.policies.fit import Fitted, fit
from shiftbook.policies.sections import RULES, brief_left, brief_of, is_rule, without
from shiftbook.policies.transcript import notice_tokens, numbers, reopened, tokens_of
from shiftbook.policies.units import Unit, fresh_units, glued, kept, old_units, order_of, recipe_of, unshown
from shiftbook.prompt.epoch import Budget, Choice, EpochPrompt, Extend, Full, Rebuild, Warnings


class Window:
    """The newest turns within the cap; `Full` only when not even a notice fits beside the fixed part."""

    name = "window"

    def choose(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget) -> Choice:
        """What is fresh at the end if it fits, else a rebuild down to the mark."""
        units = fresh_units(fresh, budget.tools)
        fitted = fit(units, budget, prompt.fixed, budget.cap - prompt.tokens)
        if fitted is None:
            return rebuilt(prompt, fresh, budget, "the cap is reached")
        order = [entry.position for entry in fresh]
        return Extend(recipe_of(fitted.units, order), fitted.warnings, fitted.made)

    def reopen(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, reason: str) -> Choice:
        """All that is shown in a new epoch if that fits, else a rebuild down to the mark."""
        choice = reopened(prompt, fresh, budget, reason)
        return choice if isinstance(choice, Rebuild) else rebuilt(prompt, fresh, budget, reason)


def rebuilt(prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, reason: str) -> Rebuild | Full:
    """The newest turns down to the mark, one block for what is dropped, and the standing rules.

    The batch itself counts against the mark first; it is cut only above it, and it alone may pass it.
    """
    old = old_units(prompt, budget.tools, is_rule)
    new = glued(kept(without(fresh_units(fresh, budget.tools), is_rule)))
    last = max((entry.position for entry in fresh), default=prompt.upto)
    widest = 10 ** len(str(last + 1)) - 1
    notice = notice_tokens(Pick(widest - 1, widest, "dropped"), budget)
    hidden = [entry for entry in (*prompt.shown.values(), *fresh) if is_rule(entry)]
    below = budget.mark - prompt.fixed - notice
    brief = brief_of(budget.knowledge, hidden, last, budget, max(below, 0), RULES)
    room = budget.cap - prompt.fixed - notice - brief.total
    if room < 0:
        return Full(prompt.fixed + notice + brief.total)
    spare = below - brief.total
    fitted, lost = newest(new, budget, prompt.fixed, room, spare)
    left = spare - fitted.tokens
    stays: list[Unit] = []
    while old and not lost:
        size = tokens_of(old[-1:], budget)
        if size > left:
            break
        left -= size
        stays.insert(0, old.pop())
    front = front_of(prompt, [*old, *lost])
    order = order_of(prompt, fresh)
    after = prompt.fixed + sum(notice_tokens(pick, budget) for pick in front) + brief.total
    after += tokens_of(stays, budget) + fitted.tokens
    return Rebuild(
        reason=reason,
        head=(*front, *brief.picks, *recipe_of(stays, order)),
        picks=recipe_of(fitted.units, order),
        numbers={
            **numbers(prompt, after, budget),
            **brief.tokens,
            "dropped": front[0].last if front else 0,
        },
        warnings=(*brief_left(prompt), *brief.warnings, *fitted.warnings, *never_shown(lost)),
    )


def newest(new: list[Unit], budget: Budget, fixed: int, room: int, spare: int) -> tuple[Fitted, list[Unit]]:
    """As many of the newest units as can be made to fit, whole up to `spare` tokens; and the others."""
    low, high = 0, len(new)
    fitted = fit(new, budget, fixed, room, whole=spare, final=True)
    if fitted is not None:
        return fitted, []
    found = Fitted([], 0)
    while high - low > 1:
        middle = (low + high) // 2
        fitted = fit(new[middle:], budget, fixed, room, whole=spare, final=True)
        if fitted is None:
            low = middle
        else:
            high, found = middle, fitted
    return found, new[:high]


def front_of(prompt: EpochPrompt, gone: Sequence[Unit]) -> tuple[Pick, ...]:
    """One pick for everything that is not shown any more, in earlier epochs or from now on."""
    before = unshown(prompt)
    positions = [piece.entry.position for unit in gone for piece in unit]
    if not before and not positions:
        return ()
    first = min([*(pick.first for pick in before), *positions])
    last = max([*(pick.last for pick in before), *positions])
    return (Pick(first, last, "dropped"),)


def never_shown(lost: Sequence[Unit]) -> Warnings:
    """What the model has not seen and will not see by itself: more than the prompt can hold even when cut."""
    return tuple(
        (
            "words dropped" if isinstance(piece.entry.what, PersonSaid) else "entry dropped",
            (
                f"Entry {piece.entry.position} came in a batch that does not fit the prompt even when cut; "
                "the model is told that it is not shown."
            ),
        )
        for unit in lost
        for piece in unit
    )
