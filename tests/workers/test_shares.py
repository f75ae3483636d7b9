"""Limits per agent and tenant: counted where a run is claimed, over all workers, and never passed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from shiftbook.clock import this_process
from shiftbook.entries import RunRested
from shiftbook.errors import StoreError
from shiftbook.tools.contract import Tool
from shiftbook.workers import Queue
from shiftbook.workers.queue import Wake
from shiftbook.workers.shares import Gate, ShareFull, Shares
from tests.postgres import shared
from tests.workers.ground import (
    PATIENCE_S,
    REFERENCE,
    check,
    entered,
    fetched,
    queue_at,
    raw,
    shop,
    state_of,
    whats,
)
from tests.workers.test_worker import RUN, Middle, on_postgres, worker


def fetched_all(address: str) -> list[str]:
    """The runs whose wakes workers would get now, in order; the wakes are gone then."""
    runs: list[str] = []
    while (run := fetched(address)) is not None:
        runs.append(run)
    with raw(address) as connection:
        connection.execute("DELETE FROM procrastinate_jobs")
    return runs


def test_a_share_that_is_used_up_puts_a_run_off_and_frees_itself() -> None:
    async def main(address: str) -> None:
        middle = Middle()
        async with queue_at(address) as queue, queue_at(address) as second:
            for run, tags in (("one", ["tenant:a"]), ("two", ["tenant:a"]), ("three", ["tenant:b"])):
                await entered(queue, middle.agent, run, tags=tags)
            shares = Shares(per_tenant=1)
            busy = worker(queue, middle.agent, shares=shares)
            wake = asyncio.create_task(busy.wake("one"))
            await middle.reached()
            other = worker(second, middle.agent, shares=shares)
            await other.wake("two")
            assert state_of(address, "two")["why"] == "the tenant tenant:a has 1 at work, of 1 allowed"
            assert fetched_all(address) == ["one", "two", "three"]
            assert await queue.due() == 0, "a parked run costs nothing"
            await other.wake("two")
            assert fetched_all(address) == [], "there is still no room for it"
            middle.go.set()
            await other.wake("three")
            await asyncio.wait_for(wake, PATIENCE_S)
            assert fetched_all(address) == ["two"], "who ends a run wakes the next"
            await other.wake("two")
            assert (other.counts.full, other.counts.rested) == (2, 2)
            await busy._gate.close()
            await other._gate.close()

    on_postgres(main)


def test_a_claim_whose_connection_dies_in_the_end_leaves_no_lease_that_nobody_works_under() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), RUN)
            busy = worker(queue, shares=Shares(per_agent=1))
            claim = busy._gate.claim

            @asynccontextmanager
            async def cut(wake: Wake) -> AsyncIterator[None]:
                async with claim(wake):
                    yield  # Within, the lease is taken; then the server ends the connection.
                    assert busy._gate._own._database is not None
                    pid = busy._gate._own._database.connection.info.backend_pid
                    with raw(address) as connection:
                        connection.execute("SELECT pg_terminate_backend(%s, 60000)", (pid,))

            busy._gate.claim = cut  # type: ignore[method-assign]
            await busy.wake(RUN)
            assert (await queue.store.leases.look(RUN)).holder is None
            busy._gate.claim = claim  # type: ignore[method-assign]
            await busy.wake(RUN)
            await check(queue, RUN)
            assert [rest.state for rest in await whats(queue, RUN, RunRested)] == ["finished"]
            await busy._gate.close()

    on_postgres(main)


def test_two_workers_that_claim_in_the_same_moment_do_not_pass_a_limit() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as first, queue_at(address) as second:
            for run in ("one", "two"):
                await entered(first, shop(), run)
            gates = [Gate(each.store, Shares(per_agent=1)) for each in (first, second)]
            let_in: list[str] = []

            async def claim(queue: Queue, gate: Gate, run: str) -> None:
                with suppress(ShareFull):
                    async with gate.claim(Wake(run, agent=f"{REFERENCE}?cap=9000")):
                        await queue.store.leases.take(run, this_process(), 30_000)
                        let_in.append(run)

            await asyncio.gather(claim(first, gates[0], "one"), claim(second, gates[1], "two"))
            assert len(let_in) == 1
            for gate in gates:
                await gate.close()

    on_postgres(main)


def test_who_waits_for_a_share_goes_by_priority_and_then_by_age_and_keeps_his_place() -> None:
    """A run that another got ahead of is the next one all the same; none waits for ever."""

    async def main(address: str) -> None:
        middle = Middle()
        async with queue_at(address) as queue:
            for run, priority in (("busy", 0), ("old", 0), ("young", 0), ("dear", 5)):
                await entered(queue, middle.agent, run, priority=priority)
            fetched_all(address)
            at_work = worker(queue, middle.agent, shares=Shares(per_agent=1))
            wake = asyncio.create_task(at_work.wake("busy"))
            await middle.reached()
            for run in ("old", "young", "dear", "old"):
                await at_work.wake(run)
            assert at_work.counts.full == 4
            assert await at_work._gate.wake_parked(queue, Wake("busy", agent=REFERENCE)) == 0
            middle.go.set()
            await asyncio.wait_for(wake, PATIENCE_S)
            order = []
            for _ in range(3):
                (run,) = fetched_all(address)
                order.append(run)
                await at_work.wake(run)
            assert order == ["dear", "old", "young"]
            assert fetched_all(address) == []
            await at_work._gate.close()

    on_postgres(main)


def test_the_room_of_a_worker_that_died_is_given_on_by_the_upkeep() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            for run in ("dead", "next", "third"):
                await entered(queue, shop(), run, tags=["tenant:a"])
            fetched_all(address)
            lease = await queue.store.leases.take("dead", this_process(), 30_000)
            at_work = worker(queue, shares=Shares(per_tenant=1))
            for run in ("next", "third"):
                await at_work.wake(run)
            assert await at_work._gate.wake_all_parked(queue) == 0
            await queue.store.leases.give_back(lease)  # as good as run out
            assert await at_work._gate.wake_all_parked(queue) == 1
            assert fetched_all(address) == ["next"]
            await at_work._gate.close()

    on_postgres(main)


def test_a_toolbox_that_is_slow_to_open_holds_up_nobody_elses_claim_and_a_full_share_opens_none() -> None:
    async def main(address: str) -> None:
        slow = SlowBox()
        boxed = replace(shop(), toolboxes=(slow,))
        async with queue_at(address) as queue, queue_at(address) as second:
            for run in ("slow", "quick", "late"):
                await entered(queue, shop(), run)
            shares = Shares(per_agent=1)
            first, other = worker(queue, boxed, shares=shares), worker(second, shares=shares)
            wake = asyncio.create_task(first.wake("slow"))
            await asyncio.wait_for(slow.opening.wait(), PATIENCE_S)
            await asyncio.wait_for(other.wake("quick"), PATIENCE_S)
            assert other.counts.rested == 1
            lease = await queue.store.leases.take("quick", this_process(), 30_000)
            await asyncio.wait_for(first.wake("late"), PATIENCE_S)
            assert (first.counts.full, slow.opened) == (1, 0)
            slow.go.set()
            await asyncio.wait_for(wake, PATIENCE_S)
            assert (first.counts.full, slow.opened, slow.closed) == (2, 1, 1), (
                "it is counted again under the lock"
            )
            await queue.store.leases.give_back(lease)
            for each in (first, other):
                await each._gate.close()

    on_postgres(main)


def test_a_run_that_came_to_work_by_a_message_takes_no_place_from_those_that_still_wait() -> None:
    """It was parked, and a message woke it when there was room: it is at work then, and waits for nothing."""

    async def main(address: str) -> None:
        middle = Middle()
        async with queue_at(address) as queue:
            await entered(queue, middle.agent, "first")
            await entered(queue, middle.agent, "second")
            fetched_all(address)
            shares = Shares(per_agent=2)
            busy = worker(queue, middle.agent, shares=shares)
            for run in ("first", "second"):
                await queue.park(run, f"agent {REFERENCE}", "full", 60_000)
            wake = asyncio.create_task(busy.wake("first"))
            await middle.reached()
            assert await busy._gate.wake_all_parked(queue) == 1
            assert fetched_all(address) == ["second"]
            middle.go.set()
            await asyncio.wait_for(wake, PATIENCE_S)
            await busy._gate.close()

    on_postgres(main)


def test_who_comes_later_does_not_get_in_before_those_that_wait_and_the_dearer_does() -> None:
    """There is room, and nobody has woken those that wait yet: their places are theirs all the same."""

    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            for run, priority in (("old", 0), ("young", 0), ("dear", 1), ("other", 0)):
                await entered(queue, shop(), run, priority=priority)
            fetched_all(address)
            at_work = worker(queue, shares=Shares(per_agent=1))
            lease = await queue.store.leases.take("other", this_process(), 30_000)
            await at_work.wake("old")
            await queue.store.leases.give_back(lease)
            await at_work.wake("young")
            assert at_work.counts.full == 2
            why = state_of(address, "young")["why"]
            assert why.endswith("has 0 at work and 1 that waited before this one, of 1 allowed")
            await at_work.wake("dear")
            assert at_work.counts.rested == 1
            assert fetched_all(address) == ["old"], "who ends wakes the oldest"
            await at_work.wake("young")
            assert at_work.counts.full == 3, "the place of one that is woken is still kept"
            await at_work.wake("old")
            await at_work.wake("young")
            assert (at_work.counts.full, at_work.counts.rested) == (3, 3)
            for run in ("old", "young"):
                assert state_of(address, run)["wait_s"] is None, "nothing of the line is left behind"
            await at_work._gate.close()

    on_postgres(main)


def test_a_woken_run_that_no_worker_takes_keeps_its_place_for_some_seconds_only() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            for run in ("left", "late"):
                await entered(queue, shop(), run)
            fetched_all(address)
            at_work = worker(queue, shares=Shares(per_agent=1))
            await queue.park("left", f"agent {REFERENCE}", "full", 60_000)
            assert await at_work._gate.wake_all_parked(queue) == 1
            assert state_of(address, "left")["wait_s"] < 11
            with raw(address) as connection:
                connection.execute("UPDATE queued_runs SET due = now() WHERE run = 'left'")
            assert await queue.due() == 1
            await at_work.wake("late")
            assert at_work.counts.rested == 1
            await at_work.wake("left")
            assert at_work.counts.rested == 2
            await at_work._gate.close()

    on_postgres(main)


def test_who_waited_is_looked_at_before_those_that_came_meanwhile() -> None:
    """Else a queue full of newcomers is gone through first, and each of them finds the room."""

    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), "old")
            assert fetched_all(address) == ["old"]
            await queue.park("old", f"agent {REFERENCE}", "full", 60_000)
            for run in ("new", "newer"):
                await entered(queue, shop(), run)
            at_work = worker(queue, shares=Shares(per_agent=1))
            assert await at_work._gate.wake_all_parked(queue) == 1
            assert fetched_all(address) == ["old", "new", "newer"]

    on_postgres(main)


def test_who_waits_for_two_shares_keeps_his_age_from_the_one_to_the_other() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            for run, tags in (("old", ["tenant:a"]), ("young", ["tenant:b"]), ("x", []), ("y", ["tenant:a"])):
                await entered(queue, shop(), run, tags=tags)
            fetched_all(address)
            at_work = worker(queue, shares=Shares(per_agent=1, per_tenant=1))
            await queue.park("old", "tenant tenant:a", "full", 60_000)
            lease = await queue.store.leases.take("x", this_process(), 30_000)
            for run in ("young", "old"):  # Both find the agent's share used up now.
                await at_work.wake(run)
            await queue.store.leases.give_back(lease)
            await at_work.wake("young")
            assert at_work.counts.full == 3
            await at_work.wake("old")
            assert at_work.counts.rested == 1
            await at_work._gate.close()

    on_postgres(main)


def test_a_claim_whose_database_goes_away_is_told_in_our_words_and_one_after_it_connects_anew() -> None:
    async def main(address: str) -> None:
        async with queue_at(f"{address}{'&' if '?' in address else '?'}password=s3cret") as queue:
            gate, wake = Gate(queue.store, Shares(per_agent=1)), Wake("one", agent=REFERENCE)

            def cut_off(connections: str) -> None:
                name = urlsplit(address).path[1:]
                shared().sql(
                    shared().address,
                    f"ALTER DATABASE {name} ALLOW_CONNECTIONS {connections}",
                    f"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '{name}'",
                )

            async with gate.claim(wake):
                pass
            cut_off("true")
            async with gate.claim(wake):
                pass
            with pytest.raises(StoreError) as lost:
                async with gate.claim(wake):
                    cut_off("false")
            with pytest.raises(StoreError) as refused:
                async with gate.claim(wake):
                    pass
            for told in (str(lost.value), str(refused.value)):
                assert told.startswith(queue.store.name)
                assert "s3cret" not in told
                assert len(told.splitlines()) == 1
            cut_off("true")
            async with gate.claim(wake):
                pass
            await gate.close()

    on_postgres(main)


class SlowBox:
    """A toolbox that opens when a test lets it."""

    tools: tuple[Tool, ...] = ()
    stale = False

    def __init__(self) -> None:
        self.opening, self.go = asyncio.Event(), asyncio.Event()
        self.opened = self.closed = 0

    async def open(self) -> None:
        self.opening.set()
        await self.go.wait()
        self.opened += 1

    async def close(self) -> None:
        self.closed += 1

    async def refresh(self) -> None:
        """Nothing changes."""
