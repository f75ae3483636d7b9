"""A worker in trouble: it pauses, says in a sentence what is the matter, and is well as soon as it can be."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from shiftbook.clock import SystemClock
from shiftbook.workers import Queue, Worker
from shiftbook.workers.jobs import Beat
from tests.workers.ground import (
    PATIENCE_S,
    check,
    entered,
    fetched,
    item,
    jobs,
    queue_at,
    raw,
    shop,
    state_of,
)
from tests.workers.test_upkeep import in_hand_of
from tests.workers.test_worker import RUN, Middle, on_postgres, ready, worker

QUICK = Beat(poll_ms=20, heartbeat_ms=20, upkeep_ms=20)


class Impatient(SystemClock):
    """A clock by which every wait is over at once; it keeps what was waited for, and can be moved."""

    def __init__(self) -> None:
        self.waited_ms: list[float] = []
        self.ahead_ms = 0.0

    async def sleep_ms(self, wait_ms: float) -> None:
        self.waited_ms.append(wait_ms)
        await super().sleep_ms(1)

    def steady_ms(self) -> float:
        return super().steady_ms() + self.ahead_ms


def test_a_run_whose_agent_cannot_be_read_is_put_off_longer_each_time() -> None:
    """It was looked up outside of what catches faults, and tried again at once, without end."""

    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), RUN)
            with raw(address) as connection:
                connection.execute("DELETE FROM shiftbook.runs")
                connection.execute("UPDATE shiftbook.entries SET payload = payload || ' '")
            at_work = worker(queue)
            for tries in (1, 2, 3):
                await at_work.wake(RUN)
                told = state_of(address, RUN)
                assert told["tries"] == tries
                assert told["wait_s"] > 0.2 * 2**tries
                assert "cannot be read" in told["why"]
                with raw(address) as connection:
                    connection.execute("UPDATE queued_runs SET due = NULL")

    on_postgres(main)


def test_a_wake_that_can_neither_be_taken_nor_put_off_is_not_tried_again_at_once() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), RUN)
            with raw(address) as connection:
                connection.execute(
                    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$"
                )
                connection.execute(
                    "CREATE TRIGGER refuse BEFORE UPDATE ON queued_runs "
                    "FOR EACH ROW EXECUTE FUNCTION refuse()"
                )
            clock = Impatient()
            at_work = Worker(queue, clock=clock, load=lambda reference: shop())
            for _ in range(3):
                with pytest.raises(Exception, match="the database refused"):
                    await at_work.wake(RUN)
            assert len(clock.waited_ms) == 3
            for tries, waited_ms in enumerate(clock.waited_ms, start=1):
                assert waited_ms >= 250 * 2**tries
            with raw(address) as connection:
                connection.execute("DROP TRIGGER refuse ON queued_runs")
            await at_work.wake(RUN)
            assert (at_work.counts.rested, len(clock.waited_ms)) == (1, 3)

    on_postgres(main)


def paused(caplog: pytest.LogCaptureFixture) -> list[float]:
    """The pauses that a worker has announced, in seconds."""
    found = [re.search(r"; again in ([0-9.]+) s", each.message) for each in caplog.records]
    return [float(each[1]) for each in found if each is not None]


async def until(holds: Any) -> None:
    """Wait for something to come true."""
    while not holds():
        await SystemClock().sleep_ms(5)


@pytest.mark.parametrize(
    ("listened", "lived_ms", "last_s"),
    [(True, 5_000, (0.25, 0.5)), (True, 100, (2, 8)), (False, 5_000, (2, 8))],
    ids=["well in between", "up and down", "never up"],
)
def test_an_outage_after_a_time_in_which_all_was_well_is_not_held_against_the_worker(
    listened: bool, lived_ms: float, last_s: tuple[float, float], caplog: pytest.LogCaptureFixture
) -> None:
    """Six restarts in two minutes had it pause for half a minute after the last one."""

    async def main(address: str) -> None:
        clock = Impatient()
        async with queue_at(address) as queue:
            at_work = Worker(queue, clock=clock)

            async def listen(once: bool) -> str:
                at_work._listened = listened
                clock.ahead_ms += lived_ms
                if len(paused(caplog)) == 4:
                    at_work.stop()
                return "the queue is gone"

            at_work._listen = listen  # type: ignore[method-assign]
            await asyncio.wait_for(at_work.work(), PATIENCE_S)

    on_postgres(main)
    assert last_s[0] <= paused(caplog)[-1] <= last_s[1]


def test_a_worker_that_was_taken_for_dead_says_so_and_signs_on_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its registration is gone: others have taken it away while it stood still."""

    async def main(address: str) -> None:
        async with queue_at(address) as queue, queue_at(address) as sender:
            at_work = worker(queue, beat=QUICK)
            work = asyncio.create_task(at_work.work())
            await ready(at_work)
            await until(lambda: registered(address))
            with raw(address) as connection:
                connection.execute("DELETE FROM procrastinate_workers")
            await entered(sender, shop(), RUN)
            await until(lambda: at_work.counts.rested)
            at_work.stop()
            await work
        assert "taken for dead; it signs on anew" in caplog.text
        assert "violates" not in caplog.text.replace("Traceback", "").partition("procrastinate")[0]

    on_postgres(lambda address: asyncio.wait_for(main(address), PATIENCE_S))


