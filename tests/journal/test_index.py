"""The search index: the same ranking as from memory, however it was filled, and nothing to lose with it.

On both kinds of store; what only a file or a server can do is in `test_sqlite_index` and
`test_postgres_index`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftbook.entries import ActionFinished, ModelAnswered, PersonSaid, What
from shiftbook.journal import index_search
from shiftbook.journal.index import Covered, fill
from shiftbook.journal.open import open_store
from shiftbook.messages import Call, Text
from shiftbook.prompt.measure import Gauge
from shiftbook.prompt.recall import Memory, Record
from shiftbook.prompt.recall_pack import KEEP_CHARS
from shiftbook.prompt.recall_question import question
from shiftbook.run.recalling import recall, search_index
from shiftbook.vectors.promise import Vectors
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
    useful,
    whats,
)
from tests.journal.places import fresh_database

every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where a store of each kind is, for many runs."""
    if request.param == "sqlite":
        yield ":memory:"
    else:
        with fresh_database() as address:
            yield address


def memory(things: Sequence[What], vectors: Vectors | None = None) -> Memory:
    """The same entries in memory."""
    records = []
    for position, what in enumerate(things, 1):
        match what:
            case PersonSaid(content=(Text(text),)):
                records.append(Record(position, "person", text, 10))
            case ModelAnswered(parts=(Text(text),)):
                records.append(Record(position, "reply", text, 10))
            case ActionFinished(content=(Text(text),)):
                records.append(Record(position, "result", text, 10))
    return Memory(records, vectors)


NUMBERS = count()
"""Each search has a run of its own, since they share a database."""


@settings(max_examples=60, deadline=None)
@given(st.lists(whats, max_size=30), texts, st.integers(1, 7))
def test_ranks_as_from_memory_however_it_was_filled(
    place: str, things: list[What], query: str, limit: int
) -> None:
    # The last unit may still grow and is not taken in: a last message of a person closes the one before.
    async def scene() -> None:
        store = await open_store(place)
        index = index_of(store)
        try:
            run = f"run{next(NUMBERS)}"
            await append(store, run, [*things, said("end")])
            covered = await filled(index, store, limit, run)
            in_pieces = await useful(index, query, run)
            assert in_pieces == pytest.approx(memory(things).ranked(question(query)).useful)
            await index.drop(run)
            assert await filled(index, store, run=run) == covered
            assert await useful(index, query, run) == in_pieces
        finally:
            await index.close()
            await store.close()

    asyncio.run(scene())


@every_kind
@in_loop
async def test_what_is_dropped_is_filled_again_to_the_same(kind: Kind) -> None:
    async with book(kind, said("the red kite"), replied("a kite"), said("a blue boat"), said("end")) as store:
        index = index_of(store)
        covered = await filled(index, store)
        before = await useful(index, "kite boat")
        await index.drop("run")
        assert await index.covered("run") == Covered()
        assert await useful(index, "kite boat") == {}
        assert await filled(index, store) == covered
        assert await useful(index, "kite boat") == before
        await index.drop()
        assert await index.covered("run") == Covered()


@every_kind
@in_loop
async def test_the_unit_that_may_still_grow_waits(kind: Kind) -> None:
    async with book(kind, said("one"), replied("two"), said("three"), replied("four")) as store:
        index = index_of(store)
        covered = await filled(index, store)
        assert (covered.position, covered.units) == (2, 1)
        assert await useful(index, "three") == {}


@every_kind
@in_loop
async def test_runs_find_nothing_of_one_another(kind: Kind) -> None:
    async with book(kind, said("kite"), said("end")) as store:
        await append(store, "other", [said("boat"), said("kite kite"), said("end")])
        index = index_of(store)
        await filled(index, store)
        await filled(index, store, run="other")
        assert set(await useful(index, "kite")) == {0}
        assert await useful(index, "boat") == {}
        await index.drop("other")
        assert set(await useful(index, "kite")) == {0}
        assert (await index.covered("other")).units == 0


