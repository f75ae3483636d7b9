"""A worker and its runs: taken to their rest, put off, handed over, cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from shiftbook.clock import this_process
from shiftbook.entries import ActionFinished, PersonSaid
from shiftbook.errors import AgentUnusable, Fenced
from shiftbook.journal.open import open_store
from shiftbook.journal.postgres import PostgresStore
from shiftbook.journal.promises import Lease
from shiftbook.providers.scripted import call, say
from shiftbook.run.agent import Agent
from shiftbook.run.book import Book
from shiftbook.run.loop import resume
from shiftbook.run.mail import post
from shiftbook.tools.contract import Context
from shiftbook.tools.function import tool
from shiftbook.workers import Queue, Settings, Worker
from shiftbook.workers.jobs import Beat
from tests.workers.ground import (
    PATIENCE_S,
    an_hour_on,
    check,
    entered,
    entries,
    fetched,
    fresh_database,
    item,
    jobs,
    queue_at,
    shop,
    state_of,
    whats,
)

RUN = "one"


def worker(queue: Queue, agent: Agent | None = None, **settings: Any) -> Worker:
    """A worker that finds one agent by whatever reference."""
    found = agent or shop()
    return Worker(queue, Settings(**settings), load=lambda reference: found)


class Middle:
    """A tool that says when it is in the middle, and goes on when it is let."""

    def __init__(self) -> None:
        self.there, self.go = asyncio.Event(), asyncio.Event()
        self.cancelled: list[bool] = []

        @tool(repeat="ask")
        async def work(context: Context) -> str:
            """Take as long as the test wants."""
            self.there.set()
            try:
                await self.go.wait()
            finally:
                self.cancelled.append(context.cancelled.is_set())
            return "worked"

        self.agent = shop([call("work"), say("done"), say("done again")], tools=(work,))

    async def reached(self) -> None:
        """Wait for it to be in the middle."""
        await asyncio.wait_for(self.there.wait(), PATIENCE_S)


async def ready(at_work: Worker) -> None:
    """Wait until a worker listens."""
    while not at_work.is_ready:
        await at_work.clock.sleep_ms(5)


def on_postgres(main: Callable[[str], Any]) -> None:
    """Run a test on an empty database."""
    with fresh_database() as address:
        asyncio.run(main(address))


def test_queued_runs_are_taken_to_their_rest_and_a_message_takes_one_up_again() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            for number in range(5):
                await entered(queue, shop(), f"run {number}".replace(" ", ""))
            at_work = worker(queue)
            await asyncio.wait_for(at_work.work(once=True), PATIENCE_S)
            assert (at_work.counts.taken, at_work.counts.rested) == (5, 5)
            assert jobs(address) == []
            assert await queue.send("run3", item("again"))
        async with queue_at(address) as queue:
            at_work = worker(queue)
            await asyncio.wait_for(at_work.work(once=True), PATIENCE_S)
            assert at_work.counts.taken == 1
            said = await whats(queue, "run3", PersonSaid)
            assert [each.item for each in said][-1] == "again"
            for row in await queue.store.catalogue.runs():
                assert row.state == "finished"
                await check(queue, row.run)

    on_postgres(main)


def test_a_worker_that_listens_takes_what_comes_and_stops_when_told() -> None:
    async def main(address: str) -> None:
        middle = Middle()
        async with queue_at(address) as queue, queue_at(address) as sender:
            at_work = worker(queue, middle.agent, beat=Beat(poll_ms=3_600_000))
            work = asyncio.create_task(at_work.work())
            await ready(at_work)
            await entered(sender, middle.agent, RUN)
            await middle.reached()
            middle.go.set()
            while at_work.counts.rested == 0:
                await at_work.clock.sleep_ms(5)
            at_work.stop()
            await asyncio.wait_for(work, PATIENCE_S)
            assert not at_work.is_ready
            await check(queue, RUN)

    on_postgres(main)


def test_a_run_that_somebody_holds_is_put_off_until_that_lease_ends() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), RUN)
            assert fetched(address) == RUN
            async with await resume(queue.store, RUN, shop(), lease_ms=50_000):
                held = worker(queue)
                before = len(await entries(queue, RUN))
                await held.wake(RUN)
                assert len(await entries(queue, RUN)) == before
            put_off = state_of(address, RUN)
            assert 40 < put_off["wait_s"] < 51
            assert (put_off["tries"], held.counts.held) == (0, 1)
            assert "held by process" in put_off["why"]
            await held.wake(RUN)
            assert held.counts.rested == 1

    on_postgres(main)


def test_a_run_whose_agent_is_not_here_is_left_to_others_and_nothing_is_written() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), RUN)
            before = await entries(queue, RUN)
            epoch = (await queue.store.leases.look(RUN)).epoch

            def missing(reference: str) -> Agent:
                raise AgentUnusable(f"There is no file {reference} here.")

            elsewhere = Worker(queue, load=missing)
            await elsewhere.wake(RUN)
            first = state_of(address, RUN)
            assert "left to other workers" in first["why"]
            await elsewhere.wake(RUN)
            assert state_of(address, RUN)["tries"] == 2
            assert await entries(queue, RUN) == before
            assert (await queue.store.leases.look(RUN)).epoch == epoch
            await worker(queue).wake(RUN)
            assert state_of(address, RUN)["tries"] == 0
            assert (await queue.store.catalogue.runs())[0].state == "finished"

    on_postgres(main)


def test_c4_a_worker_whose_lease_is_taken_over_cuts_the_run_off_at_once_and_leaves_a_wake() -> None:
    async def main(address: str) -> None:
        middle = Middle()
        async with queue_at(address) as queue:
            await entered(queue, middle.agent, RUN)
            robbed = worker(queue, middle.agent, lease_ms=300)
            wake = asyncio.create_task(robbed.wake(RUN))
            await middle.reached()
            other = await open_store(address, clock=an_hour_on())
            taken = await other.leases.take(RUN, this_process(), 3_600_000)
            await asyncio.wait_for(wake, PATIENCE_S)
            assert middle.cancelled == [True]
            assert robbed.counts.fenced == 1
            assert "taken over" in state_of(address, RUN)["why"]
            assert state_of(address, RUN)["wait_s"] is not None
            assert (await other.leases.look(RUN)).epoch == taken.epoch
            await other.leases.give_back(taken)
            await other.close()
            assert await whats(queue, RUN, ActionFinished) == []
            await worker(queue, middle.agent).wake(RUN)
            assert [each.outcome for each in await whats(queue, RUN, ActionFinished)] == ["unknown"]
            await check(queue, RUN)

    on_postgres(main)


def test_of_two_that_believe_to_hold_a_run_one_writes_and_the_other_stops_and_says_why() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), RUN)
            other = await open_store(address, clock=an_hour_on())
            assert isinstance(other, PostgresStore)
            first = await resume(queue.store, RUN, shop())
            second = await resume(other, RUN, shop())
            both = await asyncio.gather(first.finish(), second.finish(), return_exceptions=True)
            fenced = [each for each in both if isinstance(each, Fenced)]
            assert len(fenced) == 1
            assert fenced[0] is both[0]
            assert "was taken over" in str(fenced[0])
            assert "this writer stops" in str(fenced[0])
            await first.close()
            await second.close()
            epochs = [entry.epoch for entry in await entries(queue, RUN)]
            assert epochs == sorted(epochs)
            assert both[1].state == "finished"  # type: ignore[union-attr]  # the one that was not fenced
            await check(queue, RUN)
            await other.close()

    on_postgres(main)


def test_the_older_of_two_writers_at_one_position_is_refused_whoever_comes_first() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), RUN)
            store, clock = queue.store, worker(queue).clock
            head = await store.entries.head(RUN)
            old = await store.leases.take(RUN, this_process(), 30_000)
            later = await open_store(address, clock=an_hour_on())
            new = await later.leases.take(RUN, this_process(), 30_000)

            def book(lease: Lease) -> Book:
                made = Book(store, clock, lease, head.position, head.head)
                made.stage(PersonSaid(()))
                return made

            with pytest.raises(Fenced, match="taken over"):
                await book(old).commit()
            await book(new).commit()
            with pytest.raises(Fenced):
                await book(old).commit()
            await check(queue, RUN)
            await later.close()

    on_postgres(main)


def test_c3_messages_from_another_process_in_the_middle_of_a_turn_are_taken_in_order() -> None:
    async def main(address: str) -> None:
        middle = Middle()
        async with queue_at(address) as queue, queue_at(address) as outside:
            await entered(queue, middle.agent, RUN)
            wake = asyncio.create_task(worker(queue, middle.agent).wake(RUN))
            await middle.reached()
            for number in range(3):
                assert await outside.send(RUN, item(f"mail {number}"))
            await post(outside.store, RUN, "by a program that knows of no queue")
            middle.go.set()
            await asyncio.wait_for(wake, PATIENCE_S)
            said = [each.item for each in await whats(queue, RUN, PersonSaid)]
            assert said[1:4] == ["mail 0", "mail 1", "mail 2"]
            assert len(said) == 5
            await check(queue, RUN)

    on_postgres(main)


def test_a_wake_in_the_moment_in_which_the_runs_task_ends_is_answered() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), RUN)
            busy = worker(queue)
            settle = queue.settle
            again: list[asyncio.Task[None]] = []

            async def settle_and_wake(run: str) -> None:
                await settle(run)
                if not again:
                    # Its first step comes after the task's last one, and before what follows from that.
                    again.append(asyncio.create_task(busy.wake(run)))

            queue.settle = settle_and_wake  # type: ignore[method-assign]
            await busy.wake(RUN)
            await asyncio.wait_for(again[0], PATIENCE_S)
            assert busy.at_work == 0

    on_postgres(main)


def test_a_fault_of_an_author_puts_the_run_off_longer_each_time_and_loses_nothing() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), RUN)

            def breaks(reference: str) -> Agent:
                raise ZeroDivisionError

            broken = Worker(queue, load=breaks)
            waits = []
            for _ in range(4):
                await broken.wake(RUN)
                waits.append(state_of(address, RUN)["wait_s"])
                await queue._rows(
                    "UPDATE shiftbook_queue.queued_runs SET due = NULL WHERE run = %s RETURNING run", (RUN,)
                )
            assert waits == sorted(waits)
            assert waits[-1] > 3
            assert state_of(address, RUN)["why"] == "ZeroDivisionError"
            await worker(queue).wake(RUN)
            await check(queue, RUN)

    on_postgres(main)
