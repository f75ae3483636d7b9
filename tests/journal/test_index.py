"""The search index: the same ranking as from memory, however it was filled, and nothing to lose with it."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftbook.clock import SystemClock, this_process
from shiftbook.codec import draft, genesis, seal
from shiftbook.entries import ActionFinished, ModelAnswered, PersonSaid, RuleSet, What
from shiftbook.errors import StoreUnusable
from shiftbook.journal import sqlite_index
from shiftbook.journal.index import Covered, Index, fill
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Commit, Store
from shiftbook.journal.sqlite_index import SUFFIX, open_index
from shiftbook.messages import Call, Text
from shiftbook.prompt.measure import Gauge
from shiftbook.prompt.recall import Memory, Record
from shiftbook.prompt.recall_pack import KEEP_CHARS
from shiftbook.prompt.recall_question import question
from shiftbook.prompt.recall_rank import WIDE, rank
from shiftbook.run.recalling import recall, search_index

WORDS = [
    "lease",
    "journal",
    "src/app.py",
    "42",
    "the",
    "café",
    "鍵管理",
    "OR",
    "s1",
    "d1*",
    '"NEAR(',
    "Thanks",
]
texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
whats = st.one_of(
    texts.map(lambda text: PersonSaid((Text(text),))),
    texts.map(lambda text: ModelAnswered(1, (Text(text),), "end")),
    texts.map(lambda text: ActionFinished("c", "done", (Text(text),))),
    texts.map(lambda text: RuleSet("k", text, "author")),
)


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test in a loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **given: Any) -> None:
        asyncio.run(test(*args, **given))  # type: ignore[arg-type]

    return run


def names(folder: Path) -> list[str]:
    """The databases in a folder."""
    return [each.name for each in folder.iterdir() if not each.name.endswith(("-wal", "-shm"))]


def damage(path: Path) -> None:
    """Overwrite the head of the file's first page, behind what says whose file it is."""
    content = bytearray(path.read_bytes())
    content[100:110] = b"\xff" * 10
    path.write_bytes(bytes(content))


def said(text: str) -> What:
    return PersonSaid((Text(text),))


def replied(text: str) -> What:
    return ModelAnswered(1, (Text(text),), "end")


@asynccontextmanager
async def book(*things: What, run: str = "run", path: str = ":memory:") -> AsyncIterator[Store]:
    """A store with one run of these entries."""
    clock = SystemClock()
    store = await open_store(path, clock=clock)
    try:
        await _append(store, clock, run, things)
        yield store
    finally:
        await store.close()


async def _append(store: Store, clock: SystemClock, run: str, things: Sequence[What]) -> None:
    lease = await store.leases.take(run, this_process(), 60_000, new=True)
    sealed = seal(
        [draft(each) for each in things],
        after=0,
        head=genesis(run),
        at_ms=[1_000] * len(things),
        epoch=lease.epoch,
        token=bytes,
    )
    if things:
        await store.entries.append(Commit(run, 0, lease.epoch, sealed.rows, sealed.blobs))


async def filled(index: Index, store: Store, limit: int = 500, run: str = "run") -> Covered:
    while await fill(index, store, run, limit):
        pass
    return await index.covered(run)


async def useful(index: Index, query: str) -> dict[int, float]:
    asked = question(query)
    found = await index.candidates("run", list(asked.terms), reach=len(WIDE))
    return dict(rank(asked, found.statistics, found.words, found.matching).useful)


def memory(things: Sequence[What]) -> Memory:
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
    return Memory(records)


@settings(max_examples=60, deadline=None)
@given(st.lists(whats, max_size=30), texts, st.integers(1, 7))
def test_ranks_as_from_memory_however_it_was_filled(things: list[What], query: str, limit: int) -> None:
    # The last unit may still grow and is not taken in: a last message of a person closes the one before.
    async def scene() -> None:
        async with book(*things, said("end")) as store:
            pieces, whole = open_index(":memory:"), open_index(":memory:")
            assert await filled(pieces, store, limit) == await filled(whole, store)
            expected = memory(things).ranked(question(query)).useful
            for index in (pieces, whole):
                assert await useful(index, query) == pytest.approx(expected)
            assert await useful(pieces, query) == await useful(whole, query)

    asyncio.run(scene())


@in_loop
async def test_what_is_dropped_is_filled_again_to_the_same() -> None:
    async with book(said("the red kite"), replied("a kite"), said("a blue boat"), said("end")) as store:
        index = open_index(":memory:")
        covered = await filled(index, store)
        before = await useful(index, "kite boat")
        await index.drop("run")
        assert await index.covered("run") == Covered()
        assert await useful(index, "kite boat") == {}
        assert await filled(index, store) == covered
        assert await useful(index, "kite boat") == before
        await index.drop()
        assert await index.covered("run") == Covered()


