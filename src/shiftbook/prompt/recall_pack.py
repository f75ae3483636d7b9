"""Which entries come back, whole or cut, within a budget: the most use for each token.

Entries are offered in the order of their usefulness per token. A person's words are offered whole; a long
reply or result first cut, for a part of its use, then its rest. What does not fit is passed over and the next
is tried. What is chosen is told in the order of the run. The budget is never passed, nothing is told twice,
and the same input gives the same choice: ties go to the earlier entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from shiftbook.projections.recall_units import Voice
from shiftbook.prompt.recall_question import Question
from shiftbook.prompt.recall_rank import Ranked

KEEP_CHARS = 600
"""What is kept of a cut entry: the renderer shows two thirds of it from the head, 400 characters, which is
where the hand rule cuts, and the rest from the tail."""

CUT_SHARE = 0.3
"""The part of an entry's use that its cut form has. Tuned; with the hand rule's .5 less is held whole."""

REPLY_WEIGHT = 0.12
"""What a reply or a result is worth beside a person's words: the hand rule. Three quarters of the labelled
evidence of long chats is what people said, at a tenth of the tokens."""

WANTED_REPLY_WEIGHT = 0.4
"""The same where the question asks for a summary or for what was answered before: the hand rule."""

UNMATCHED, MATCHED = 0.5, 4.0
"""Times the weight: a reply that only follows what matters, and what the best matching one has on top. Tuned:
500k chats +.005 to +.01; without it a run of few words by people has only one weight for all its results."""

LONG_WORDS = 8
"""A person's words that take more than one part in so many of the budget are offered in two steps too."""


@dataclass(frozen=True, slots=True)
class Piece:
    """An entry that may come back: whose voice it is, its unit, and its size whole and cut, in tokens.

    `cut_tokens` is None where it cannot be cut or would not be smaller.
    """

    position: int
    unit: int
    voice: Voice
    tokens: int
    cut_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that comes back: whole, or with `keep` of its characters."""

    position: int
    keep: int | None
    tokens: int


class _Offer(NamedTuple):
    """Sorts by what it brings for a token, then by position, then the first step before the second."""

    loss: float
    position: int
    step: int
    tokens: int


def pack(
    asked: Question,
    ranked: Ranked,
    pieces: Iterable[Piece],
    budget: int,
    keep: int = KEEP_CHARS,
) -> tuple[Found, ...]:
    """What comes back of these pieces within `budget` tokens, in the order of the run.

    `ranked` is what `recall_rank.rank` says of their units; a piece of a unit that is of no use does not come
    back. Positions must differ.
    """
    offers = sorted(
        offer
        for piece in pieces
        if ranked.useful.get(piece.unit, 0.0) > 0.0
        for offer in _offers(piece, ranked.useful[piece.unit] * _weight(asked, piece, ranked), budget)
    )
    found: dict[int, Found] = {}
    left = budget
    for offer in offers:
        if offer.tokens > left or (offer.step == 2 and offer.position not in found):
            continue
        before = found[offer.position].tokens if offer.step == 2 else 0
        cut = keep if offer.step == 1 else None
        found[offer.position] = Found(offer.position, cut, before + offer.tokens)
        left -= offer.tokens
    return tuple(found[position] for position in sorted(found))


def _weight(asked: Question, piece: Piece, ranked: Ranked) -> float:
    if piece.voice == "person":
        return 1.0
    weight = WANTED_REPLY_WEIGHT if asked.told or asked.kind == "summary" else REPLY_WEIGHT
    return min(1.0, weight * (UNMATCHED + MATCHED * ranked.answers.get(piece.unit, 0.0)))


def _offers(piece: Piece, use: float, budget: int) -> tuple[_Offer, ...]:
    """One offer, or two of which the second brings less for a token than the first."""
    tokens, cut = max(1, piece.tokens), piece.cut_tokens
    is_whole = piece.voice == "person" and tokens * LONG_WORDS <= budget
    if cut is not None and 0 < cut < tokens and not is_whole:
        first = use * CUT_SHARE / cut
        rest = use * (1 - CUT_SHARE) / (tokens - cut)
        if rest < first or tokens > budget:
            return (
                _Offer(-first, piece.position, 1, cut),
                _Offer(-rest, piece.position, 2, tokens - cut),
            )
    return (_Offer(-use / tokens, piece.position, 0, tokens),)
