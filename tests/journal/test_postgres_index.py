"""The search index on a server: SQLite's candidates, whoever fills, whatever dies, and no append waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shiftbook.clock import SystemClock
from shiftbook.entries import What
from shiftbook.errors import Damaged, StoreError, StoreUnusable
from shiftbook.journal import index_search, postgres_index
from shiftbook.journal.index import Candidates, fill
from shiftbook.journal.open import open_store
from shiftbook.journal.postgres import PostgresStore, open_postgres
from shiftbook.journal.postgres_database import Database
from shiftbook.projections.recall_terms import terms
from shiftbook.prompt.recall_question import question
from tests import postgres
from tests.journal.indexing import (
    WORDS,
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
from tests.journal.places import fresh_database, holding
from tests.proxy import Line, proxy

THINGS = [
    said("the red kite"),
    replied("a kite"),
    said("a blue boat and a boat"),
    replied("seen"),
    said("end"),
]
TABLES = ("search_runs", "search_terms", "search_postings", "search_units")
NUMBERS = count()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with fresh_database() as made:
        yield made


def in_order(found: Candidates) -> list[Any]:
    """Candidates with the order of all that has one: a ranking adds up in it."""
    units = [(n, list(w.said.items()), list(w.done.items()), w) for n, w in found.words.items()]
    counts = [list(each.items()) for each in (found.statistics.said_in, found.statistics.done_in)]
    return [found.statistics, counts, units, list(found.spans.items()), found.matching]


@settings(max_examples=60)
@example([said("lease")] * 12, "lease", (9, 2), 5, 1, 6)
@example([said("lease"), replied("lease journal journal")] * 6, "journal lease", (7, 20), 9, 0, 6)
@given(
    things=st.lists(whats, max_size=40),
    query=texts,
    limits=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    postings=st.integers(1, 12),
    reach=st.integers(0, 3),
    limit=st.integers(1, 6),
)
def test_p1_both_stores_give_the_same_candidates(
    address: str,
    things: list[What],
    query: str,
    limits: tuple[int, int],
    postings: int,
    reach: int,
    limit: int,
) -> None:
    """P1: however each was filled, and wherever a limit cuts."""

    async def found_in(place: str, run: str, batch: int) -> list[Any]:
        store = await open_store(place)
        index = index_of(store)
        try:
            await append(store, run, [*things, said("end")])
            covered = await filled(index, store, batch, run)
            found = await index.candidates(run, list(question(query).terms), reach=reach, limit=limit)
            return [covered, *in_order(found)]
        finally:
            await index.close()
            await store.close()

    run = f"run{next(NUMBERS)}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_search, "POSTINGS_READ", postings)
        there = asyncio.run(found_in(address, run, limits[0]))
        assert there == asyncio.run(found_in(":memory:", run, limits[1]))


@given(st.text(st.characters(exclude_categories=[]) | st.sampled_from("\0\ud800\udfff-'/A1")))
def test_terms_are_text_that_a_server_keeps(text: str) -> None:
    for term in terms(text):
        assert "\0" not in term
        term.encode()


@in_loop
async def test_two_that_fill_at_once_take_everything_in_once() -> None:
    things = [said(f"{WORDS[number % 4]} number {number}") for number in range(40)]
    async with book("postgres", *things, said("end")) as store:
        one, two, alone = index_of(store), index_of(store), index_of(store)
        first, second = await asyncio.gather(filled(one, store, 3), filled(two, store, 5))
        assert first == second
        assert first.units == len(things)
        together = in_order(await one.candidates("run", ["number", "lease"], reach=1))
        await one.drop()
        await filled(alone, store)
        assert in_order(await alone.candidates("run", ["number", "lease"], reach=1)) == together


@asynccontextmanager
async def behind(away_ms: int = 60_000) -> AsyncIterator[tuple[PostgresStore, PostgresStore, Line, str]]:
    """A store behind a line that loses things, one beside it with the run in it, line and address."""
    with fresh_database() as address:
        async with proxy(address) as line:
            beside = await open_postgres(address, SystemClock())
            far = await open_postgres(line.address, SystemClock(), away_ms=away_ms)
            try:
                await append(beside, "run", THINGS)
                yield far, beside, line, address
            finally:
                await far.close()
                await beside.close()


STEPS = [*(f"INSERT INTO shiftbook.{table}".encode() for table in TABLES), b"COMMIT"]


@pytest.mark.parametrize("step", STEPS)
@in_loop
async def test_one_that_dies_half_way_leaves_nothing(step: bytes) -> None:
    """C3: whatever it had written of a batch; another one takes the batch in."""
    async with behind(away_ms=0) as (far, beside, line, address):
        line.lose_request, line.on_lost = step, line.cut
        with pytest.raises(StoreError):
            await fill(index_of(far), far, "run")
        assert line.lost == 1
        counts = " + ".join(f"(SELECT count(*) FROM shiftbook.{table})" for table in TABLES)
        assert postgres.shared().sql(address, f"SELECT {counts}") == [(0,)]
        covered = await filled(index_of(beside), beside)
        assert (covered.position, covered.units) == (4, 2)


@pytest.mark.parametrize("what", ["lose_request", "lose_reply"])
@pytest.mark.parametrize("step", STEPS)
@in_loop
async def test_one_whose_connection_dies_takes_a_batch_in_once(step: bytes, what: str) -> None:
    """C3: also where the batch was committed and the word of it was lost."""
    async with behind() as (far, beside, line, _):
        setattr(line, what, step)
        covered = await filled(index_of(far), far)
        assert line.lost == 1
        assert (covered.position, covered.units) == (4, 2)
        found = await index_of(beside).candidates("run", ["kite", "boat"], reach=0)
        assert found.statistics.said_in == {"kite": 1, "boat": 1}
        assert found.statistics.done_in == {"kite": 1, "boat": 0}


@in_loop
async def test_it_neither_waits_for_an_append_nor_makes_one_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async with behind() as (_, store, _, _):
        writer = await holding(store, "run")
        index, write = index_of(store), postgres_index._write_postings

        async def while_the_run_is_locked(database: Database) -> None:
            async with database.transaction():
                await database.rows("SELECT 1 FROM shiftbook.leases WHERE run = 'run' FOR UPDATE")
                await filled(index, store)

        await store.connections.run(while_the_run_is_locked)
        assert (await index.covered("run")).units == 2

        async def within_a_batch(*given: Any) -> None:
            await writer.append(said("meanwhile"))
            await write(*given)

        await index.drop("run")
        monkeypatch.setattr(postgres_index, "_write_postings", within_a_batch)
        assert (await filled(index, store)).units == 2
        assert (await store.entries.head("run")).position == len(THINGS) + 1


@in_loop
async def test_a_search_is_a_bounded_number_of_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    things = [said(f"item{number} of {WORDS[number % len(WORDS)]}") for number in range(60)]
    async with book("postgres", *things, said("end")) as store:
        index = index_of(store)
        asked: list[str] = []
        rows, run = Database.rows, Database.run

        async def counted_rows(self: Database, statement: str, *bindings: Any) -> Any:
            asked.append(statement)
            return await rows(self, statement, *bindings)

        async def counted_run(self: Database, statement: str, *bindings: Any) -> Any:
            asked.append(statement)
            return await run(self, statement, *bindings)

        await filled(index, store, limit=4)
        monkeypatch.setattr(Database, "rows", counted_rows)
        monkeypatch.setattr(Database, "run", counted_run)
        for words in (["item1"], [f"item{number}" for number in range(60)]):
            asked.clear()
            assert len((await index.candidates("run", words, reach=3)).matching) == len(words)
            assert len(asked) == 4
        await index.drop("run")
        for limit in (2, 500):
            asked.clear()
            await fill(index, store, "run", limit)
            assert len([each for each in asked if "search_" in each]) == 8, "a batch, however long"
            await index.drop("run")


@in_loop
async def test_a_row_of_another_length_is_damage_and_said_so() -> None:
    async with book("postgres", *THINGS) as store:
        index = index_of(store)
        await filled(index, store)
        assert isinstance(store, PostgresStore)

        async def cut(database: Database) -> int:
            return await database.run("UPDATE shiftbook.search_postings SET units = '\\x010203'::bytea")

        await store.connections.run(cut)
        with pytest.raises(Damaged, match="search index"):
            await index.candidates("run", list(question("kite").terms), reach=1)


@in_loop
async def test_it_goes_with_its_store_and_names_no_password() -> None:
    async with book("postgres", *THINGS) as store:
        index = index_of(store)
        await index.close()
        assert (await filled(index_of(store), store)).units == 2, "closing an index leaves the store open"
        await store.close()
        with pytest.raises(StoreUnusable, match="was closed") as told:
            await index.covered("run")
        assert store.name in str(told.value)
