"""A storm of half a minute, and an auditor that finds what it is there for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from shiftbook.clock import SystemClock, this_process
from shiftbook.entries import ActionFinished, ActionStarted, PersonSaid
from shiftbook.journal.open import open_store
from shiftbook.run.book import Book
from shiftbook.workers import Worker
from tests import postgres
from tests.chaos.audit import audit, set_auditor
from tests.chaos.ground import Crew
from tests.chaos.lulls import Lulls
from tests.chaos.storm import Plan, Storm, hands, take_fence_away
from tests.crash.receiver import Receiver, receiving
from tests.workers.ground import an_hour_on, entered, fresh_database, item, queue_at, shop, whats

pytestmark = pytest.mark.slow
SHORT = Plan(
    runs=20,
    messages=4,
    seed=5,
    lease_ms=2_000,
    kills=1,
    freezes=1,
    restarts=("immediate",),
    cuts=1,
    partitions=0,
    first_at=10,
    every=15,
)


@pytest.fixture
def own() -> Iterator[postgres.Server]:
    """A server of its own: it is hurt."""
    if missing := postgres.why_not():
        pytest.skip(missing)
    with postgres.server("max_connections=100") as server:
        yield server


def test_two_workers_in_a_short_storm_finish_every_run_with_one_effect_for_each_key(
    tmp_path: Path, own: postgres.Server
) -> None:
    with receiving(honours_keys=True) as receiver:
        crew = Crew(own.create(), receiver, tmp_path, SHORT.lease_ms, concurrency=4, pace_ms=120)
        crew.hands = hands(2, 60_000)
        try:
            report = asyncio.run(Storm(SHORT, own, crew, receiver).go())
        finally:
            crew.end()
        told = "\n".join([*report.faults, *report.verdict.faults, crew.told()])
        assert report.verdict.faults == [], told
        assert report.verdict.actions > 100, told
        assert any("SIGKILL" in each for each in report.faults), told


def test_without_the_epoch_check_the_auditor_finds_the_writer_that_was_replaced(own: postgres.Server) -> None:
    async def main() -> list[str]:
        address = own.create()
        async with queue_at(address) as queue:
            await entered(queue, shop(), "one")
            set_auditor(address)
            take_fence_away(own, address)
            head = await queue.store.entries.head("one")
            old = await queue.store.leases.take("one", this_process(), 30_000)
            later = await open_store(address, clock=an_hour_on())
            await later.leases.take("one", this_process(), 30_000)
            await later.close()
            book = Book(queue.store, SystemClock(), old, head.position, head.head)
            book.stage(PersonSaid(()))
            await book.commit()
        return (await audit(address, Receiver(honours_keys=True), ["one"])).faults

    faults = asyncio.run(main())
    assert any("written under lease epoch 2 while the run's was 3" in each for each in faults), faults


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ("", ""),
        ("a key of its own at the retry", "1 keys, effects [1, 1]"),
        ("an effect without its key", "1 keys, effects [2]"),
        ("an effect that never came", "1 keys, effects []"),
        ("an answer twice", "calls without exactly one outcome, done"),
        ("mail left over", "has mail that nobody took in"),
    ],
)
def test_the_auditor_finds_each_promise_that_is_broken(broken: str, told: str) -> None:
    async def main(address: str) -> list[str]:
        receiver = Receiver(honours_keys=not broken.startswith("an effect without"))
        async with queue_at(address) as queue:
            agent = shop()
            await entered(queue, agent, "one")
            await Worker(queue, load=lambda reference: agent).wake("one")
            store = queue.store
            (start,) = await whats(queue, "one", ActionStarted)
            (end,) = await whats(queue, "one", ActionFinished)
            if broken != "an effect that never came":
                receiver.receive("one", start.key, 5)
            match broken:
                case "a key of its own at the retry":
                    receiver.receive("one", f"{start.key}-2", 5)
                case "an effect without its key":
                    receiver.receive("one", start.key, 5)
                case "an answer twice":
                    head = await store.entries.head("one")
                    lease = await store.leases.take("one", this_process(), 30_000)
                    book = Book(store, SystemClock(), lease, head.position, head.head)
                    book.stage(end)
                    await book.commit()
                case "mail left over":
                    await store.inbox.put("one", item("late"))
        set_auditor(address)
        return (await audit(address, receiver, ["one"])).faults

    with fresh_database() as address:
        faults = asyncio.run(main(address))
    assert any(told in fault for fault in faults) if broken else faults == []


def test_a_lull_is_told_once_with_what_waits_and_the_longest_is_kept() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), "one")
            lulls = Lulls(address, stalled_ms=1_000, least_ms=500)
            seen = [await lulls.see(*at) for at in ((3, 0.0), (3, 400.0), (3, 600.0), (3, 900.0), (4, 950.0))]
            assert seen[2] is not None
            assert "1 runs are not finished" in seen[2]
            assert "1 wakes wait" in seen[2]
            assert "0 workers beat" in seen[2]
            assert seen.count(None) == 4
            assert await lulls.see(4, 1_500.0) is not None
            assert lulls.longest_ms == 900

    with fresh_database() as address:
        asyncio.run(main(address))
