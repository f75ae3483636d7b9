"""Leaving a run to another holder: by hand-over at a boundary, and by force when the lease was lost."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from shiftbook.clock import SystemClock, this_process
from shiftbook.entries import ActionFinished, ActionStarted, ModelFailed, RunRested
from shiftbook.errors import Fenced
from shiftbook.journal.open import open_store
from shiftbook.providers.scripted import Scripted, call, fails, say
from shiftbook.run.agent import Agent
from shiftbook.run.limits import Limits
from shiftbook.run.loop import Run, resume, start
from shiftbook.testing.clock import SimulatedClock
from shiftbook.tools.contract import Context
from shiftbook.tools.function import tool
from tests.run.desk import Desk, agent, run_async

RUN = "handed"
PATIENCE_S = 60


class AnHourOn(SystemClock):
    """For whoever opens the database with it, every lease has run out."""

    def now_ms(self) -> int:
        return super().now_ms() + 3_600_000


def test_a_hand_over_in_the_middle_of_an_action_lets_it_finish_and_writes_nothing_of_itself() -> None:
    handles: list[Run] = []

    @tool(repeat="ask")
    async def work() -> str:
        """Somebody asks for the run meanwhile."""
        handles[0].hand_over()
        return "worked"

    async def main(ground: Desk) -> None:
        script = [call("work"), say("done")]
        first = agent(script, tools=(work,))
        async with await start(ground.store, first, "Begin.", run=RUN, clock=ground.clock) as run:
            handles.append(run)
            assert (await run.finish()).state == "running"
        assert [what.outcome for what in await ground.whats(RUN, ActionFinished)] == ["done"]
        assert await ground.whats(RUN, RunRested) == []
        async with await resume(ground.store, RUN, first, clock=ground.clock) as run:
            summary = await run.finish()
        assert (summary.state, summary.actions, summary.cut_off) == ("finished", 1, 0)
        await ground.check(RUN)

    run_async(main)


def test_a_hand_over_does_not_wait_for_the_next_attempt_at_a_request() -> None:
    async def main(ground: Desk) -> None:
        waits = asyncio.Event()

        class Waiting(SimulatedClock):
            async def sleep_ms(self, duration_ms: float) -> None:
                waits.set()
                await asyncio.get_running_loop().create_future()

        clock = Waiting()
        first = agent(
            [fails(then=say("done"))], limits=Limits(retry_ms_min=3_600_000, retry_ms_max=3_600_000)
        )
        async with await start(ground.store, first, "Begin.", run=RUN, clock=clock) as run:
            work = asyncio.ensure_future(run.finish())
            await asyncio.wait_for(waits.wait(), PATIENCE_S)
            run.hand_over()
            assert (await asyncio.wait_for(work, PATIENCE_S)).state == "running"
        assert len(await ground.whats(RUN, ModelFailed)) == 1
        async with await resume(ground.store, RUN, first, clock=ground.clock) as run:
            assert (await run.finish()).state == "finished"
        await ground.check(RUN)

    run_async(main)


def test_a_holder_whose_lease_is_taken_in_the_middle_of_an_action_stops_at_once_and_says_why(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "book.db")
    began = threading.Event()
    told: list[bool] = []

    @tool(repeat="ask")
    async def work(context: Context) -> str:
        """Never ends by itself."""
        began.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            told.append(context.cancelled.is_set())
        raise AssertionError

    async def main() -> None:
        store, other = await open_store(path), await open_store(path, clock=AnHourOn())
        endless = Agent(name="cut off", model=Scripted([call("work"), say("done")]), tools=(work,))
        try:
            async with await start(store, endless, "Begin.", run=RUN, lease_ms=240) as run:
                task = asyncio.ensure_future(run.finish())
                await asyncio.to_thread(began.wait, PATIENCE_S)
                taken = await other.leases.take(RUN, this_process(), 3_600_000)
                with pytest.raises(Fenced) as caught:
                    await asyncio.wait_for(task, PATIENCE_S)
            assert caught.value.current == taken.epoch
            assert told == [True]
            desk = Desk(other, None)  # type: ignore[arg-type]  # nothing here asks for the time
            assert len(await desk.whats(RUN, ActionStarted)) == 1
            assert await desk.whats(RUN, ActionFinished) == []
            await desk.check(RUN)
        finally:
            await store.close()
            await other.close()

    asyncio.run(main())