def registered(address: str) -> bool:
    """Whether a worker is registered with procrastinate."""
    with raw(address) as connection:
        found = connection.execute("SELECT count(*) FROM procrastinate_workers").fetchone()
    return found is not None and found[0] > 0


def test_the_upkeep_is_done_whatever_was_put_in_by_a_clock_that_is_ahead_and_however_busy_a_worker_is() -> (
    None
):
    """A worker a minute ahead had put in the next minute's upkeep and froze: the others left it undone."""

    async def main(address: str) -> None:
        middle = Middle()
        async with queue_at(address) as queue, queue_at(address) as sender:
            with raw(address) as connection:
                connection.execute(
                    "INSERT INTO procrastinate_periodic_defers (task_name, periodic_id, defer_timestamp) "
                    "SELECT 'shiftbook.upkeep', '', extract(epoch FROM now())::bigint + ahead "
                    "FROM generate_series(-60, 120) AS ahead"
                )
            at_work = worker(queue, middle.agent, concurrency=1, beat=Beat(poll_ms=20, upkeep_ms=50))
            work = asyncio.create_task(at_work.work())
            await entered(sender, middle.agent, "busy")
            await middle.reached()
            await entered(sender, middle.agent, "dead")
            assert fetched(address) == "dead"
            in_hand_of(address, "dead", 60)
            await until(lambda: ("dead", "todo") in jobs(address))
            middle.go.set()
            await until(lambda: at_work.counts.rested == 2)
            at_work.stop()
            await work
            await check(queue, "dead")

    on_postgres(lambda address: asyncio.wait_for(main(address), PATIENCE_S))


def test_one_worker_at_a_time_has_the_turn_and_another_the_next_if_that_one_is_gone() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as first, queue_at(address) as second:

            async def turns(*queues: Queue) -> list[bool]:
                return await asyncio.gather(*(queue.has_turn(5_000) for queue in queues))

            assert sorted(await turns(first, second, first)) == [False, False, True]
            assert await turns(first, second) == [False, False]
            with raw(address) as connection:
                connection.execute("UPDATE upkeep SET done = done - interval '6 s'")
            assert await turns(second) == [True]

    on_postgres(main)


def test_a_job_of_the_release_before_for_its_upkeep_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), RUN)
            with raw(address) as connection:
                connection.execute(
                    "INSERT INTO procrastinate_jobs (queue_name, task_name, queueing_lock, priority, args) "
                    "VALUES ('shiftbook', 'shiftbook.upkeep', 'shiftbook.upkeep', 1000000, "
                    "'{\"timestamp\": 1}')"
                )
            at_work = worker(queue)
            await asyncio.wait_for(at_work.work(once=True), PATIENCE_S)
            assert at_work.counts.rested == 1
            assert await queue.send(RUN, item("again"))
            assert jobs(address) == [(RUN, "todo")]
        assert "Task was not found" not in caplog.text

    on_postgres(main)
