"""How useful each unit of a run is for a question: a hand rule of text ranking, with no training.

A unit (`projections.recall_units`) has two texts, what was said and what was done. They are ranked apart by
BM25, and the rankings are joined by reciprocal rank, so that their scales need not agree. The score spreads
to the units around, since an answer stands beside its question. The shape of the rule and the constants
without another source come from a shared study on BEAM and LoCoMo ("the hand rule"); those marked *tuned*
were chosen on the tuning half of `shiftbook study recall` (docs/decisions/0015-recall-by-a-hand-rule.md).

The same question, statistics and units give the same floats: sums run in a fixed order, ties go by position.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from shiftbook.projections.recall_units import Statistics, UnitWords
from shiftbook.prompt.recall_question import Question

BM25_K1 = 1.2
"""How soon a repeated term stops counting: Robertson's usual value."""
BM25_B = 0.6
"""How far a long text is held against: the hand rule."""
RANK_CONSTANT = 10
"""Reciprocal rank fusion's constant; 60 in the paper, 20 in the hand rule. Tuned: 10 (LoCoMo +.005)."""
NEIGHBOUR_SHARE = 0.4
"""What a unit's best direct neighbour adds to its BM25 before ranking: the hand rule."""
DONE_WEIGHT = 0.5
"""What the ranking by replies and results counts beside that by words said. Tuned: 500k +.01 to +.02."""
OTHER_WEIGHT = 1.0
"""What each further ranking counts (static embeddings): the hand rule."""
NEAR = (0.35, 0.2)
"""What the best score one and two units away adds, for a point. Tuned; .5 and .3 in the hand rule."""
WIDE = (0.6, 0.4, 0.3, 0.2, 0.1)
"""The same for a set: what belongs together was often said in a stretch. Tuned: event ordering +.03."""
ACKNOWLEDGED = 0.8
"""A message that opens as an acknowledgement: the hand rule."""
NUMBER = 1.1
"""A message that holds a number. Tuned; 1.25 in the hand rule."""
NOVELTY = 0.7
"""What a message of only new words gains over one of only old words. Tuned: LoCoMo +.005."""
POINT_POWER = 2
"""Usefulness is the score's share of the best, squared: the hand rule."""
SET_POWER = 1
"""For a set it falls off slower. Tuned: event ordering +.04."""
TOLD_BEFORE = 1.0
"""For a set: how far a unit is discounted when all that is relevant was said before. Tuned: +.01 to +.03."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """`useful`: how useful each unit is, above 0 and 1 for the best; units of no use are left out.

    `answers`: how well its replies and results match by themselves, 1 for the best, falling with their rank.
    """

    useful: Mapping[int, float]
    answers: Mapping[int, float]


def rank(
    asked: Question,
    statistics: Statistics,
    units: Mapping[int, UnitWords],
    matching: Iterable[int],
    others: Sequence[Mapping[int, float]] = (),
) -> Ranked:
    """The units in the light of a question.

    `matching` are the units that hold a term of the question; `units` holds these and, as far as they can
    be had, those around them: a score spreads only to units that are there. `others` are further rankings,
    unit to similarity, only the order of which counts.
    """
    said_weights = _weights(asked, statistics.said_units, statistics.said_in)
    done_weights = _weights(asked, statistics.done_units, statistics.done_in)
    said_average = statistics.said_length / max(1, statistics.said_units)
    done_average = statistics.done_length / max(1, statistics.done_units)
    said: dict[int, float] = {}
    done: dict[int, float] = {}
    for unit in sorted(matching):
        words = units[unit]
        if words.said and (score := _bm25(said_weights, words.said, words.said_length / said_average)):
            said[unit] = score
        if words.done and (score := _bm25(done_weights, words.done, words.done_length / done_average)):
            done[unit] = score
    fused: dict[int, float] = {}
    _fuse(fused, _with_neighbours(said, units), 1.0)
    _fuse(fused, done, DONE_WEIGHT)
    for other in others:
        _fuse(fused, {unit: value for unit, value in other.items() if unit in units}, OTHER_WEIGHT)
    spread = _spread(fused, WIDE if asked.wants_set else NEAR, units)
    scores = {unit: spread[unit] * _traits(units[unit]) for unit in sorted(spread)}
    best_first = sorted(done, key=lambda unit: (-done[unit], unit))
    answers = {unit: (RANK_CONSTANT + 1) / (RANK_CONSTANT + n) for n, unit in enumerate(best_first, 1)}
    return Ranked(_usefulness(scores, asked.wants_set), answers)


def _weights(asked: Question, total: int, holding: Mapping[str, int]) -> list[tuple[str, float]]:
    """Each term's weight times its idf, which is never negative (Robertson and Zaragoza 2009, and Lucene)."""
    return [
        (term, weight * math.log(1 + (total - holding[term] + 0.5) / (holding[term] + 0.5)))
        for term, weight in asked.terms.items()
        if holding.get(term)
    ]


