"""One holder at a time: renewal beside a tool that blocks, clocks that disagree, messages from outside."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shiftbook.clock import this_process
from shiftbook.entries import ActionStarted, PersonSaid
from shiftbook.errors import BadInput, Conflict, Fenced, Held, StoreError, StoreUnusable, UnknownRun
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Commit, Lease
from shiftbook.providers.scripted import Scripted, call, fails, say
from shiftbook.run.agent import Agent
from shiftbook.run.book import Book
from shiftbook.run.keeper import LeaseKeeper
from shiftbook.run.loop import Run, resume, start
from shiftbook.run.mail import post
from shiftbook.testing.breaking import Changed
from shiftbook.testing.crash import Crash, Dies, Seams
from shiftbook.tools.function import tool
from tests.run.desk import LEASE_MS, Desk, agent, mail, run_async, said

RUN = "leased"
SHORT_LEASE_MS = 240
PATIENCE_S = 60


def until_renewed(path: str, times: int) -> list[int]:
    """Wait, on this thread, until the run's lease was renewed that often; the ends that were seen."""
    tick = threading.Event()
    ends: list[int] = []

    async def look() -> int:
        store = await open_store(path, create=False)
        try:
            return (await store.leases.look(RUN)).until_ms
        finally:
            await store.close()

    waited_s = 0.0
    while len(ends) <= times and waited_s < PATIENCE_S:
        end = asyncio.run(look())
        if not ends or end > ends[-1]:
            ends.append(end)
        tick.wait(0.01)
        waited_s += 0.01
    return ends


def test_b7_a_tool_that_blocks_the_loop_for_longer_than_the_lease_keeps_it_and_is_not_run_again(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "book.db")
    ends: list[int] = []

    @tool(repeat="safe")
    async def block() -> str:
        """Hold the event loop's thread until three renewals have come from elsewhere."""
        worker = threading.Thread(target=lambda: ends.extend(until_renewed(path, 3)))
        worker.start()
        worker.join()
        return "renewed meanwhile"

    async def main() -> None:
        store = await open_store(path)
        other = await open_store(path)
        blocking = Agent(name="b7", model=Scripted([call("block"), say("done")]), tools=(block,))
        try:
            run = await start(store, blocking, "Begin.", run=RUN, lease_ms=SHORT_LEASE_MS)
            async with run:
                summary = await run.finish()
                with pytest.raises(Held):
                    await resume(other, RUN, blocking)
            assert summary.state == "finished"
            desk = Desk(other, None)  # type: ignore[arg-type]  # nothing here asks for the time
            assert [what.attempt for what in await desk.whats(RUN, ActionStarted)] == [1]
            await desk.check(RUN)
        finally:
            await store.close()
            await other.close()

    asyncio.run(main())
    assert len(ends) == 4
    assert ends[-1] - ends[0] > SHORT_LEASE_MS / 2


def test_c4_two_takings_by_one_holder_are_two_and_the_older_one_has_no_right_left() -> None:
    async def main(ground: Desk) -> None:
        leases = ground.store.leases
        async with await start(ground.store, agent([say("one")]), "Begin.", run=RUN, clock=ground.clock):
            pass
        first = await leases.take(RUN, this_process(), LEASE_MS)
        ground.expire()
        second = await leases.take(RUN, this_process(), LEASE_MS)
        assert second.epoch > first.epoch
        with pytest.raises(Fenced):
            await leases.renew(first, LEASE_MS)
        before = await leases.look(RUN)
        await leases.give_back(first)
        assert await leases.look(RUN) == before

    run_async(main)


async def book_at(ground: Desk, position: int) -> Book:
    """A writer under the current lease who believes that the run is at this position."""
    row = await ground.store.leases.look(RUN)
    head = await ground.store.entries.head(RUN)
    lease = Lease(RUN, row.epoch, row.until_ms)
    return Book(ground.store, ground.clock, lease, position, head.head)


def test_c2_with_equal_stamps_the_position_decides_and_only_it() -> None:
    async def main(ground: Desk) -> None:
        async with await start(
            ground.store, agent([say("one")]), "Begin.", run=RUN, clock=ground.clock
        ) as run:
            await run.finish()
            entries = await ground.entries(RUN)
            assert len({entry.at_ms for entry in entries}) == 1
            stale = await book_at(ground, entries[-2].position)
            stale.stage(PersonSaid(()))
            with pytest.raises(Conflict):
                await stale.commit()
            current = await book_at(ground, entries[-1].position)
            current.stage(PersonSaid(()))
            await current.commit()

    run_async(main)


