"""What recall brings back of what a turn needs, asked with the turn's own words.

The identifiers that are needed are taken out of the words first: whoever can name them has no need to look.
Only entries before the boundary are searched, within a small budget of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shiftbook.entries import Entry
from shiftbook.projections.recall_units import Voice, words_of
from shiftbook.prompt.measure import Gauge
from shiftbook.prompt.recall import Memory, Record
from shiftbook.prompt.recall_pack import KEEP_CHARS
from shiftbook.prompt.render import chars, render_entry
from shiftbook.prompt.told import recalled_text
from shiftbook.studies.boundaries import Boundary
from shiftbook.studies.identifiers import Identifier, identifiers, taken_out
from shiftbook.studies.lives import ends_of_turns

RECALL_TOKENS = 2_000
"""What recall may bring back at once."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was brought back of everything that was needed after one boundary."""

    session: str
    part: str
    boundary: int
    needed: frozenset[Identifier]
    brought: frozenset[Identifier]


def looked_for(
    session: str, part: str, bounds: Sequence[Boundary], entries: Sequence[Entry], gauge: Gauge
) -> list[Looked]:
    """Each boundary's uses asked one by one."""
    ends = ends_of_turns(entries)
    found: list[Looked] = []
    for boundary in bounds:
        before = entries[: ends[min(boundary.turn, len(ends) - 1)]]
        by_position = {entry.position: entry for entry in before}
        memory = Memory(
            _record(by_position[each.position], each.voice, each.text, gauge) for each in words_of(before)
        )
        brought: set[Identifier] = set()
        for use in boundary.uses:
            query = taken_out(use.words, use.needed)
            for each in memory.recall(query, RECALL_TOKENS):
                text = recalled_text(by_position[each.position], each.keep)
                brought |= identifiers(text) & use.needed
        found.append(Looked(session, part, boundary.number, boundary.needed, frozenset(brought)))
    return found


def _record(entry: Entry, voice: Voice, text: str, gauge: Gauge) -> Record:
    whole = sum(gauge.measure(block) for block in render_entry(entry, "recalled"))
    cut = None
    if chars(entry) > KEEP_CHARS:
        cut = sum(gauge.measure(block) for block in render_entry(entry, "recalled", KEEP_CHARS))
    return Record(entry.position, voice, text, whole, cut)
