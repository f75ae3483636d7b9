"""A worker's end and its runs': what was paid for is kept, nothing hangs, nothing is left unsaid."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from shiftbook import ending
from shiftbook.entries import ActionFinished, ActionStarted, ModelAnswered, ModelAsked, RunRested
from shiftbook.errors import StoreError
from shiftbook.providers.scripted import Scripted, call, say
from shiftbook.tools.function import tool
from tests.workers.ground import (
    PATIENCE_S,
    check,
    entered,
    queue_at,
    shop,
    whats,
)
from tests.workers.test_worker import RUN, Middle, on_postgres, ready, worker


def test_a_worker_ends_though_a_task_of_its_swallows_that_it_is_told_to_end() -> None:
    """As `asyncio.wait_for` of Python 3.11 does now and then: found with a database that was away."""

    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            at_work = worker(queue)
            due = queue.due
            reached: list[bool] = []

            async def swallows() -> int:
                if not reached:
                    reached.append(True)
                    with suppress(asyncio.CancelledError):
                        await asyncio.get_running_loop().create_future()
                return await due()

            queue.due = swallows  # type: ignore[method-assign]
            task = asyncio.create_task(at_work.work())
            await ready(at_work)
            at_work.stop()
            await asyncio.wait({task}, timeout=PATIENCE_S)
            assert task.done()

    on_postgres(main)


def test_a_worker_ends_though_a_tool_swallows_that_its_run_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ending, "AGAIN_S", 0.01)

    async def main(address: str) -> None:
        there = asyncio.Event()

        @tool(repeat="ask")
        async def work() -> str:
            """Take for ever, and do not listen the first time."""
            with suppress(asyncio.CancelledError):
                there.set()
                await asyncio.get_running_loop().create_future()
            await asyncio.get_running_loop().create_future()
            return "never"

        async with queue_at(address) as queue:
            await entered(queue, shop([call("work")], tools=(work,)), RUN)
            at_work = worker(queue, shop([call("work")], tools=(work,)), grace_ms=10)
            task = asyncio.create_task(at_work.work())
            await asyncio.wait_for(there.wait(), PATIENCE_S)
            at_work.stop()
            await asyncio.wait({task}, timeout=PATIENCE_S)
            assert task.done()
            assert at_work.at_work == 0

    on_postgres(main)


def test_a_run_that_outlived_its_job_and_fails_is_told_in_the_log_and_nobodys_complaint(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(address: str) -> None:
        said: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, told: said.append(told["message"]))
        middle = Middle()
        async with queue_at(address) as queue:
            await entered(queue, middle.agent, RUN)
            at_work = worker(queue, middle.agent)
            job = asyncio.create_task(at_work.wake(RUN))
            await middle.reached()
            job.cancel()  # as when procrastinate's loop ends
            await asyncio.wait({job})

            async def away(*_given: object, **_named: object) -> None:
                raise StoreError("the database is away")

            queue.settle = away  # type: ignore[method-assign]
            queue.put_off = away  # type: ignore[method-assign]
            middle.go.set()
            while at_work.at_work:
                await at_work.clock.sleep_ms(5)
            assert "the database is away" in caplog.text
        gc.collect()
        assert said == []

    on_postgres(main)


def test_sigterm_in_a_request_the_reply_that_was_paid_for_is_kept_and_not_asked_for_again() -> None:
    """A4 over a hand-over: the request ends, its reply is written, the next worker goes on from it."""

    async def main(address: str) -> None:
        there, go = asyncio.Event(), asyncio.Event()

        class Slow(Scripted):
            asked = 0

            async def reply(self, request: Any, emit: Any) -> Any:
                self.asked += 1
                there.set()
                await go.wait()
                return await super().reply(request, emit)

        model = Slow([call("look", {"place": "A"}), say("done")])
        agent = replace(shop(), model=model)
        async with queue_at(address) as queue:
            await entered(queue, agent, RUN)
            at_work = worker(queue, agent)
            task = asyncio.create_task(at_work.work())
            await asyncio.wait_for(there.wait(), PATIENCE_S)
            at_work.stop()
            go.set()
            await asyncio.wait_for(task, PATIENCE_S)
            assert (at_work.counts.handed_over, model.asked) == (1, 1)
            assert len(await whats(queue, RUN, ModelAnswered)) == 1
        async with queue_at(address) as queue:
            await queue.due()
            other = worker(queue, agent)
            await asyncio.wait_for(other.work(once=True), PATIENCE_S)
            assert (other.counts.rested, model.asked) == (1, 2)
            assert len(await whats(queue, RUN, ModelAsked)) == 2
            await check(queue, RUN)

    on_postgres(main)


def test_a_worker_that_is_told_to_stop_lets_the_action_end_and_another_goes_on() -> None:
    async def main(address: str) -> None:
        middle = Middle()
        async with queue_at(address) as queue:
            await entered(queue, middle.agent, RUN)
            leaving = worker(queue, middle.agent)
            wake = asyncio.create_task(leaving.wake(RUN))
            await middle.reached()
            leaving.stop()
            middle.go.set()
            await asyncio.wait_for(wake, PATIENCE_S)
            assert leaving.counts.handed_over == 1
            assert await whats(queue, RUN, RunRested) == []
            assert (await queue.store.leases.look(RUN)).holder is None
            assert await queue.due() == 1
            await leaving.wake(RUN)
            assert leaving.counts.taken == 1, "it takes nothing more"
            await worker(queue, middle.agent).wake(RUN)
            assert [each.attempt for each in await whats(queue, RUN, ActionStarted)] == [1]
            assert [each.outcome for each in await whats(queue, RUN, ActionFinished)] == ["done"]
            await check(queue, RUN)

    on_postgres(main)
