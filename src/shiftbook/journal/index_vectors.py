"""Vectors in the search index: a row of bytes a unit, filled after the words and apart from them.

A search looks at the signs of all the run's vectors, an eighth of their bytes, and reads whole only those of
the units that are ranked. Likeness counts only where every unit that the index knows has its vector: else the
ones that have it would come before the others for no other reason. Pure but for `fill_vectors`; so SQLite and
PostgreSQL give the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from shiftbook.codec import Row
from shiftbook.entries import Entry
from shiftbook.errors import Damaged
from shiftbook.journal.index import FILL_ENTRIES, Alike, Index, opened_rows
from shiftbook.journal.index_search import WHOLE_UNITS, chosen_of
from shiftbook.journal.promises import Store
from shiftbook.projections.recall_units import unit_text, words_of
from shiftbook.vectors.likeness import agreeing, likeness, signs_of
from shiftbook.vectors.promise import Vectors

FILL_UNITS = 200
"""Units that one call of `fill_vectors` looks at."""

ALIKE = 200
"""Units of a run that is not ranked whole which are candidates for their signs, beside those for their terms.
On the tuned halves of the study's chats 300 and 400 held .001 more; each costs its part of a search."""

ALIKE_REACHING = 50
"""Of the candidates, so many of the most alike have their whole surroundings read."""


async def fill_vectors(
    index: Index, store: Store, run: str, vectors: Vectors, limit: int = FILL_ENTRIES
) -> bool:
    """Give the next units of the run their vectors, by about `limit` entries; whether more may be left.

    It follows the words: what these do not cover yet has to wait.
    """
    lacking = await index.lacking(run, vectors.name, FILL_UNITS)
    if not lacking.spans:
        return False
    first = lacking.spans[0][0]
    spans = [span for place, span in enumerate(lacking.spans) if not place or span[1] - first < limit]
    entries: list[Entry] = []
    rows: list[Row] = []
    while not rows or rows[-1].position < spans[-1][1]:
        after = rows[-1].position if rows else first - 1
        rows = await store.entries.read(run, after, min(limit, spans[-1][1] - after))
        if not rows:
            break
        entries += await opened_rows(store, run, rows)
    made = [vectors.of(text) for text in _texts(entries, spans)]
    taken = await index.add_vectors(run, vectors.name, lacking.start, made)
    return len(spans) < len(lacking.spans) or len(lacking.spans) == FILL_UNITS or not taken


def _texts(entries: Sequence[Entry], spans: Sequence[tuple[int, int]]) -> list[str]:
    firsts = [first for first, _ in spans]
    said: list[list[str]] = [[] for _ in spans]
    done: list[list[str]] = [[] for _ in spans]
    for each in words_of(entries):
        unit = bisect_right(firsts, each.position) - 1
        (said if each.voice == "person" else done)[unit].append(each.text)
    return [unit_text(*both) for both in zip(said, done, strict=True)]


def signs_together(vectors: Iterable[bytes]) -> bytes:
    """The signs of these vectors one after another, as a store keeps them."""
    return b"".join(map(signs_of, vectors))


def nearest(chunks: Sequence[bytes], alike: Alike, units: int) -> list[int]:
    """The units whose signs agree best with the asked vector's, in order; none unless `units` have them.

    `chunks` are the run's signs in the order of its units. Raises `Damaged` where they are of another length.
    """
    signs = b"".join(chunks)
    width = len(signs_of(alike.vector))
    if len(signs) % max(1, width):
        raise Damaged("The signs of vectors in the search index are not of the length that was put in.")
    if len(signs) != units * width:
        return []
    return list(range(units)) if units <= WHOLE_UNITS else agreeing(signs, alike.vector, ALIKE)


def likeness_of(vectors: Mapping[int, bytes], alike: Alike) -> dict[int, float]:
    """Each unit's likeness to the asked vector. Raises `Damaged` where one is of another length."""
    if any(len(vector) != len(alike.vector) for vector in vectors.values()):
        raise Damaged("A vector in the search index is not of the length that was put in.")
    return likeness(vectors, alike.vector)


def most_alike(likeness: Mapping[int, float]) -> list[int]:
    """The units whose whole surroundings are read, in order."""
    return chosen_of(likeness, ALIKE_REACHING)
