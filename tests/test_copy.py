"""Runs go from one store into another and are the same bytes there, whatever was in them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import pytest
from hypothesis import given, settings

from shiftbook import Store, open_store
from shiftbook.codec import draft, seal
from shiftbook.entries import RunOpened, What
from shiftbook.errors import Damaged, Fenced, Held, RunExists, StoreError
from shiftbook.journal.promises import Commit
from shiftbook.projections.blobs import blobs_of
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.crash import Crash, Dies, Fails, Meanwhile, Seams
from shiftbook.testing.ground import LEASE_MS, Writer, elsewhere, message, read_all, said
from shiftbook.transfer import Copied, copy_run, held, runs_of
from shiftbook.verify import verify
from shiftbook.views import hold_of
from tests import records
from tests.cli.program import run as program
from tests.crash.virtual import at_once
from tests.exports import RUN, lines_of
from tests.journal.places import fresh_database
from tests.strategies import Turn, entries_of, happenings, histories

WAYS = [("sqlite", "postgres"), ("postgres", "sqlite"), ("postgres", "postgres"), ("sqlite", "sqlite")]


@asynccontextmanager
async def two_stores(
    way: tuple[str, str], folder: Path, clock: SimulatedClock | None = None
) -> AsyncIterator[tuple[Store, Store]]:
    clock = clock or SimulatedClock(5)
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


async def grown(store: Store, clock: SimulatedClock) -> None:
    """One more entry and one more message that waits: a copy from before is carried on."""
    clock.advance(100_000)
    lease = await store.leases.take(RUN, elsewhere(), LEASE_MS)
    head = await store.entries.head(RUN)
    await Writer(store, lease, clock, head.position, head.head).append(said("on"))
    await store.inbox.put(RUN, message(f"after{head.position}"))
    await store.leases.give_back(lease)


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "carried on"])
@pytest.mark.parametrize("way", WAYS[:2], ids="-".join)
def test_a_copy_that_dies_anywhere_is_started_again_and_leaves_the_same_bytes(
    way: tuple[str, str], is_there: bool, tmp_path: Path
) -> None:
    """After every call of the target it dies; then the source goes on, and the copy is begun again."""

    async def dies(left: Store, right: Store, clock: SimulatedClock, at: int) -> bool:
        if is_there:
            await copy_run(left, right, RUN)
            await grown(left, clock)
        try:
            await copy_run(left, Seams(Dies(at, moment="after")).store(right), RUN)
        except Crash:
            assert is_there or await right.catalogue.runs() == [] or (await verify(right, RUN)).ok
        else:
            return False
        clock.advance(100_000)
        if at % 2:
            await grown(left, clock)
        await copy_run(left, right, RUN)
        assert await lines_of(right) == await lines_of(left)
        assert (await verify(right, RUN)).ok
        assert (await hold_of(right, RUN))[0] != "held"
        assert (await copy_run(left, right, RUN)).written == 0
        return True

    async def check() -> None:
        clock, at = SimulatedClock(7), 0
        async with a_store(way[0], tmp_path / "left.db", clock) as left:
            await records.warehouse(left, clock)
            lives = True
            while lives:
                at += 1
                async with a_store(way[1], tmp_path / f"{at}.db", clock) as right:
                    lives = await dies(left, right, clock, at)
        assert at > 8, "the copy asks more of its target than that"

    asyncio.run(check())


@asynccontextmanager
async def a_store(kind: str, path: Path, clock: SimulatedClock) -> AsyncIterator[Store]:
    with fresh_database() if kind == "postgres" else nullcontext(str(path)) as address:
        store = await open_store(address, clock=clock)
        try:
            yield store
        finally:
            await store.close()


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "carried on"])
def test_a_source_that_somebody_takes_in_the_middle_is_not_copied(is_there: bool, tmp_path: Path) -> None:
    """Without it the run could go on in both stores, from one and the same head."""

    async def check() -> None:
        clock = SimulatedClock(7)
        async with two_stores(("sqlite", "postgres"), tmp_path, clock) as (left, right):
            await records.warehouse(left, clock)
            if is_there:
                await copy_run(left, right, RUN)
                await grown(left, clock)
            before = await right.catalogue.runs()

            def taken() -> None:
                clock.advance(100_000)
                at_once(left.leases.take(RUN, elsewhere("b"), LEASE_MS))

            seams = Seams(Meanwhile(1, moment="after", seam="leases.take", do=taken))
            with pytest.raises(Fenced):
                await copy_run(left, seams.store(right), RUN)
            assert await right.catalogue.runs() == before

    asyncio.run(check())


def test_a_copy_that_takes_longer_than_its_lease_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is renewed from another thread while the copy has this one."""
    monkeypatch.setattr(held, "LEASE_MS", 1_500)

    async def check() -> None:
        # By the machine's clock, since the thread that renews waits by it.
        left = await open_store(str(tmp_path / "left.db"))
        right = await open_store(str(tmp_path / "right.db"))
        await records.warehouse(left, SimulatedClock(7))
        ends: list[int] = []

        def looked() -> None:
            row = at_once(left.leases.look(RUN))
            first = row.until_ms
            while row.until_ms == first:
                row = at_once(left.leases.look(RUN))
                assert row.left_ms is not None
                assert row.left_ms > 0, "the lease has run out"
            ends.append(row.until_ms)

        seams = Seams(Meanwhile(1, moment="after", seam="leases.take", do=looked))
        assert (await copy_run(left, seams.store(right), RUN)).written == 46
        assert ends
        await left.close()
        await right.close()

    asyncio.run(check())


def test_a_target_without_room_says_so_keeps_nothing_and_takes_the_copy_later(tmp_path: Path) -> None:
    async def check() -> None:
        clock = SimulatedClock(7)
        async with two_stores(("postgres", "sqlite"), tmp_path, clock) as (left, right):
            await records.warehouse(left, clock)
            seams = Seams(
                Fails(1, moment="before", seam="entries.append", error=StoreError("the disk is full"))
            )
            with pytest.raises(StoreError, match="the disk is full"):
                await copy_run(left, seams.store(right), RUN)
            assert await right.catalogue.runs() == []
            for store in (left, right):
                assert (await store.leases.look(RUN)).holder is None
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