def test_c3_messages_that_come_in_mid_turn_from_another_connection_are_taken_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        path = str(tmp_path / "book.db")
        store, other = await open_store(path), await open_store(path)
        requests: list[Any] = []

        @tool(repeat="safe")
        async def ring() -> str:
            """Three people write while the action is under way."""
            for number in range(3):
                await post(other, RUN, f"message {number}")
            return "rang"

        def script(request: Any) -> Any:
            requests.append(said(request))
            return [call("ring"), say("done")][request.turn - 1]

        try:
            async with await start(store, agent(script, tools=(ring,)), "Begin.", run=RUN) as run:
                await run.finish()
            assert requests[-1][-4:] == ["rang", "message 0", "message 1", "message 2"]
            await Desk(other, None).check(RUN)  # type: ignore[arg-type]  # nothing here asks for the time
        finally:
            await store.close()
            await other.close()

    asyncio.run(main())


def test_d1_with_a_frozen_clock_the_order_is_the_positions() -> None:
    async def main(ground: Desk) -> None:
        script = [call("look", {"place": "A"}), call("mail", {"to": "Ann"}), say("done")]
        async with await start(ground.store, agent(script), "Begin.", run=RUN, clock=ground.clock) as run:
            summary = await run.finish()
        assert (summary.state, summary.actions) == ("finished", 2)
        assert len({entry.at_ms for entry in await ground.entries(RUN)}) == 1
        await ground.check(RUN)

    run_async(main)


def test_d3_processes_whose_clocks_are_a_minute_off_take_turns() -> None:
    async def main(ground: Desk) -> None:
        script = [fails(times=2, then=call("look", {"place": str(turn)})) for turn in range(1, 7)]
        clocks = (ground.clock.skewed(60_000), ground.clock.skewed(-60_000))
        taking_turns = agent([*script, say("done")])
        async with await start(ground.store, taking_turns, "Begin.", run=RUN, clock=clocks[0]):
            pass
        summary = None
        for number in range(1, 40):
            # Each process waits once before a new attempt, and dies when it would wait again.
            seams = Seams(Dies(2, "before", "clock.sleep_ms"))
            clock = seams.clock(clocks[number % 2])
            run = await resume(seams.store(ground.store), RUN, seams.agent(taking_turns), clock=clock)
            began_ms = ground.clock.now_ms()
            with suppress(Crash):
                async with run:
                    summary = await run.finish()
            # A wait that one clock has named takes no longer by another.
            assert ground.clock.now_ms() - began_ms <= 5_000
            if seams.died is None:
                break
            ground.expire()
        stamps = [entry.at_ms for entry in await ground.entries(RUN)]
        assert stamps != sorted(stamps)
        assert summary is not None
        assert (summary.state, summary.turns) == ("finished", 7)
        await ground.check(RUN)

    run_async(main)


def test_whoever_cannot_start_gives_the_lease_back() -> None:
    async def main(ground: Desk) -> None:
        broken: Any = [object()]
        with pytest.raises(BadInput):
            await start(ground.store, agent([say("one")]), broken, run=RUN, clock=ground.clock)
        append = ground.store.entries.append

        async def full(commit: Commit) -> None:
            raise StoreError("The disk is full.")

        ground.store.entries.append = full  # type: ignore[method-assign]
        with pytest.raises(StoreError, match="full"):
            await start(ground.store, agent([say("one")]), "Begin.", run=RUN, clock=ground.clock)
        ground.store.entries.append = append  # type: ignore[method-assign]
        assert (await ground.store.leases.look(RUN)).holder is None
        with pytest.raises(UnknownRun):
            await resume(ground.store, RUN, agent([say("one")]), clock=ground.clock)
        async with await start(
            ground.store, agent([say("one")], tools=(mail,)), "Begin.", run=RUN, clock=ground.clock
        ) as run:
            assert (await run.finish()).state == "finished"

    run_async(main)


