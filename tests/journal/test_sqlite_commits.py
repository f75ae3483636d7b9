"""The two ways to commit: groups are whole, refusals are one's own, a cancelled caller knows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from shiftbook.clock import SystemClock
from shiftbook.errors import BadInput, Conflict, StoreError, StoreUnusable, UnknownRun
from shiftbook.journal.promises import Store
from shiftbook.journal.sqlite_commits import WriterThread
from shiftbook.journal.sqlite_database import Address, Database, open_database
from shiftbook.journal.sqlite_leases import take
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.ground import LEASE_MS, Ground, Writer, elsewhere, message, read_all, said
from tests.journal.places import FILE_PLACES, Place, holding, make, opening

TASKS = 200
HANG_S = 60
"""When a caller that nobody wakes is given up: not a time that anything is expected to take."""


class Counted:
    """Commits of every connection of this process; `veto` makes the next one fail at its end."""

    def __init__(self) -> None:
        self.commits = 0
        self.veto = False

    def listen(self, connection: apsw.Connection) -> None:
        connection.set_commit_hook(self.committing)

    def committing(self) -> bool:
        self.commits += 1
        vetoed, self.veto = self.veto, False
        return vetoed


@pytest.fixture
def counted() -> Iterator[Counted]:
    counted = Counted()
    apsw.connection_hooks.append(counted.listen)
    yield counted
    apsw.connection_hooks.remove(counted.listen)


def locked(path: Path) -> apsw.Connection:
    """Another connection that holds the write lock until it is closed."""
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    return other


async def settle() -> None:
    """Let every task that can go on do so."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("place", FILE_PLACES)
def test_c6_one_loop_many_tasks(place: Place, counted: Counted, tmp_path: Path) -> None:
    """200 tasks, each with a run of its own, on one file: no lock error, no gap; grouped, few commits."""

    async def main() -> None:
        async with opening(place, tmp_path) as open_store:
            ground = Ground(open_store, SimulatedClock())
            store = await ground.open()

            async def one() -> Writer:
                writer = await ground.begin(store)
                for number in range(3):
                    await writer.append(said(f"{number}"), said("more"))
                return writer

            counted.commits = 0
            writers = await asyncio.gather(*(one() for _ in range(TASKS)))
            for writer in writers:
                rows = await read_all(store, writer.run)
                assert [row.position for row in rows] == list(range(1, 8))
            assert len({writer.run for writer in writers}) == TASKS
            if place == "file writer":
                assert counted.commits < TASKS, "commits were not grouped"
            else:
                assert counted.commits >= 5 * TASKS
            await ground.close()

    asyncio.run(main())