@in_loop
async def test_the_unit_that_may_still_grow_waits() -> None:
    async with book(said("one"), replied("two"), said("three"), replied("four")) as store:
        index = open_index(":memory:")
        covered = await filled(index, store)
        assert (covered.position, covered.units) == (2, 1)
        assert await useful(index, "three") == {}


@in_loop
async def test_runs_find_nothing_of_one_another() -> None:
    async with book(said("kite"), said("end")) as store:
        await _append(store, SystemClock(), "other", [said("boat"), said("kite kite"), said("end")])
        index = open_index(":memory:")
        await filled(index, store)
        await filled(index, store, run="other")
        assert set(await useful(index, "kite")) == {0}
        assert await useful(index, "boat") == {}
        await index.drop("other")
        assert set(await useful(index, "kite")) == {0}
        assert (await index.covered("other")).units == 0


@in_loop
async def test_another_history_under_the_same_name_is_indexed_anew() -> None:
    index = open_index(":memory:")
    async with book(said("kite"), said("end")) as store:
        await filled(index, store)
    async with book(said("boat"), said("end")) as store:
        await filled(index, store)
        assert await useful(index, "kite") == {}
        assert set(await useful(index, "boat")) == {0}
    async with book() as store:
        await fill(index, store, "run")
        assert await index.covered("run") == Covered()


@in_loop
async def test_only_the_first_of_two_that_fill_at_once_is_taken(tmp_path: Path) -> None:
    async with book(said("kite"), said("end")) as store:
        one, two = open_index(str(tmp_path / "x")), open_index(str(tmp_path / "x"))
        start = await two.covered("run")
        covered = await filled(one, store)
        assert not await two.add("run", [], start, covered)
        assert await two.covered("run") == covered
        assert set(await useful(two, "kite")) == {0}
        assert not await fill(two, store, "run")
        await one.close()
        await two.close()


@in_loop
async def test_it_stands_apart_from_the_journal_and_does_not_hold_it_up(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    async with book(said("kite"), said("end"), path=str(path)) as store:
        index = open_index(str(path))
        await filled(index, store)
        other = apsw.Connection(str(path) + SUFFIX)
        other.execute("BEGIN IMMEDIATE")
        # Somebody fills: an append to the journal does not even notice.
        await _append(store, SystemClock(), "second", [said("more")])
        other.close(True)
        await index.close()
    assert set(names(tmp_path)) == {"book.db", f"book.db{SUFFIX}"}


@in_loop
async def test_a_file_of_another_layout_or_damaged_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = str(tmp_path / "book.db")
    path = Path(target + SUFFIX)
    async with book(said("kite"), said("end")) as store:
        index = open_index(target)
        covered = await filled(index, store)
        await index.close()
        monkeypatch.setattr(sqlite_index, "LAYOUT", 2)
        index = open_index(target)
        assert await index.covered("run") == Covered()
        assert await filled(index, store) == covered
        await index.close()
        damage(path)
        index = open_index(target)
        assert await filled(index, store) == covered
        await index.close()


@pytest.mark.parametrize("content", [b"my own notes, much longer than a header" * 9, None])
def test_a_file_that_is_not_ours_is_refused_and_left(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / f"book.db{SUFFIX}"
    if content is None:
        with apsw.Connection(str(path)) as other:
            other.execute("CREATE TABLE mine (x)")
        other.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match="move it away"):
        open_index(str(tmp_path / "book.db"))
    assert path.read_bytes() == before


@in_loop
async def test_common_terms_are_passed_over_where_rarer_ones_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    things = [said(f"kite number {n}") for n in range(40)]
    things[7] = said("kite with a tail")
    async with book(*things, said("end")) as store:
        index = open_index(":memory:")
        await filled(index, store)
        monkeypatch.setattr(sqlite_index, "POSTINGS_READ", 10)
        found = await index.candidates("run", ["kite", "tail"], reach=0)
        assert found.matching == (7,)
        # Alone it is all that there is: the newest are read.
        found = await index.candidates("run", ["kite"], reach=0)
        assert found.matching == tuple(range(30, 40))
        found = await index.candidates("run", ["kite"], reach=0, limit=3)
        assert found.matching == (30, 31, 32)


@in_loop
async def test_recall_reads_back_what_the_index_found() -> None:
    things: list[What] = []
    for n in range(60):
        things += [said(f"Let us see item {n}."), replied("Seen. " * 300)]
    things[41] = replied("The kite is stored in hangar four. " * 40)
    look = ModelAnswered(1, (Call("c1", "recall", {"query": "kite"}),), "calls")
    things += [look, ActionFinished("c1", "done", (Text("The kite is stored in hangar four."),)), said("end")]
    async with book(*things) as store:
        index = open_index(":memory:")
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