def test_a_holder_that_slept_through_its_lease_does_not_pay_for_a_reply_that_another_has() -> None:
    async def main(ground: Desk) -> None:
        asked: list[str] = []

        def by(name: str) -> Any:
            def script(request: Any) -> Any:
                asked.append(f"{name} {request.turn}")
                return say("done")

            return agent(script)

        seams = Seams(Dies(1, "before", "model"))
        starter = seams.agent(by("starter"))
        with pytest.raises(Crash):
            async with await start(
                seams.store(ground.store), starter, "Begin.", run=RUN, clock=ground.clock
            ) as run:
                await run.finish()
        ground.expire()
        sleeper = await resume(ground.store, RUN, by("sleeper"), clock=ground.clock, lease_ms=LEASE_MS)
        ground.expire()
        async with await resume(ground.store, RUN, by("thief"), clock=ground.clock) as thief:
            await thief.finish()
        with pytest.raises(Fenced):
            await sleeper.finish()
        assert asked == ["thief 1"]

    run_async(main)


def test_renewal_goes_on_after_the_database_could_not_be_opened_once() -> None:
    async def main(ground: Desk) -> None:
        async with await start(ground.store, agent([say("one")]), "Begin.", run=RUN, clock=ground.clock):
            pass
        lease = await ground.store.leases.take(RUN, this_process(), LEASE_MS)
        renewed, opened = threading.Event(), []

        async def renew(lease: Lease, lease_ms: int) -> Lease:
            renewed.set()
            return lease

        async def close() -> None: ...

        async def reopen() -> Any:
            opened.append(1)
            if len(opened) == 1:
                raise StoreUnusable("locked for a moment")
            return Changed(ground.store, leases=Changed(ground.store.leases, renew=renew), close=close)

        lost = threading.Event()
        keeper = LeaseKeeper(reopen, lease, 30, lost)
        keeper.start()
        assert await asyncio.to_thread(renewed.wait, PATIENCE_S)
        keeper.end()
        assert len(opened) == 2
        assert not lost.is_set()

    run_async(main)


def test_a_renewal_that_waits_for_the_database_holds_nobody_up_in_the_end() -> None:
    """A keeper is ended on the loop that has other runs at work, also while the database is away."""

    async def main(ground: Desk) -> None:
        lease = await ground.store.leases.take(RUN, this_process(), LEASE_MS, new=True)
        waits, closed = threading.Event(), threading.Event()

        async def renew(lease: Lease, lease_ms: int) -> Lease:
            waits.set()
            await asyncio.get_running_loop().create_future()
            raise AssertionError

        async def close() -> None:
            closed.set()

        async def reopen() -> Any:
            return Changed(ground.store, leases=Changed(ground.store.leases, renew=renew), close=close)

        keeper = LeaseKeeper(reopen, lease, 30, threading.Event())
        keeper.start()
        assert await asyncio.to_thread(waits.wait, PATIENCE_S)
        await asyncio.wait_for(asyncio.to_thread(keeper.end), PATIENCE_S)
        assert closed.is_set()

    run_async(main)


class Box:
    """A toolbox that counts how often it is closed, and may fail to."""

    tools = ()
    stale = False

    def __init__(self, fault: Exception | None = None) -> None:
        self.closed, self.fault = 0, fault

    async def open(self) -> None:
        """Nothing is to be had."""

    async def close(self) -> None:
        self.closed += 1
        if self.fault is not None:
            raise self.fault

    async def refresh(self) -> None:
        """Nothing changes."""


def test_a_toolbox_that_cannot_be_closed_leaves_neither_the_others_open_nor_the_lease_taken() -> None:
    async def main(ground: Desk) -> None:
        first, last = Box(), Box(OSError("the server does not answer"))
        two = replace(agent([say("done")]), toolboxes=(first, last))
        with pytest.raises(OSError, match="does not answer"):
            async with await start(ground.store, two, "Begin.", run=RUN, clock=ground.clock) as run:
                await run.finish()
        assert (first.closed, last.closed) == (1, 1)
        assert (await ground.store.leases.look(RUN)).holder is None

    run_async(main)


def test_who_has_lived_through_a_cancellation_is_told_of_a_lost_lease_as_any_other() -> None:
    """A task keeps count of its cancellations: those from before want no end of this work."""

    async def main(ground: Desk) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        handle: list[Run] = []

        def script(request: Any) -> Any:
            handle[0]._fence.fall(Fenced(RUN, 1, 2))
            return call("wait", {})

        @tool(repeat="safe")
        async def wait() -> str:
            """Wait for ever."""
            await asyncio.get_running_loop().create_future()
            return "never"

        run = await start(ground.store, agent(script, tools=(wait,)), "Begin.", run=RUN, clock=ground.clock)
        handle.append(run)
        with pytest.raises(Fenced):
            await run.finish()
        assert task.cancelling() == 1, "what the fence told the task is taken back"
        task.uncancel()
        await run.close()

    run_async(main)
