"""Vectors in the search index: a ranking more, of their own coverage, that costs the words nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftbook.entries import What
from shiftbook.errors import Damaged, StoreError
from shiftbook.journal import index_vectors
from shiftbook.journal.index import Alike, Candidates, Covered, Index, Lacking, fill
from shiftbook.journal.index_search import WHOLE_UNITS
from shiftbook.journal.index_vectors import FILL_UNITS, fill_vectors, likeness_of, nearest
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Store
from shiftbook.prompt.measure import Gauge
from shiftbook.prompt.recall_question import question
from shiftbook.prompt.recall_rank import WIDE, rank
from shiftbook.run.recalling import recall, search_index
from tests import postgres
from tests.journal.indexing import (
    KINDS,
    Kind,
    append,
    book,
    filled,
    in_loop,
    index_of,
    replied,
    said,
    texts,
    whats,
)
from tests.journal.places import fresh_database
from tests.journal.test_index import memory
from tests.journal.test_postgres_index import behind, in_order
from tests.vectors.made import Counted

every_kind = pytest.mark.parametrize("kind", KINDS)
NUMBERS = count()
ENOUGH = len(WIDE)


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield ":memory:"
    else:
        with fresh_database() as address:
            yield address


async def all_filled(
    index: Index, store: Store, vectors: Counted, limit: int = 500, run: str = "run"
) -> None:
    """Words and vectors to the end of a run."""
    await filled(index, store, limit, run)
    while await fill_vectors(index, store, run, vectors, limit):
        pass


async def found(index: Index, query: str, vectors: Counted, run: str = "run", **more: Any) -> Candidates:
    """The candidates for a query, by its words and its vector."""
    alike = Alike(vectors.name, vectors.of(query))
    more = {"reach": ENOUGH} | more
    return await index.candidates(run, list(question(query).terms), alike=alike, **more)


@settings(max_examples=25, deadline=None)
@given(st.lists(whats, max_size=30), texts, st.integers(1, 7), st.integers(1, 7))
def test_ranks_as_from_memory_however_it_was_filled(
    place: str, things: list[What], query: str, limit: int, vector_limit: int
) -> None:
    async def scene() -> None:
        vectors = Counted()
        store = await open_store(place)
        index = index_of(store)
        try:
            run = f"run{next(NUMBERS)}"
            await append(store, run, [*things, said("end")])
            # A few words, a few vectors, and so on: a coverage each, and both come to the same end.
            while True:
                more_words = await fill(index, store, run, limit)
                if not await fill_vectors(index, store, run, vectors, vector_limit) and not more_words:
                    break
            units = (await index.covered(run)).units
            assert await index.lacking(run, vectors.name, 9) == Lacking(units)
            there = await found(index, query, vectors, run)
            others = [there.likeness] if there.likeness else []
            ranked = rank(question(query), there.statistics, there.words, there.matching, others)
            in_memory = memory(things, vectors)
            assert ranked.useful == pytest.approx(in_memory.ranked(question(query), query).useful)
        finally:
            await index.close()
            await store.close()

    asyncio.run(scene())


@settings(max_examples=25, deadline=None)
@given(
    things=st.lists(whats, max_size=40),
    query=texts,
    limits=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    near=st.integers(0, 6),
    reach=st.integers(0, 3),
    limit=st.integers(1, 6),
)
def test_p1_both_stores_give_the_same_candidates(
    server: str,
    things: list[What],
    query: str,
    limits: tuple[int, int],
    near: int,
    reach: int,
    limit: int,
) -> None:
    """P1: however each was filled, and wherever a limit cuts."""

    async def found_in(place: str, run: str, batch: int) -> list[Any]:
        store = await open_store(place)
        index = index_of(store)
        try:
            await append(store, run, [*things, said("end")])
            await all_filled(index, store, Counted(), batch, run)
            there = await found(index, query, Counted(), run, reach=reach, limit=limit)
            return [*in_order(there), list(there.likeness.items())]
        finally:
            await index.close()
            await store.close()

    run = f"both{next(NUMBERS)}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_vectors, "WHOLE_UNITS", 0)
        patch.setattr(index_vectors, "ALIKE", near)
        patch.setattr(index_vectors, "ALIKE_REACHING", near // 2)
        assert asyncio.run(found_in(server, run, limits[0])) == asyncio.run(
            found_in(":memory:", run, limits[1])
        )


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with fresh_database() as address:
        yield address


class Watched:
    """An index that tells what was written into it."""

    def __init__(self, inner: Index) -> None:
        self._inner = inner
        self.wrote: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name in ("add", "add_vectors", "drop"):
            self.wrote.append(name)
        return getattr(self._inner, name)


@every_kind
@in_loop
async def test_switched_on_later_off_or_to_others_the_words_stay(kind: Kind) -> None:
    async with book(kind, said("the red kite"), replied("a kite"), said("a blue boat"), said("end")) as store:
        index = Watched(index_of(store))
        covered = await filled(index, store)
        index.wrote.clear()
        letters, others = Counted(), Counted("others")
        assert not (await found(index, "kite", letters)).likeness
        await all_filled(index, store, letters)
        assert set((await found(index, "kite", letters)).likeness) == {0, 1}
        assert not (await found(index, "kite", others)).likeness, "one name is not compared with another"
        await all_filled(index, store, others)
        assert set((await found(index, "kite", others)).likeness) == {0, 1}
        assert await index.lacking("run", letters.name, 9) == Lacking(0, ((1, 2), (3, 3)))
        # Off: the words alone, as if there were none.
        assert not (await index.candidates("run", ["kite"], reach=1)).likeness
        assert await index.covered("run") == covered
        assert set(index.wrote) == {"add_vectors"}


@every_kind
@in_loop
async def test_likeness_counts_once_all_the_units_have_vectors(kind: Kind) -> None:
    things = [said(f"kite number {number}") for number in range(6)]
    async with book(kind, *things, said("end")) as store:
        index, vectors = index_of(store), Counted()
        await filled(index, store)
        assert await fill_vectors(index, store, "run", vectors, 2)
        assert not (await found(index, "kite", vectors)).likeness
        await all_filled(index, store, vectors)
        assert len((await found(index, "kite", vectors)).likeness) == 6
        # A question of no direction is asked by its words alone.
        assert await recall(index, store, "run", "zzz", 900, Gauge().measure, vectors=vectors) == ()


@every_kind
@in_loop
async def test_what_shares_no_word_is_found_and_only_then(kind: Kind) -> None:
    things: list[What] = [said("blanket"), replied("Noted.")]
    for number in range(20):
        things += [said(f"www {number % 2} uuu"), replied("ccc")]
    async with book(kind, *things, said("end")) as store:
        index, vectors = index_of(store), Counted()
        await all_filled(index, store, vectors)
        measure = Gauge().measure
        assert await recall(index, store, "run", "tablekn", 900, measure) == ()
        back = await recall(index, store, "run", "tablekn", 60, measure, vectors=vectors)
        assert 1 in [each.position for each in back]
        assert (await search_index(index, store, "run", "tablekn", 1, vectors)) == [1]
        assert await search_index(index, store, "run", "tablekn", 1) == []


@every_kind
@in_loop
async def test_only_the_next_ones_are_taken_in(kind: Kind) -> None:
    things = [said(f"kite {number}") for number in range(5)]
    async with book(kind, *things, said("end")) as store:
        index = index_of(store)
        assert not await index.add_vectors("run", "letters", 0, [b"ab"]), "no words yet"
        await filled(index, store)
        assert await index.lacking("run", "letters", 2) == Lacking(0, ((1, 1), (2, 2)))
        assert not await index.add_vectors("run", "letters", 1, [b"ab"])
        assert not await index.add_vectors("run", "letters", 0, [b"ab"] * 6), "more than there are units"
        assert await index.add_vectors("run", "letters", 0, [b"ab", b"cd"])
        assert not await index.add_vectors("run", "letters", 0, [b"ab", b"cd"]), "another was first"
        assert (await index.lacking("run", "letters", 9)).start == 2
        assert await index.lacking("unheard", "letters", 9) == Lacking()
        await index.drop("run")
        assert await index.lacking("run", "letters", 9) == Lacking()
        assert await index.covered("run") == Covered()
        await filled(index, store)
        assert (await index.lacking("run", "letters", 9)).start == 0


@every_kind
@in_loop
async def test_another_history_under_the_same_name_has_its_own_vectors(kind: Kind) -> None:
    vectors = Counted()
    async with book(kind, said("kite"), said("end")) as first:
        index = index_of(first)
        await all_filled(index, first, vectors)
        async with book(kind, said("boat"), said("end")) as second:
            await all_filled(index, second, vectors)
            there = await found(index, "boat", vectors)
            assert there.likeness == pytest.approx({0: 1.0})
        assert vectors.made.count("boat") == 2


@in_loop
async def test_long_units_and_many_are_taken_in_by_batches() -> None:
    things: list[What] = []
    for number in range(FILL_UNITS + 30):
        things += [said(f"kite {number}"), *[replied("seen")] * (number == 3), replied("a boat")]
    async with book("sqlite", *things, said("end")) as store:
        index, vectors = index_of(store), Counted()
        await filled(index, store)
        units = (await index.covered("run")).units
        batches = 1
        while await fill_vectors(index, store, "run", vectors, 40):
            batches += 1
        assert await index.lacking("run", vectors.name, 1) == Lacking(units)
        assert len(vectors.made) == units, "each once"
        assert vectors.made[:5] == ["kite 0", "kite 1", "kite 2", "kite 3", "a boat"]
        assert batches >= len(things) / 40


def test_a_short_run_is_ranked_whole_and_of_a_longer_one_those_that_agree() -> None:
    alike = Alike("x", b"\x01" * 8 + b"\xff" * 8)
    signs = [b"\x00\xff", b"\xff\x00" + b"\xfe\x00", b"\x00\x00" * index_vectors.ALIKE]
    assert nearest(signs, alike, index_vectors.ALIKE + 3) == list(range(index_vectors.ALIKE + 3))
    long = [*signs, b"\x00\xff" * WHOLE_UNITS]
    near = nearest(long, alike, index_vectors.ALIKE + 3 + WHOLE_UNITS)
    assert near == list(range(1, index_vectors.ALIKE + 1))


def test_bytes_of_another_length_are_damage() -> None:
    with pytest.raises(Damaged, match="signs"):
        nearest([b"abc"], Alike("x", bytes(16)), 1)
    assert nearest([b"ab"], Alike("x", bytes(16)), 2) == [], "another unit has none"
    with pytest.raises(Damaged, match="vector"):
        likeness_of({0: b"abc"}, Alike("x", b"ab"))


COUNTS = " + ".join(
    f"(SELECT count(*) FROM shiftbook.{table})"
    for table in ("search_vector_runs", "search_vectors", "search_signs")
)


@pytest.mark.parametrize("what", ["lose_request", "lose_reply"])
@pytest.mark.parametrize(
    "step", [b"INTO shiftbook.search_signs", b"INTO shiftbook.search_vector_runs", b"COMMIT"]
)
@in_loop
async def test_one_whose_connection_dies_takes_a_batch_in_once(step: bytes, what: str) -> None:
    """C3: also where the batch was committed and the word of it was lost."""
    async with behind() as (far, beside, line, address):
        await filled(index_of(beside), beside)
        setattr(line, what, step)
        await all_filled(index_of(far), far, Counted())
        assert line.lost == 1
        assert postgres.shared().sql(address, f"SELECT {COUNTS}") == [(4,)]
        assert len((await found(index_of(beside), "kite", Counted())).likeness) == 2


@in_loop
async def test_one_that_dies_half_way_leaves_nothing() -> None:
    """C3: whatever it had written of a batch."""
    async with behind(away_ms=0) as (far, beside, line, address):
        await filled(index_of(beside), beside)
        line.lose_request, line.on_lost = b"INTO shiftbook.search_signs", line.cut
        with pytest.raises(StoreError):
            await fill_vectors(index_of(far), far, "run", Counted())
        assert postgres.shared().sql(address, f"SELECT {COUNTS}") == [(0,)]
