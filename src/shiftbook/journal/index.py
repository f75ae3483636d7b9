"""What a search index over runs promises: candidates for a ranking, quickly, from what it was given so far.

It is a projection of the entries, kept apart from them: filled later and in batches, never by an append; it
may be behind, and it may be dropped at any time and filled again to the same value. It knows terms and units,
no entries' text and no ranking: what it hands out goes to `prompt.recall_rank`, which gives the same order
for a run from here as from memory, as long as all matching units are among the candidates.

Beside the words it keeps a vector a unit for whoever gives it some (`index_vectors`). These have a coverage
of their own and the name of what made them, so that words are never filled again on their account.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from shiftbook.codec import Row, link, open_row, payload_blob
from shiftbook.entries import Entry
from shiftbook.errors import Damaged
from shiftbook.journal.promises import Store
from shiftbook.projections.recall_units import (
    Spoken,
    Statistics,
    Unit,
    UnitWords,
    closed_units,
    unit_words,
    with_novelty,
    words_of,
)

FILL_ENTRIES = 500
"""Entries that one call of `fill` reads, so that it never holds up a loop for long: some 0.2 s."""


@dataclass(frozen=True, slots=True)
class Covered:
    """How far the index goes in a run: to the entry at `position`, the last of a unit, whose row has
    `mark`; `units` units with `terms` in it. Nothing of the run: 0 and no mark."""

    position: int = 0
    mark: bytes = b""
    units: int = 0


@dataclass(frozen=True, slots=True)
class Alike:
    """Asks for units by likeness too: `vector` is of the question's words, by the vectors named `name`."""

    name: str
    vector: bytes


@dataclass(frozen=True, slots=True)
class Candidates:
    """Units for the ranking. `words` holds the matching ones and those around them, with counts of the
    terms asked for only; `spans` the first and last position of each. `likeness` holds candidates with their
    likeness to a vector that was asked with; none unless all the units have vectors by its name."""

    statistics: Statistics
    words: Mapping[int, UnitWords]
    spans: Mapping[int, tuple[int, int]]
    matching: tuple[int, ...]
    likeness: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lacking:
    """The first units of a run without a vector: the number of the first, and the positions of each."""

    start: int = 0
    spans: tuple[tuple[int, int], ...] = ()


class Index(Protocol):
    """An index over runs."""

    async def covered(self, run: str) -> Covered:
        """How far it goes in a run."""
        ...

    async def add(self, run: str, units: Sequence[Unit], covered: Covered, to: Covered) -> bool:
        """Take in units, all or nothing, if it covers `covered`; then it covers `to`. False: it was
        elsewhere, since another process filled it, and nothing was written."""
        ...

    async def known(self, run: str, terms: Iterable[str]) -> set[str]:
        """Which of these terms stand in the run's units."""
        ...

    async def candidates(
        self,
        run: str,
        terms: Sequence[str],
        *,
        reach: int,
        limit: int | None = None,
        alike: Alike | None = None,
    ) -> Candidates:
        """The most promising units for these terms, and the units up to `reach` away from each.

        At most `limit` by their terms; by default `index_search.candidates_of` the run's units.
        """
        ...

    async def lacking(self, run: str, name: str, limit: int) -> Lacking:
        """At most `limit` units that have no vector by that name yet, in order."""
        ...

    async def add_vectors(self, run: str, name: str, start: int, vectors: Sequence[bytes]) -> bool:
        """Take in vectors of the units from `start` on, all or nothing, if these are the next without one.

        Vectors by another name are forgotten: a run has those of one kind. False: nothing was written.
        """
        ...

    async def drop(self, run: str | None = None) -> None:
        """Forget a run, or all."""
        ...

    async def close(self) -> None:
        """Let go of it."""
        ...


async def fill(index: Index, store: Store, run: str, limit: int = FILL_ENTRIES) -> bool:
    """Bring the index forward by about `limit` entries; whether more may be left.

    The newest unit stays out until it is closed: it stands in the prompt anyway. Where the record is no
    longer what was indexed (erased, or a restored copy), the run is forgotten and filled anew. An entry that
    cannot be read is passed over: `verify` is for faults.
    """
    covered = await index.covered(run)
    if covered.position and await _mark(store, run, covered.position) != covered.mark:
        await index.drop(run)
        covered = Covered()
    rows: list[Row] = []
    entries: list[Entry] = []
    groups: list[tuple[Spoken, ...]] = []
    more = True
    while more and not groups:
        # A unit longer than a page is read on to its end: it cannot be taken in by halves.
        page = await store.entries.read(run, rows[-1].position if rows else covered.position, max(1, limit))
        rows += page
        entries += await opened_rows(store, run, page)
        groups = list(closed_units(words_of(entries)))
        more = len(page) >= max(1, limit)
    if not groups:
        return False
    last = groups[-1][-1].position
    mark = next(_marked(row) for row in rows if row.position == last)
    to = Covered(last, mark, covered.units + len(groups))
    units = await _units(index, run, groups, covered.units)
    taken = await index.add(run, units, covered, to)
    return more or not taken


async def _units(index: Index, run: str, groups: Sequence[Sequence[Spoken]], start: int) -> list[Unit]:
    texts = [
        (
            [each.text for each in group if each.voice == "person"],
            [each.text for each in group if each.voice != "person"],
        )
        for group in groups
    ]
    first = [unit_words(said, done, ()) for said, done in texts]
    known = await index.known(run, {term for words in first for term in (*words.said, *words.done)})
    units: list[Unit] = []
    for number, (group, words) in enumerate(zip(groups, first, strict=True), start):
        fresh = with_novelty(words, known)
        units.append(Unit(number, group[0].position, group[-1].position, fresh))
        known.update(words.said, words.done)
    return units


async def opened_rows(store: Store, run: str, rows: Iterable[Row]) -> list[Entry]:
    """The entries of these rows, without those that cannot be read."""
    entries: list[Entry] = []
    for row in rows:
        name = payload_blob(row)
        try:
            blobs = {} if name is None else {name: await store.blobs.get(run, name)}
            entries.append(open_row(row, blobs.__getitem__))
        except Damaged:
            continue
    return entries


async def _mark(store: Store, run: str, position: int) -> bytes:
    rows = await store.entries.read(run, position - 1, 1)
    return _marked(rows[0]) if rows and rows[0].position == position else b""


def _marked(row: Row) -> bytes:
    """What tells a row from any other at its position."""
    return link(b"", row)
