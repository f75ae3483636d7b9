"""Making a batch fit: the big pieces are lowered to an equal height, a person's words last.

A batch that fits whole is taken whole. Else what the model and the tools brought may take a quarter of the
prompt's room and is cut down to that, so that one huge result cannot push out everything before it. A
person's words are cut only when the batch still does not fit and they alone take more than half of the room,
or when there is nothing else to give, and then with a warning. The height is in characters of each piece, so
that the cut can be made again without a tokenizer. Of a reply that paused the vendor's blocks go first, whole
and with a warning: a part of them is nothing to go on with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shiftbook.messages import Block
from shiftbook.policies.units import Piece, Unit, is_paused, kept
from shiftbook.prompt.cut import level
from shiftbook.prompt.epoch import Budget, Made, Measure, Warnings
from shiftbook.prompt.render import chars

ADMITTED_SHARE = 4
"""One part in so many of the room is what replies and results of a batch may take when it does not fit."""

WORDS_SHARE = 2
"""One part in so many of the room is what a person's words are cut to when they do not fit."""

CHARS_PER_TOKEN_MAX = 16
"""The search for a height does not try texts with more characters a token than this on average."""

NEAR_ENOUGH = 0.97
"""The search ends when this share of the limit is used."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Units that fit, their size in tokens, and what has to be said about them."""

    units: list[Unit]
    tokens: int
    warnings: Warnings = ()
    made: Made | None = None


def fit(
    units: Sequence[Unit],
    budget: Budget,
    fixed: int,
    room: int,
    *,
    whole: int | None = None,
    final: bool = False,
) -> Fitted | None:
    """The units within `room` tokens, cut if need be; None when even that does not do.

    They stay whole up to `whole` tokens (all of `room` unless named). `fixed` is the prompt's fixed part, for
    the shares. With `final` a person's words give way to whatever is there beside them.
    """
    pieces = [piece for unit in units for piece in unit]
    sizes: list[int] = []
    made: list[tuple[Block, int]] = []
    for piece in pieces:
        blocks = piece.made(budget.measure)
        made += blocks
        sizes.append(sum([size for _, size in blocks]))
    before = sum(sizes)
    if before <= (room if whole is None else min(whole, room)):
        return Fitted(list(units), before, made=tuple(made))
    if is_paused(units):
        given_up = fit([*units[:-1], *kept(units[-1:])], budget, fixed, room, whole=whole, final=final)
        return None if given_up is None else replace(given_up, warnings=(*given_up.warnings, _left(units)))
    machine = [piece for piece in pieces if not piece.is_persons]
    words = [piece for piece in pieces if piece.is_persons]
    taken = {piece.entry.position: size for piece, size in zip(pieces, sizes, strict=True)}
    shown = {piece.entry.position: piece for piece in pieces}
    _lower(machine, (budget.cap - fixed) // ADMITTED_SHARE, budget.measure, shown, taken)
    if sum(taken.values()) > room:
        said = sum(taken[piece.entry.position] for piece in words)
        limit = (budget.cap - fixed) // WORDS_SHARE
        if said > limit or final:
            beside = sum(taken.values()) - said
            _lower(words, min(limit, room - beside), budget.measure, shown, taken)
    after = sum(taken.values())
    if after > room:
        return None
    warnings = tuple(
        (
            "words cut",
            (
                f"Entry {piece.entry.position}, a person's own words, is shown with "
                f"{shown[piece.entry.position].keep} of its {chars(piece.entry)} characters."
            ),
        )
        for piece in words
        if shown[piece.entry.position] is not piece
    )
    return Fitted([tuple(shown[p.entry.position] for p in unit) for unit in units], after, warnings)


def _left(units: Sequence[Unit]) -> tuple[str, str]:
    position = units[-1][-1].entry.position
    return "pause given up", (
        f"Entry {position}, a reply that paused, does not fit with the blocks by which its vendor would go "
        "on with it: it is shown without them, and the model begins anew behind it."
    )


def _lower(
    pieces: Sequence[Piece], limit: int, measure: Measure, shown: dict[int, Piece], taken: dict[int, int]
) -> None:
    """Cut the pieces to the greatest equal height at which they take `limit` tokens, or as low as can be."""
    whole = dict(taken)
    if not pieces or sum(whole[piece.entry.position] for piece in pieces) <= limit:
        return
    lengths = [chars(piece.entry) for piece in pieces]

    def at(height: int) -> tuple[dict[int, Piece], dict[int, int]]:
        cut: dict[int, Piece] = {}
        size: dict[int, int] = {}
        for piece, length in zip(pieces, lengths, strict=True):
            position = piece.entry.position
            cut[position], size[position] = piece, whole[position]
            if length > height:
                lower = piece.cut_to(height)
                tokens = lower.tokens(measure)
                # A short text can be longer once it says that it was cut.
                if tokens < whole[position]:
                    cut[position], size[position] = lower, tokens
        return cut, size

    low, best = 0, at(0)
    high = min(max(lengths), level(lengths, CHARS_PER_TOKEN_MAX * max(limit, 0)) + 1)
    while high - low > 1 and sum(best[1].values()) < NEAR_ENOUGH * limit:
        middle = (low + high) // 2
        found = at(middle)
        if sum(found[1].values()) <= limit:
            low, best = middle, found
        else:
            high = middle
    shown.update(best[0])
    taken.update(best[1])
