"""Runs go from one store into another and are the same bytes there, whatever was in them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings

from shiftbook import Store, open_store
from shiftbook.codec import draft, seal
from shiftbook.entries import RunOpened, What
from shiftbook.errors import Damaged, Held, RunExists
from shiftbook.journal.promises import Commit
from shiftbook.projections.blobs import blobs_of
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.ground import LEASE_MS, Writer, elsewhere, message, read_all, said
from shiftbook.transfer import Copied, copy_run, runs_of
from shiftbook.verify import verify
from tests import records
from tests.cli.program import run as program
from tests.exports import RUN, lines_of
from tests.journal.places import fresh_database
from tests.strategies import Turn, entries_of, happenings, histories

WAYS = [("sqlite", "postgres"), ("postgres", "sqlite"), ("postgres", "postgres"), ("sqlite", "sqlite")]


@asynccontextmanager
async def two_stores(way: tuple[str, str], folder: Path) -> AsyncIterator[tuple[Store, Store]]:
    clock = SimulatedClock(5)
    with fresh_database() as one, fresh_database() as two:
        addresses = [
            server if kind == "postgres" else str(folder / f"{number}.db")
            for number, (kind, server) in enumerate(zip(way, (one, two), strict=True))
        ]
        left, right = [await open_store(address, clock=clock) for address in addresses]
        try:
            yield left, right
        finally:
            await left.close()
            await right.close()


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_a_whole_run_is_the_same_text_in_the_other_store(way: tuple[str, str], tmp_path: Path) -> None:
    async def check() -> None:
        async with two_stores(way, tmp_path) as (left, right):
            await records.warehouse(left, SimulatedClock(7))
            assert await copy_run(left, right, RUN) == Copied(RUN, 46, 46)
            assert await lines_of(right) == await lines_of(left)
            assert (await verify(right, RUN)).ok
            assert await copy_run(left, right, RUN) == Copied(RUN, 46, 0), "once is enough"
            assert (await right.leases.look(RUN)).holder is None

    asyncio.run(check())


@pytest.mark.parametrize("way", WAYS[:2], ids="-".join)
def test_a_run_that_has_grown_is_carried_on_and_a_second_copy_takes_over_its_mail(
    way: tuple[str, str], tmp_path: Path
) -> None:
    async def check() -> None:
        async with two_stores(way, tmp_path) as (left, right):
            clock = SimulatedClock(6)
            lease = await left.leases.take("grows", elsewhere(), LEASE_MS, new=True)
            writer = Writer(left, lease, clock)
            await writer.append(said("one"))
            await left.inbox.put("grows", message("m1"))
            with pytest.raises(Held):
                await copy_run(left, right, "grows")
            assert await right.catalogue.runs() == []
            await left.leases.give_back(lease)
            assert await copy_run(left, right, "grows") == Copied("grows", 1, 1)
            lease = await left.leases.take("grows", elsewhere(), LEASE_MS)
            writer.lease = lease
            await writer.append(said("hello", "m1"), said("two"), taken={"m1": 2})
            await left.inbox.put("grows", message("m2"))
            await left.leases.give_back(lease)
            assert await copy_run(left, right, "grows") == Copied("grows", 3, 2)
            assert await lines_of(right, "grows") == await lines_of(left, "grows")
            await left.inbox.put("grows", message("m3"))
            assert await copy_run(left, right, "grows") == Copied("grows", 3, 0)
            waiting = [item.id for item in await right.inbox.waiting("grows")]
            assert waiting == ["m2", "m3"]

    asyncio.run(check())


def test_a_run_that_went_its_own_way_is_left_as_it_is(tmp_path: Path) -> None:
    async def check() -> None:
        async with two_stores(("sqlite", "postgres"), tmp_path) as (left, right):
            clock = SimulatedClock(6)
            for store, word in ((left, "left"), (right, "right")):
                lease = await store.leases.take("forked", elsewhere(), LEASE_MS, new=True)
                await Writer(store, lease, clock).append(said(word))
                await store.leases.give_back(lease)
            before = await read_all(right, "forked")
            with pytest.raises(RunExists, match="gone its own way"):
                await copy_run(left, right, "forked")
            assert await read_all(right, "forked") == before

    asyncio.run(check())


def test_a_run_that_went_on_in_the_target_is_left_as_it_is(tmp_path: Path) -> None:
    async def check() -> None:
        async with two_stores(("sqlite", "postgres"), tmp_path) as (left, right):
            await records.warehouse(left, SimulatedClock(7))
            await copy_run(left, right, RUN)
            lease = await right.leases.take(RUN, elsewhere(), LEASE_MS)
            head = await right.entries.head(RUN)
            await Writer(right, lease, SimulatedClock(8), head.position, head.head).append(said("on"))
            await right.leases.give_back(lease)
            with pytest.raises(RunExists, match="gone its own way"):
                await copy_run(left, right, RUN)

    asyncio.run(check())


def test_a_copy_that_dies_before_its_commit_is_begun_again(tmp_path: Path) -> None:
    """What it leaves is a run without an entry, which nothing resumes."""

    async def check() -> None:
        async with two_stores(("sqlite", "postgres"), tmp_path) as (left, right):
            await records.warehouse(left, SimulatedClock(7))

            async def dies(commit: Commit) -> None:
                raise KeyboardInterrupt

            class Dying:
                append = staticmethod(dies)

                def __getattr__(self, name: str) -> object:
                    return getattr(right.entries, name)

            class Target:
                entries = Dying()

                def __getattr__(self, name: str) -> object:
                    return getattr(right, name)

            with pytest.raises(KeyboardInterrupt):
                await copy_run(left, Target(), RUN)  # type: ignore[arg-type]
            assert await right.catalogue.runs() == []
            assert (await copy_run(left, right, RUN)).written == 46
            assert await lines_of(right) == await lines_of(left)

    asyncio.run(check())


def test_a_damaged_run_is_not_copied(tmp_path: Path) -> None:
    async def check() -> None:
        async with two_stores(("postgres", "sqlite"), tmp_path) as (left, right):
            await records.warehouse(left, SimulatedClock(7))

            async def flip(database: object) -> None:
                await database.run(  # type: ignore[attr-defined]
                    "UPDATE shiftbook.entries SET at_ms = at_ms + 1 WHERE position = 9"
                )

            await left.connections.run(flip)  # type: ignore[attr-defined]
            with pytest.raises(Damaged):
                await copy_run(left, right, RUN)
            assert await right.catalogue.runs() == []

    asyncio.run(check())


@pytest.mark.parametrize("way", WAYS[:2], ids="-".join)
def test_rows_of_any_content_are_equal_bytes_in_both_stores(way: tuple[str, str], tmp_path: Path) -> None:
    """F1, F6: NUL, lone surrogates, huge results, arguments in their own order."""
    numbers = itertools.count()

    async def check(left: Store, right: Store, history: list[Turn]) -> None:
        run, clock = f"any{next(numbers)}", SimulatedClock(3)
        said_so = [what for number, turn in enumerate(history, 1) for what in happenings(turn, number)]
        # The strategies name blobs that nobody has.
        whole = [entry.what for entry in entries_of(said_so) if not [*blobs_of(entry)]]
        whats: list[What] = [RunOpened(run, "a.py:a", "0"), *whole]
        lease = await left.leases.take(run, elsewhere(), LEASE_MS, new=True)
        sealed = seal(
            [draft(what) for what in whats],
            after=0,
            head=(await left.entries.head(run)).head,
            at_ms=[clock.now_ms()] * len(whats),
            epoch=lease.epoch,
            token=clock.token,
        )
        await left.entries.append(Commit(run, 0, lease.epoch, sealed.rows, sealed.blobs))
        await left.leases.give_back(lease)
        assert await read_all(left, run) == [*sealed.rows]
        await copy_run(left, right, run)
        assert await read_all(right, run) == [*sealed.rows]
        for name in await left.blobs.names(run):
            assert await right.blobs.get(run, name) == await left.blobs.get(run, name)

    with asyncio.Runner() as runner:
        stores = two_stores(way, tmp_path)
        left, right = runner.run(stores.__aenter__())

        @settings(max_examples=40)
        @given(history=histories(turns_max=3, huge=3_000))
        def search(history: list[Turn]) -> None:
            runner.run(check(left, right, history))

        try:
            search()
        finally:
            runner.run(stores.__aexit__(None, None, None))


def test_the_program_copies_all_runs_tells_on_stderr_and_can_be_started_again(tmp_path: Path) -> None:
    """G2: a journal moves into another kind of database, and on if it was cut off."""
    with fresh_database() as address:

        async def fill() -> list[str]:
            clock = SimulatedClock(7)
            store = await open_store(str(tmp_path / "book.db"), clock=clock)
            await records.warehouse(store, clock)
            for number in range(3):
                lease = await store.leases.take(f"more{number}", elsewhere(), LEASE_MS, new=True)
                await Writer(store, lease, clock).append(said("one"), said("two"))
                await store.leases.give_back(lease)
            runs = await runs_of(store)
            await store.close()
            return runs

        runs = asyncio.run(fill())
        one = program(tmp_path, "copy", "--from", "book.db", "--to", address, "more1", "--json")
        assert (one.code, one.json) == (0, [{"run": "more1", "entries": 2, "written": 2}])
        every = program(tmp_path, "copy", "--from", "book.db", "--to", address, "--json")
        assert every.code == 0
        assert [each["run"] for each in every.json] == runs
        assert sum(each["written"] for each in every.json) == 46 + 2 * 2
        assert "more1: is there already" in every.err
        back = program(tmp_path, "copy", "--from", address, "--to", "again.db")
        assert (back.code, back.out) == (0, "")
        listed = program(tmp_path, "runs", "--db", address, "--json")
        again = program(tmp_path, "runs", "--db", "again.db", "--json")
        assert {row["run"] for row in listed.json} == {row["run"] for row in again.json} == set(runs)


def test_the_program_goes_on_with_the_others_when_one_run_cannot_be_copied(tmp_path: Path) -> None:
    async def fill() -> None:
        clock = SimulatedClock(7)
        for path, word in (("one.db", "left"), ("two.db", "right")):
            store = await open_store(str(tmp_path / path), clock=clock)
            for run in ("same", "other") if path == "one.db" else ("same",):
                lease = await store.leases.take(run, elsewhere(), LEASE_MS, new=True)
                await Writer(store, lease, clock).append(said(word))
                await store.leases.give_back(lease)
            await store.close()

    asyncio.run(fill())
    ran = program(tmp_path, "copy", "--from", "one.db", "--to", "two.db")
    assert ran.code == 2
    assert "gone its own way" in ran.err
    assert "1 run of 2 could not be copied" in ran.err
    assert program(tmp_path, "show", "other", "--db", "two.db").code == 0
    same = program(tmp_path, "copy", "--from", "one.db", "--to", "one.db")
    assert same.code == 2
    assert "the same journal" in same.err
