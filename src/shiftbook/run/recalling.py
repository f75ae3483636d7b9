"""Recall over a run of any length: candidates from the index, the ranking, then only what may fit is read.

What it costs follows the budget, not the run. Where the index is behind, what it has not taken in yet does
not come back; the newest turns stand in the prompt anyway. It decides nothing on its own: who asks gets the
positions and forms, and journals them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from shiftbook.codec import open_row, payload_blob
from shiftbook.entries import Entry
from shiftbook.errors import Damaged
from shiftbook.journal.index import Alike, Index
from shiftbook.journal.promises import Store
from shiftbook.projections.recall_units import Voice, words_of
from shiftbook.prompt.epoch import Measure
from shiftbook.prompt.recall_pack import KEEP_CHARS, Found, Piece, pack
from shiftbook.prompt.recall_question import Question, question
from shiftbook.prompt.recall_rank import NEAR, WIDE, Ranked, rank
from shiftbook.prompt.render import chars, render_entry
from shiftbook.vectors.promise import Vectors

READ_SHARE = 4
"""Entries are read, the most useful units first, until they are so many times the budget."""

UNITS_READ = 400
UNIT_ENTRIES = 24
"""Of a unit so many entries are read at the most: its words, its reply and its first results."""


async def recall(
    index: Index,
    store: Store,
    run: str,
    query: str,
    budget: int,
    measure: Measure,
    *,
    beside: Sequence[str] = (),
    shown: frozenset[int] = frozenset(),
    vectors: Vectors | None = None,
) -> tuple[Found, ...]:
    """What comes back for a query within `budget` tokens by `measure`, each as the form `recalled` shows it.

    `beside` are the plan and the last turns, `shown` positions that stand in the prompt already. In the order
    of the run. With `vectors` units are ranked by their likeness to the query too.
    """
    asked = question(query, beside)
    ranked, spans = await _ranked(index, run, asked, query, vectors)
    useful = ranked.useful
    pieces: list[Piece] = []
    tokens = 0
    for unit in sorted(useful, key=lambda each: (-useful[each], each))[:UNITS_READ]:
        for entry, voice in await _entries(store, run, *spans[unit]):
            if entry.position not in shown:
                pieces.append(_piece(entry, unit, voice, measure))
                tokens += pieces[-1].tokens
        if tokens > READ_SHARE * budget:
            break
    return pack(asked, ranked, pieces, budget)


async def search_index(
    index: Index, store: Store, run: str, query: str, limit: int, vectors: Vectors | None = None
) -> list[int]:
    """The positions of the most useful entries, best first: what the `recall` tool asks for.

    Of each unit a person's words come before the reply, and this before results.
    """
    ranked, spans = await _ranked(index, run, question(query), query, vectors)
    useful = ranked.useful
    found: list[int] = []
    for unit in sorted(useful, key=lambda each: (-useful[each], each)):
        if len(found) >= limit:
            break
        found += [entry.position for entry, _ in await _entries(store, run, *spans[unit])]
    return found[: max(0, limit)]


async def _ranked(
    index: Index, run: str, asked: Question, query: str, vectors: Vectors | None
) -> tuple[Ranked, Mapping[int, tuple[int, int]]]:
    reach = len(WIDE if asked.wants_set else NEAR)
    vector = b"" if vectors is None else vectors.of(query)
    alike = None if vectors is None or not any(vector) else Alike(vectors.name, vector)
    found = await index.candidates(run, list(asked.terms), reach=reach, alike=alike)
    others = [found.likeness] if found.likeness else []
    return rank(asked, found.statistics, found.words, found.matching, others), found.spans


async def _entries(store: Store, run: str, first: int, last: int) -> list[tuple[Entry, Voice]]:
    count = min(last - first + 1, UNIT_ENTRIES)
    entries: list[Entry] = []
    for row in await store.entries.read(run, first - 1, count):
        name = payload_blob(row)
        try:
            blob = None if name is None else partial(_the, await store.blobs.get(run, name))
            entries.append(open_row(row, blob))
        except Damaged:
            continue
    voices = {words.position: words.voice for words in words_of(entries)}
    return [(entry, voices[entry.position]) for entry in entries if entry.position in voices]


def _the(content: bytes, _name: str) -> bytes:
    return content


def _piece(entry: Entry, unit: int, voice: Voice, measure: Measure) -> Piece:
    whole = sum(measure(block) for block in render_entry(entry, "recalled"))
    cut = None
    if chars(entry) > KEEP_CHARS:
        cut = sum(measure(block) for block in render_entry(entry, "recalled", KEEP_CHARS))
    return Piece(entry.position, unit, voice, whole, cut)