def _bm25(weights: Iterable[tuple[str, float]], counts: Mapping[str, int], relative: float) -> float:
    """BM25 of a text that is `relative` times as long as the average one."""
    norm = BM25_K1 * (1 - BM25_B + BM25_B * relative)
    score = 0.0
    for term, weight in weights:
        count = counts.get(term)
        if count:
            score += weight * count * (BM25_K1 + 1) / (count + norm)
    return score


def _with_neighbours(scores: Mapping[int, float], units: Mapping[int, UnitWords]) -> dict[int, float]:
    raised = {
        unit: score + NEIGHBOUR_SHARE * max(scores.get(unit - 1, 0.0), scores.get(unit + 1, 0.0))
        for unit, score in scores.items()
    }
    for unit in scores:
        for beside in (unit - 1, unit + 1):
            if beside not in raised and beside in units:
                best = max(scores.get(beside - 1, 0.0), scores.get(beside + 1, 0.0))
                raised[beside] = NEIGHBOUR_SHARE * best
    return raised


def _fuse(fused: dict[int, float], scores: Mapping[int, float], weight: float) -> None:
    """Add a ranking's reciprocal ranks. Ties go to the earlier unit."""
    order = sorted(scores, key=lambda unit: (-scores[unit], unit))
    for place, unit in enumerate(order, start=1):
        fused[unit] = fused.get(unit, 0.0) + weight / (RANK_CONSTANT + place)


def _spread(
    fused: Mapping[int, float], widths: Sequence[float], units: Mapping[int, UnitWords]
) -> dict[int, float]:
    reached = {
        unit + step
        for unit in fused
        for step in range(-len(widths), len(widths) + 1)
        if step == 0 or unit + step in units
    }
    at = fused.get
    spread: dict[int, float] = {}
    for unit in reached:
        score = at(unit, 0.0)
        for away, share in enumerate(widths, start=1):
            before, after = at(unit - away, 0.0), at(unit + away, 0.0)
            score += share * max(before, after)
        spread[unit] = score
    return spread


def _traits(words: UnitWords) -> float:
    factor = 1 + NOVELTY * words.novelty
    if words.acknowledges:
        factor *= ACKNOWLEDGED
    return factor * NUMBER if words.has_number else factor


def _usefulness(scores: Mapping[int, float], wants_set: bool) -> dict[int, float]:
    if not scores:
        return {}
    best = max(scores.values())
    power = SET_POWER if wants_set else POINT_POWER
    useful = {unit: (score / best) ** power for unit, score in scores.items()}
    if not wants_set or len(useful) < 2:
        return useful
    # Asked how a matter went, the first to bring up a part of it counts more than who comes back to it.
    before = [0.0, *accumulate(useful[unit] for unit in useful)]
    whole = before[-2]
    told = {
        unit: value / (1 + TOLD_BEFORE * before[place] / whole)
        for place, (unit, value) in enumerate(useful.items())
    }
    best = max(told.values())
    return {unit: value / best for unit, value in told.items()}