@every_kind
@in_loop
async def test_another_history_under_the_same_name_is_indexed_anew(kind: Kind) -> None:
    async with book(kind, said("kite"), said("end")) as first:
        index = index_of(first)
        await filled(index, first)
        async with book(kind, said("boat"), said("end")) as second:
            await filled(index, second)
            assert await useful(index, "kite") == {}
            assert set(await useful(index, "boat")) == {0}
        async with book(kind) as empty:
            await fill(index, empty, "run")
            assert await index.covered("run") == Covered()


@every_kind
@in_loop
async def test_only_the_first_of_two_that_fill_at_once_is_taken(kind: Kind, tmp_path: Path) -> None:
    async with book(kind, said("kite"), said("end"), path=str(tmp_path / "x")) as store:
        one, two = index_of(store), index_of(store)
        start = await two.covered("run")
        covered = await filled(one, store)
        assert not await two.add("run", [], start, covered)
        assert await two.covered("run") == covered
        assert set(await useful(two, "kite")) == {0}
        assert not await fill(two, store, "run")
        await one.close()
        await two.close()


@every_kind
@in_loop
async def test_common_terms_are_passed_over_where_rarer_ones_are_asked_for(
    kind: Kind,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    things = [said(f"kite number {n}") for n in range(40)]
    things[7] = said("kite with a tail")
    async with book(kind, *things, said("end")) as store:
        index = index_of(store)
        await filled(index, store)
        monkeypatch.setattr(index_search, "POSTINGS_READ", 10)
        found = await index.candidates("run", ["kite", "tail"], reach=0)
        assert found.matching == (7,)
        # Alone it is all that there is: the newest are read.
        found = await index.candidates("run", ["kite"], reach=0)
        assert found.matching == tuple(range(30, 40))
        found = await index.candidates("run", ["kite"], reach=0, limit=3)
        assert found.matching == (30, 31, 32)


@every_kind
@in_loop
async def test_a_short_run_is_ranked_whole_and_of_a_longer_one_the_most_promising(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    things = [said(f"kite number {n}") for n in range(12)]
    things[7] = said("a rare kite")
    async with book(kind, *things, said("end")) as store:
        index = index_of(store)
        await filled(index, store)
        monkeypatch.setattr(index_search, "CANDIDATES", 1)
        monkeypatch.setattr(index_search, "WHOLE_UNITS", 12)
        assert (await index.candidates("run", ["kite", "rare"], reach=0)).matching == tuple(range(12))
        monkeypatch.setattr(index_search, "WHOLE_UNITS", 11)
        assert (await index.candidates("run", ["kite", "rare"], reach=0)).matching == (7,)


@every_kind
@in_loop
async def test_recall_reads_back_what_the_index_found(kind: Kind) -> None:
    things: list[What] = []
    for n in range(60):
        things += [said(f"Let us see item {n}."), replied("Seen. " * 300)]
    things[41] = replied("The kite is stored in hangar four. " * 40)
    look = ModelAnswered(1, (Call("c1", "recall", {"query": "kite"}),), "calls")
    things += [look, ActionFinished("c1", "done", (Text("The kite is stored in hangar four."),)), said("end")]
    async with book(kind, *things) as store:
        index = index_of(store)
        await filled(index, store)
        measure = Gauge().measure
        found = await recall(index, store, "run", "Where is the kite?", 1_200, measure)
        assert {each.position: each.keep for each in found}[42] == KEEP_CHARS
        # What a recall brought back before is not found a second time.
        assert not {122, 123} & {each.position for each in found}
        assert sum(each.tokens for each in found) <= 1_200
        hidden = await recall(index, store, "run", "kite", 2_000, measure, shown=frozenset({42}))
        assert 42 not in {each.position for each in hidden}
        assert await search_index(index, store, "run", "kite hangar", 2) == [41, 42]
        assert await search_index(index, store, "run", "zebra", 5) == []
        assert await recall(index, store, "run", "zebra", 2_000, measure) == ()