def test_c8_threads_that_end_at_once_lose_nothing(tmp_path: Path) -> None:
    """Twenty threads, each with a loop and a store of its own, put into one inbox at the same instant."""
    path = tmp_path / "book.db"
    run = asyncio.run(make(path))
    start = threading.Barrier(20)

    async def put(name: str) -> None:
        async with opening("file in-loop", tmp_path) as open_store:
            store = await open_store(SystemClock())
            start.wait()
            for number in range(5):
                assert await store.inbox.put(run, message(f"{name}-{number}"))
            await store.close()

    threads = [threading.Thread(target=lambda n=n: asyncio.run(put(f"t{n}"))) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def main() -> list[str]:
        async with opening("file in-loop", tmp_path) as open_store:
            store = await open_store(SystemClock())
            items = await store.inbox.waiting(run)
            await store.close()
            return [item.id for item in items]

    ids = asyncio.run(main())
    assert sorted(ids) == sorted(f"t{n}-{number}" for n in range(20) for number in range(5))
    for n in range(20):
        own = [each for each in ids if each.startswith(f"t{n}-")]
        assert own == [f"t{n}-{number}" for number in range(5)]


def test_a_refused_guard_refuses_only_its_own_commit(counted: Counted, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    runs = [asyncio.run(make(path, seed=seed)) for seed in range(20)]

    async def main() -> None:
        async with opening("file writer", tmp_path) as open_store:
            store = await open_store(SystemClock())
            writers = [await holding(store, run) for run in runs]
            commits = [
                await writer.commit(said("x"), said("y"), expected=0 if place % 3 == 0 else None)
                for place, writer in enumerate(writers)
            ]
            lock = locked(path)
            tasks = [asyncio.create_task(store.entries.append(commit)) for commit in commits]
            await settle()
            counted.commits = 0
            lock.close()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            for place, (run, end) in enumerate(zip(runs, ends, strict=True)):
                refused = place % 3 == 0
                assert isinstance(end, Conflict) if refused else end is None
                assert (await store.entries.head(run)).position == (1 if refused else 3)
            assert counted.commits <= 2, "the group was not committed as one"
            await store.close()

    asyncio.run(main())


async def _thread(path: Path) -> WriterThread:
    database = await open_database(Address("book", str(path)), SystemClock())
    return WriterThread(database, lambda: None)


def _kinds(database: Database) -> list[str]:
    return [name for (name,) in database.rows("SELECT name FROM kinds WHERE number > 100 ORDER BY number")]


def _write(number: int, fails: bool = False) -> Callable[[Database], int]:
    def job(database: Database) -> int:
        with database.transaction():
            database.run("INSERT INTO kinds (number, name) VALUES (?, ?)", (number, f"kind{number}"))
            if fails:
                raise BadInput("after it wrote")
        return number

    return job


def test_a_job_that_fails_after_it_wrote_leaves_nothing(tmp_path: Path) -> None:
    """Alone a job's transaction undoes it; in a group the group is undone and each job runs alone."""
    path = tmp_path / "book.db"
    asyncio.run(make(path))

    async def main() -> None:
        thread = await _thread(path)

        lock = locked(path)
        first = asyncio.create_task(thread.write(_write(101)))
        await settle()
        others = [
            asyncio.create_task(thread.write(_write(number, fails=number == 103)))
            for number in (102, 103, 104)
        ]
        await settle()
        lock.close()
        ends = await asyncio.gather(first, *others, return_exceptions=True)
        assert ends[:2] == [101, 102]
        assert isinstance(ends[2], BadInput)
        assert ends[3] == 104
        assert await thread.write(_kinds) == ["kind101", "kind102", "kind104"]
        await thread.close()

    asyncio.run(main())


def test_what_was_learnt_in_a_transaction_that_was_undone_is_forgotten(tmp_path: Path) -> None:
    """Else the next run to get that number would be read under the name of one that never was."""

    async def main() -> None:
        database = await open_database(Address("book", str(tmp_path / "book.db")), SimulatedClock())

        def opened_and_undone() -> None:
            with database.transaction():
                database.joined = True
                take(database, "never", elsewhere(), LEASE_MS, new=True, above=0)
                database.joined = False
                database.number("never")
                raise BadInput("undone")

        with pytest.raises(BadInput):
            opened_and_undone()
        take(database, "other", elsewhere(), LEASE_MS, new=True, above=0)
        with pytest.raises(UnknownRun):
            database.number("never")
        assert database.number("other") == 1
        database.connection.close()

    asyncio.run(main())


@pytest.mark.parametrize("place", FILE_PLACES)
def test_a_commit_that_fails_at_its_end_is_told(place: Place, counted: Counted, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    runs = [asyncio.run(make(path, seed=seed)) for seed in range(4)]

    async def main() -> None:
        async with opening(place, tmp_path) as open_store:
            store = await open_store(SystemClock())
            writers = [await holding(store, run) for run in runs]
            commits = [await writer.commit(said("x")) for writer in writers]
            lock = locked(path) if place == "file writer" else None
            tasks = [asyncio.create_task(store.entries.append(commit)) for commit in commits]
            if lock is not None:
                await settle()
                lock.close()
            counted.veto = True
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            failed = [isinstance(end, StoreError) for end in ends]
            assert any(failed)
            for run, end in zip(runs, ends, strict=True):
                assert end is None or type(end) is StoreError
                assert (await store.entries.head(run)).position == (2 if end is None else 1)
            for commit, end in zip(commits, ends, strict=True):
                if end is not None:
                    await store.entries.append(commit)
            await store.close()

    asyncio.run(main())


def test_a_cancelled_caller_learns_it_when_the_commit_is_settled(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    run = asyncio.run(make(path))

    async def main() -> None:
        async with opening("file writer", tmp_path) as open_store:
            store = await open_store(SystemClock())
            writer = await holding(store, run)
            commit = await writer.commit(said("x"), said("y"))
            lock = locked(path)
            task = asyncio.create_task(store.entries.append(commit))
            await settle()
            for _ in range(3):
                task.cancel()
                await settle()
                assert not task.done(), "the caller was let go while its commit could still come to be"
            lock.close()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert [row.position for row in await store.entries.read(run)] == [1, 2, 3]
            with pytest.raises(Conflict):
                await store.entries.append(commit)
            await store.close()

    asyncio.run(main())


def test_closing_finishes_what_was_handed_in(tmp_path: Path) -> None:
    """Ten jobs wait behind one that is at work when the store is closed."""
    begun, go = threading.Event(), threading.Event()

    def at_work(database: Database) -> int:
        begun.set()
        go.wait(HANG_S)
        return 0

    async def main() -> None:
        thread = await _thread(tmp_path / "book.db")
        first = asyncio.create_task(thread.write(at_work))
        await asyncio.to_thread(begun.wait, HANG_S)
        others = [asyncio.create_task(thread.write(_write(number))) for number in range(101, 111)]
        await settle()
        closing = asyncio.create_task(thread.close())
        await settle()
        with pytest.raises(StoreUnusable, match="closed"):
            await thread.write(_kinds)
        go.set()
        async with asyncio.timeout(HANG_S):
            assert await asyncio.gather(first, *others) == [0, *range(101, 111)]
            await closing
        again = await _thread(tmp_path / "book.db")
        assert await again.write(_kinds) == [f"kind{number}" for number in range(101, 111)]
        await again.close()

    asyncio.run(main())


def test_a_follower_ends_with_its_store(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    run = asyncio.run(make(path))

    async def main() -> None:
        async with opening("file in-loop", tmp_path) as open_store:
            store: Store = await open_store(SystemClock())
            ground = Ground(open_store, SimulatedClock())
            seen = ground.watch(store.entries.follow(run))
            await ground.until(lambda: len(seen) == 1, "the follower saw nothing")
            pages = store.entries.follow(run, 1)
            waiting = asyncio.ensure_future(anext(pages))
            await settle()
            await store.close()
            with pytest.raises(StoreUnusable, match="closed"):
                await waiting
            await ground.close()

    asyncio.run(main())
