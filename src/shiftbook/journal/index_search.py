"""What a search in the index does the same on every store: which terms are read, which units are ranked.

Pure: from how often a term stands in a run's units to what is to be read of it, and from what was read to
the candidates. A store only looks up; so SQLite and PostgreSQL give the same candidates for the same journal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shiftbook.projections.recall_units import Statistics, Unit, UnitWords

POSTINGS_READ = 10_000
"""Occurrences read for one search; rarer terms first. At about 0.5 us each in SQLite this is the search's own
share."""

WHOLE_UNITS = 1_000
"""A run of so many units is ranked whole, as `shiftbook study recall` ranks a chat: with 400 candidates its
tuned halves held .007 less at 511k and .014 at 834k."""

CANDIDATES = 400
"""Units of a longer run that are ranked in full. A prompt of 22k tokens holds some 200 messages of people."""

DONE_SHARE = 0.5
"""What a term in replies and results counts beside one that was said, when candidates are chosen."""

REACHING = 100
"""Candidates whose whole surroundings are read; of the others only the direct neighbours."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a run: its key in the index, and in how many units it was said and done."""

    key: int
    said: int
    done: int


@dataclass(frozen=True, slots=True)
class Sums:
    """Of a run: how many units it has, how many have words of a side, and how long these are together."""

    units: int = 0
    said_units: int = 0
    said_length: int = 0
    done_units: int = 0
    done_length: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read of a term: its newest `limit` units out of the `held` where it was said (`side` 0) or
    done (1). Each of them gains `weight`."""

    term: str
    key: int
    side: int
    held: int
    limit: int
    weight: float


Read = Sequence[tuple[Reading, Mapping[int, int]]]
"""What was read: of each term, the units that hold it and how often."""


def statistics_of(sums: Sums, terms: Mapping[str, Term]) -> Statistics:
    """The run's statistics for the terms of a question that stand in it."""
    return Statistics(
        sums.said_units,
        sums.said_length,
        sums.done_units,
        sums.done_length,
        {name: term.said for name, term in terms.items()},
        {name: term.done for name, term in terms.items()},
    )


def readings(terms: Mapping[str, Term], sums: Sums) -> list[Reading]:
    """What to read for these terms, the rarest first, until `POSTINGS_READ` are read.

    A commoner term that does not fit any more is passed over and counts for nothing; if it is the rarest
    itself, its newest units are read.
    """
    asked = sorted(
        (held, side, name, term.key)
        for name, term in terms.items()
        for side, held in enumerate((term.said, term.done))
        if held
    )
    plan: list[Reading] = []
    left = POSTINGS_READ
    for held, side, name, key in asked:
        if held > left and plan:
            break
        of = sums.done_units if side else sums.said_units
        weight = math.log(1 + (of - held + 0.5) / (held + 0.5)) * (DONE_SHARE if side else 1)
        plan.append(Reading(name, key, side, held, min(held, left), weight))
        left -= held
    return plan


def scores_of(read: Read) -> dict[int, float]:
    """The weight of the terms that each unit holds."""
    scores: dict[int, float] = {}
    for reading, units in read:
        for unit in units:
            scores[unit] = scores.get(unit, 0.0) + reading.weight
    return scores


def candidates_of(units: int) -> int:
    """How many of a run's units are ranked in full."""
    return units if units <= WHOLE_UNITS else CANDIDATES


def chosen_of(scores: Mapping[int, float], limit: int) -> list[int]:
    """The units with the heaviest terms, at most `limit`; among equals the earlier ones. In order."""
    if len(scores) <= limit:
        return sorted(scores)
    least = sorted(scores.values(), reverse=True)[limit - 1]
    better = [unit for unit, score in scores.items() if score > least]
    equal = sorted(unit for unit, score in scores.items() if score == least)
    return sorted([*better, *equal[: limit - len(better)]])


def around(
    scores: Mapping[int, float], chosen: Iterable[int], alike: Iterable[int], reach: int, units: int
) -> list[int]:
    """The chosen units and those near them, of a run with so many units. In order.

    `alike` are chosen ones whose surroundings count as much as those of the best by their terms.
    """
    near = {unit + step for unit in chosen for step in (-1, 0, 1)}
    best = {*chosen_of(scores, REACHING), *alike}
    near.update(unit + step for unit in best for step in range(-reach, reach + 1))
    return sorted(unit for unit in near if 0 <= unit < units)


def held_by(read: Read, side: int, chosen: Iterable[int]) -> dict[int, dict[str, int]]:
    """Chosen unit -> the terms that it holds on a side and how often, in the order of the readings."""
    wanted = frozenset(chosen)
    held: dict[int, dict[str, int]] = {}
    for reading, units in read:
        if reading.side == side:
            for unit in wanted.intersection(units):
                held.setdefault(unit, {})[reading.term] = units[unit]
    return held


def sums_of(units: Sequence[Unit]) -> Sums:
    """What these units add to their run's sums."""
    said = [unit.words.said_length for unit in units if unit.words.said_length]
    done = [unit.words.done_length for unit in units if unit.words.done_length]
    return Sums(len(units), len(said), sum(said), len(done), sum(done))


def counts_of(units: Iterable[Unit]) -> dict[str, tuple[int, int]]:
    """Term -> in how many of these units it was said, and done."""
    counts: dict[str, list[int]] = {}
    for unit in units:
        for term in unit.words.said:
            counts.setdefault(term, [0, 0])[0] += 1
        for term in unit.words.done:
            counts.setdefault(term, [0, 0])[1] += 1
    return {term: (said, done) for term, (said, done) in counts.items()}


def traits_of(words: UnitWords) -> int:
    """The traits of a unit's words as one number."""
    return words.acknowledges + 2 * words.has_number


def words_of_row(
    said: Mapping[str, int], done: Mapping[str, int], row: tuple[int, int, int, float]
) -> UnitWords:
    """A unit's words from what it holds and its row: the lengths of both sides, traits, novelty."""
    said_length, done_length, traits, novelty = row
    return UnitWords(said, done, said_length, done_length, bool(traits & 1), bool(traits & 2), novelty)
