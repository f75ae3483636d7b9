"""Everything that was said and asked, and the newest results: older results give way to a handle each.

Observation masking, as coding agents have it (measured by T. Lindenbauer and others, arXiv 2508.21433): most
of a long prompt is what tools returned, and most of that is not looked at again. A result's handle is one
line beside its call, which names the tool: how many characters are left out, and the entry under which the
whole can be read back.

It never masks one result a turn, which would break the provider's cache each time. The prompt grows to the
cap, or until the cache is cold anyway; then a new epoch masks down to the mark in one go, the newest results
whole. Words and replies stay until they alone do not fit below the mark: then the oldest turns go in a block,
as under `window`. Standing rules are told in front of it all.
"""

from __future__ import annotations

from collections.abc import Sequence

from shiftbook.entries import ActionFinished, Entry, Pick
from shiftbook.policies.cold import is_cold
from shiftbook.policies.fit import fit
from shiftbook.policies.sections import RULES, brief_left, brief_of, is_rule, without
from shiftbook.policies.transcript import notice_tokens, numbers, tokens_of
from shiftbook.policies.units import Piece, Unit, fresh_units, glued, kept, old_units, order_of, recipe_of
from shiftbook.policies.window import front_of, never_shown, newest
from shiftbook.prompt.epoch import Budget, Choice, EpochPrompt, Extend, Full, Measure, Rebuild

RESULTS_PART = 0.25
"""Where turns have to go, so much of the room for older turns is left to the newest results."""


class Masking:
    """All turns with the newest results; `Full` only when not even a notice fits beside the fixed part."""

    name = "masking"

    def choose(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget) -> Choice:
        """What is fresh at the end if it fits and the cache is warm, else a rebuild down to the mark."""
        units = fresh_units(fresh, budget.tools)
        fitted = fit(units, budget, prompt.fixed, budget.cap - prompt.tokens)
        if fitted is None:
            return rebuilt(prompt, fresh, budget, "the cap is reached")
        if is_cold(prompt, fitted, budget):
            return rebuilt(prompt, fresh, budget, "the cache is cold")
        order = [entry.position for entry in fresh]
        return Extend(recipe_of(fitted.units, order), fitted.warnings, fitted.made)

    def reopen(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, reason: str) -> Choice:
        """The same rebuild: what fits below the mark stays whole."""
        return rebuilt(prompt, fresh, budget, reason)


def rebuilt(prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, reason: str) -> Rebuild | Full:
    """Rules, a notice of what is not shown, the older turns masked down to the mark, and what is fresh."""
    last = max((entry.position for entry in fresh), default=prompt.upto)
    widest = 10 ** len(str(last + 1)) - 1
    notice = notice_tokens(Pick(widest - 1, widest, "dropped"), budget)
    hidden = [entry for entry in (*prompt.shown.values(), *fresh) if is_rule(entry)]
    below = budget.mark - prompt.fixed - notice
    brief = brief_of(budget.knowledge, hidden, last, budget, max(below, 0), RULES)
    room = budget.cap - prompt.fixed - notice - brief.total
    if room < 0:
        return Full(prompt.fixed + notice + brief.total)
    old = old_units(prompt, budget.tools, is_rule)
    new = glued(kept(without(fresh_units(fresh, budget.tools), is_rule)))
    spare = below - brief.total
    fitted, lost = newest(new, budget, prompt.fixed, room, spare)
    stays = [] if lost else masked(old, spare - fitted.tokens, budget.measure)
    front = front_of(prompt, [*old[: len(old) - len(stays)], *lost])
    after = prompt.fixed + sum(notice_tokens(pick, budget) for pick in front) + brief.total
    after += tokens_of(stays, budget) + fitted.tokens
    order = order_of(prompt, fresh)
    return Rebuild(
        reason=reason,
        head=(*front, *brief.picks, *recipe_of(stays, order)),
        picks=recipe_of(fitted.units, order),
        numbers={
            **numbers(prompt, after, budget),
            **brief.tokens,
            "dropped": front[0].last if front else 0,
            "masked": sum(piece.keep == 0 for unit in stays for piece in unit),
        },
        warnings=(*brief_left(prompt), *brief.warnings, *fitted.warnings, *never_shown(lost)),
    )


def masked(units: Sequence[Unit], room: int, measure: Measure) -> list[Unit]:
    """The newest of these units within `room` tokens: as many as fit with their results masked, and then the
    newest results whole again, up to the first that does not fit."""
    bare = [tuple(_bare(piece, measure) for piece in unit) for unit in units]
    sizes = [sum(size for _, size, _ in unit) for unit in bare]
    if sum(sizes) > room:
        room_for_turns = room - int(max(room, 0) * RESULTS_PART)
        while sizes and sum(sizes) > room_for_turns:
            del sizes[0], bare[0]
    left = room - sum(sizes)
    shown = [[piece for piece, _, _ in unit] for unit in bare]
    whole = units[len(units) - len(bare) :]
    for at in reversed(range(len(bare))):
        for number in reversed(range(len(bare[at]))):
            _, _, spared = bare[at][number]
            if spared > left:
                return [tuple(unit) for unit in shown]
            left -= spared
            shown[at][number] = whole[at][number]
    return [tuple(unit) for unit in shown]


def _bare(piece: Piece, measure: Measure) -> tuple[Piece, int, int]:
    """The piece with its result masked where that makes it shorter; its tokens then, and what is spared."""
    size = piece.tokens(measure)
    if not isinstance(piece.entry.what, ActionFinished) or piece.keep == 0:
        return piece, size, 0
    lower = piece.cut_to(0)
    tokens = lower.tokens(measure)
    return (lower, tokens, size - tokens) if tokens < size else (piece, size, 0)
