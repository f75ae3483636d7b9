"""What a dead worker had in hand comes back, a live one's stays; and whose clock counts."""

from __future__ import annotations

import asyncio

import pytest

from shiftbook.run.loop import resume
from shiftbook.workers import Queue, Settings, Worker
from shiftbook.workers.board import board
from shiftbook.workers.jobs import Beat, upkeep
from shiftbook.workers.roster import sign_on
from tests.chaos.worker import SkewedClock
from tests.workers.ground import (
    PATIENCE_S,
    check,
    entered,
    fetched,
    fresh_database,
    item,
    jobs,
    queue_at,
    raw,
    shop,
    state_of,
)

BEAT = Beat(stalled_ms=20_000)


def in_hand_of(address: str, run: str, seconds_ago: int) -> None:
    """Give the taken wake of a run to a worker that was seen so long ago."""
    with raw(address) as connection:
        made = connection.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - %s * interval '1 second') "
            "RETURNING id",
            (seconds_ago,),
        ).fetchone()
        assert made is not None
        connection.execute(
            "UPDATE procrastinate_jobs SET worker_id = %s WHERE lock = %s AND status = 'doing'",
            (made[0], run),
        )


async def kept_up(queue: Queue) -> None:
    """One upkeep."""
    async with queue.app.open_async():
        await upkeep(queue, BEAT)


def test_the_wake_of_a_worker_that_no_longer_beats_can_be_taken_again_and_a_live_ones_not() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            for run, seen in (("dead", 21), ("live", 5)):
                await entered(queue, shop(), run)
                assert fetched(address) == run
                in_hand_of(address, run, seen)
            await entered(queue, shop(), "urgent", priority=7)
            await kept_up(queue)
            assert sorted(jobs(address)) == [("dead", "todo"), ("live", "doing"), ("urgent", "todo")]
            assert fetched(address) == "dead", "what was begun goes first"
            assert fetched(address) == "urgent"
            assert fetched(address) is None

    with fresh_database() as address:
        asyncio.run(main(address))


def test_a_dead_workers_wake_gives_way_to_one_that_waits_already() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), "one")
            assert fetched(address) == "one"
            in_hand_of(address, "one", 60)
            assert await queue.send("one", item("meanwhile"))
            await kept_up(queue)
            assert jobs(address) == [("one", "todo")]

    with fresh_database() as address:
        asyncio.run(main(address))


def test_a_job_that_was_ended_by_a_worker_back_from_the_dead_is_made_up_for() -> None:
    """The zombie ends the wake that another worker has in hand, and that one dies: nobody is left to know."""

    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), "one")
            assert fetched(address) == "one"
            with raw(address) as connection:
                connection.execute("DELETE FROM procrastinate_jobs WHERE lock = 'one'")
            await kept_up(queue)
            assert jobs(address) == [("one", "todo")]
            at_work = Worker(queue, load=lambda reference: shop())
            await asyncio.wait_for(at_work.work(once=True), PATIENCE_S)
            assert at_work.counts.rested == 1
            await check(queue, "one")

    with fresh_database() as address:
        asyncio.run(main(address))


def test_a_wake_that_the_queue_counts_as_a_live_workers_and_that_it_never_heard_of_comes_back() -> None:
    """The connection died when the wake had been handed out, before the worker knew."""

    async def main(address: str) -> None:
        async with queue_at(address) as queue, queue_at(address) as sender:
            at_work = Worker(
                queue, Settings(beat=Beat(poll_ms=20, heartbeat_ms=20)), load=lambda reference: shop()
            )
            work = asyncio.create_task(at_work.work())
            while not at_work.is_ready:
                await at_work.clock.sleep_ms(5)
            await entered(sender, shop(), "one")
            while at_work.counts.rested < 1 or jobs(address):
                await at_work.clock.sleep_ms(5)
            with raw(address) as connection:
                connection.execute(
                    "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, status, worker_id, args) "
                    "SELECT 'shop.py:shop', 'shiftbook.wake', 'one', 'doing', max(id), '{\"run\": \"one\"}' "
                    "FROM procrastinate_workers"
                )
            assert await sender.send("one", item("after"))
            while at_work.counts.rested < 2:
                await at_work.clock.sleep_ms(5)
            at_work.stop()
            await asyncio.wait_for(work, PATIENCE_S)
            await check(queue, "one")

    with fresh_database() as address:
        asyncio.run(asyncio.wait_for(main(address), PATIENCE_S))


@pytest.mark.parametrize("skew_ms", [60_000, -60_000, 0])
def test_a_worker_whose_clock_is_off_waits_no_longer_and_no_shorter(skew_ms: int) -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), "one")
            clock = SkewedClock(skew_ms)
            odd = Worker(queue, Settings(), clock=clock, load=lambda reference: shop())
            async with await resume(queue.store, "one", shop(), clock=clock, lease_ms=20_000):
                await odd.wake("one")
            assert 15 < state_of(address, "one")["wait_s"] < 21
            await odd.wake("one")
            assert odd.counts.rested == 1
            await check(queue, "one")

    with fresh_database() as address:
        asyncio.run(main(address))


def test_a_worker_that_begins_anew_under_the_same_name_is_told_as_it_is_now() -> None:
    """A container that starts again has the host's name and the process id of the one before."""

    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await sign_on(queue.store, "pod:1", "pod", 1, 4, [], began=True)
            with raw(address) as connection:
                connection.execute(
                    "UPDATE workers SET seen = seen - interval '1 h', began = began - interval '1 h'"
                )
            first = (await board(queue.store))["workers"][0]
            await sign_on(queue.store, "pod:1", "pod", 1, 4, [], began=False)
            beaten = (await board(queue.store))["workers"][0]
            assert (beaten["began"], beaten["seen"] > first["seen"]) == (first["began"], True)
            await sign_on(queue.store, "pod:1", "pod", 1, 8, ["a.py:b"], began=True)
            now = (await board(queue.store))["workers"][0]
            assert (now["concurrency"], now["agents"]) == (8, ["a.py:b"])
            assert now["began"] > first["began"]

    with fresh_database() as address:
        asyncio.run(main(address))
