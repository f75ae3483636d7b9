"""A connection that dies: nothing is lost, nothing is done twice, and what cannot be known is said."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest

from shiftbook.clock import SystemClock
from shiftbook.codec import blob_hash
from shiftbook.errors import Fenced, Held, StoreError
from shiftbook.journal.postgres import PostgresStore, open_postgres
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.ground import LEASE_MS, Writer, elsewhere, message, read_all, said
from tests import postgres
from tests.journal.places import fresh_database
from tests.proxy import Line, proxy


@dataclass
class Shop:
    """A store behind a line that loses things, one beside it, and a writer with a run of one entry."""

    store: PostgresStore
    beside: PostgresStore
    line: Line
    writer: Writer
    clock: SimulatedClock

    async def positions(self) -> list[int]:
        return [row.position for row in await read_all(self.beside, self.writer.run)]


@contextlib.asynccontextmanager
async def shop() -> AsyncIterator[Shop]:
    clock = SimulatedClock(4)
    with fresh_database() as address:
        async with proxy(address) as line:
            beside = await open_postgres(address, clock)
            store = await open_postgres(line.address, clock)
            try:
                lease = await store.leases.take("run1", elsewhere(), LEASE_MS, new=True)
                writer = Writer(store, lease, clock)
                await writer.append(said("one"))
                # A plain commit, so that the store knows where the run stands.
                await writer.append(said("two"))
                yield Shop(store, beside, line, writer, clock)
            finally:
                await store.close()
                await beside.close()


def trying(check: Callable[[Shop], Awaitable[None]]) -> None:
    async def main() -> None:
        async with shop() as made:
            await check(made)

    asyncio.run(main())


LOSSES = [("lose_reply", b"shiftbook.append"), ("lose_request", b"shiftbook.append")]
LOSSES += [("lose_reply", b"COMMIT"), ("lose_request", b"COMMIT")]


@pytest.mark.parametrize(("what", "mark"), LOSSES)
def test_a_commit_that_was_cut_off_is_there_once(what: str, mark: bytes) -> None:
    """C3, F6: whether the server had it or not, it is written once, as it was meant."""

    async def check(at: Shop) -> None:
        setattr(at.line, what, mark)
        blobs = {blob_hash(b"b"): b"b"} if mark == b"COMMIT" else {}
        rows = await at.writer.append(said("three"), said("four"), blobs=blobs)
        assert at.line.lost == 1
        assert await at.positions() == [1, 2, 3, 4]
        assert (await read_all(at.beside, "run1"))[2:] == [*rows]
        assert await at.beside.blobs.names("run1") == [*blobs]
        await at.writer.append(said("five"))
        assert await at.positions() == [1, 2, 3, 4, 5]

    trying(check)


@pytest.mark.parametrize("what", ["lose_reply", "lose_request"])
def test_a_commit_that_was_cut_off_is_told_apart_from_another_holders(what: str) -> None:
    """What is there is ours, although another holder came after it; what is not there is refused."""

    async def check(at: Shop) -> None:
        async def takes_over() -> None:
            at.clock.advance(LEASE_MS + 1)
            lease = await at.beside.leases.take("run1", elsewhere("b"), LEASE_MS)
            position = len(await at.positions())
            successor = Writer(at.beside, lease, at.clock, position)
            successor.head = (await at.beside.entries.head("run1")).head
            await successor.append(said("by another"))

        setattr(at.line, what, b"shiftbook.append")
        at.line.on_lost = takes_over
        if what == "lose_reply":
            rows = await at.writer.append(said("three"))
            assert (await read_all(at.beside, "run1"))[2:3] == [*rows]
            assert await at.positions() == [1, 2, 3, 4]
        else:
            with pytest.raises(Fenced):
                await at.writer.append(said("three"))
            assert await at.positions() == [1, 2, 3]

    trying(check)


def test_a_lease_that_was_cut_off_is_said_to_be_unknown_and_ends_by_itself() -> None:
    async def check(at: Shop) -> None:
        await at.store.leases.give_back(at.writer.lease)
        at.line.lose_reply = b"UPDATE shiftbook.leases"
        with pytest.raises(StoreError, match="may be there or not"):
            await at.store.leases.take("run1", elsewhere("b"), LEASE_MS)
        with pytest.raises(Held):
            await at.store.leases.take("run1", elsewhere("b"), LEASE_MS)
        at.clock.advance(LEASE_MS + 1)
        lease = await at.store.leases.take("run1", elsewhere("b"), LEASE_MS)
        assert lease.epoch == 3

    trying(check)


def test_a_lease_that_never_reached_the_server_is_asked_for_again() -> None:
    async def check(at: Shop) -> None:
        await at.store.leases.give_back(at.writer.lease)
        at.line.lose_request = b"FROM shiftbook.leases"
        assert (await at.store.leases.take("run1", elsewhere("b"), LEASE_MS)).epoch == 2
        assert at.line.lost == 1

    trying(check)


@pytest.mark.parametrize("what", ["lose_reply", "lose_request"])
def test_what_may_be_repeated_is_repeated(what: str) -> None:
    """Renewing, giving back and putting in: once is as good as twice."""

    async def check(at: Shop) -> None:
        setattr(at.line, what, b"UPDATE shiftbook.leases")
        lease = await at.store.leases.renew(at.writer.lease, 2 * LEASE_MS)
        assert (await at.beside.leases.look("run1")).until_ms == lease.until_ms
        setattr(at.line, what, b"COMMIT")
        assert await at.store.inbox.put("run1", message("m1")) is True
        assert await at.store.inbox.put("run1", message("m1")) is False
        assert [item.id for item in await at.beside.inbox.items("run1")] == ["m1"]
        setattr(at.line, what, b"UPDATE shiftbook.leases")
        await at.store.leases.give_back(lease)
        assert (await at.beside.leases.look("run1")).holder is None
        assert at.line.lost == 3

    trying(check)


def test_a_read_that_was_cut_off_is_asked_again() -> None:
    async def check(at: Shop) -> None:
        at.line.lose_reply = b"shiftbook.entries"
        assert len(await at.store.entries.read("run1")) == 2
        assert at.line.lost == 1

    trying(check)


def test_connections_that_the_server_ended_while_idle_cost_nothing() -> None:
    """pg_terminate_backend, a restart of the server: no error comes through, nothing waits."""

    async def check(at: Shop) -> None:
        followed: list[int] = []

        async def follow() -> None:
            async for page in at.store.entries.follow("run1"):
                followed.extend(row.position for row in page)

        following = asyncio.ensure_future(follow())
        for number in range(3, 8):
            await at.beside.connections.run(_end_all_others)
            await at.writer.append(said(f"{number}"))
        while len(followed) < 7:
            await at.clock.sleep_ms(1)
        assert await at.positions() == followed == [1, 2, 3, 4, 5, 6, 7]
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    trying(check)


async def _end_all_others(database: object) -> None:
    await database.rows(  # type: ignore[attr-defined]
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def test_a_database_that_is_away_too_long_is_said_to_be_and_nothing_is_lost() -> None:
    async def check(at: Shop) -> None:
        commit = await at.writer.commit(said("three"))
        at.line.lose_request, at.line.on_lost = b"shiftbook.append", at.line.cut
        with pytest.raises(StoreError, match="may be there or not"):
            await at.store.entries.append(commit)
        with pytest.raises(StoreError, match=r"cannot be reached|does not answer|nothing listens"):
            await at.store.entries.read("run1")
        assert await at.positions() == [1, 2]
        at.line.is_down = False
        await at.store.entries.append(commit)
        assert await at.positions() == [1, 2, 3]

    trying(check)


@pytest.mark.slow
def test_a_server_that_is_restarted_is_waited_for() -> None:
    """Appends of several runs under way when it crashes: each is there once, and work goes on."""
    missing = postgres.why_not()
    if missing:
        pytest.skip(missing)

    async def work(store: PostgresStore, run: str, stopped: asyncio.Event, started: asyncio.Event) -> None:
        lease = await store.leases.take(run, elsewhere(run), 600_000, new=True)
        writer = Writer(store, lease, SystemClock())
        for number in range(30):
            await writer.append(said(f"{number}"))
            if number == 10:
                stopped.set()
        await started.wait()
        await writer.append(said("after"))

    async def main(server: postgres.Server) -> None:
        stopped, started = asyncio.Event(), asyncio.Event()
        store = await open_postgres(server.create(), SystemClock())
        try:
            runs = [f"run{number}" for number in range(4)]
            working = [asyncio.ensure_future(work(store, run, stopped, started)) for run in runs]
            await stopped.wait()
            await asyncio.to_thread(server.stop, "immediate")
            await asyncio.to_thread(server.start)
            started.set()
            await asyncio.gather(*working)
            for run in runs:
                rows = await read_all(store, run)
                assert [row.position for row in rows] == [*range(1, 32)]
        finally:
            await store.close()

    with postgres.server("wal_level=replica", durable=True) as server:
        asyncio.run(main(server))
