"""The job that procrastinate runs for us, the loop of its that runs it, and what a dead worker had in hand.

A job is a wake, handed to the worker. Whatever it raises, it stays in the queue and is tried again: the queue
forgets nothing that it was not told to forget. What is meant to wait goes into our own due index instead, by
the server's time.

The upkeep is no periodic job of procrastinate's: those go by each worker's own clock, and a moment that one
worker has put in is put in by nobody else. One whose clock is a minute ahead puts in all of the next minute,
and when it freezes nobody does the upkeep until the others' clocks have come as far. So whose turn it is goes
by the server's time, and a busy worker's upkeep waits for no place among its runs.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from shiftbook.workers.queue import WAKE, Queue

if TYPE_CHECKING:
    from procrastinate import BaseRetryStrategy, JobContext
    from procrastinate.jobs import Job
    from procrastinate.worker import Worker as Loop

log = logging.getLogger("shiftbook")

CARE = "shiftbook.upkeep"
"""The job by which workers of the release before do their upkeep: in a queue of theirs it is still put in."""

BEGUN = 1_000
"""The priority of a run that was in the middle when its worker died: it goes before what was not begun."""

AT_ONCE = datetime(1970, 1, 1, tzinfo=UTC)
"""For a job that is to be tried again: any server's clock is past it, however this machine's is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """How often a worker looks, beats and cleans up; milliseconds.

    A job whose worker has not beaten for `stalled_ms` is taken from it. `poll_ms` is the longest that a wake
    waits for a free worker whom no notice reached.
    """

    poll_ms: int = 2_000
    heartbeat_ms: int = 5_000
    stalled_ms: int = 20_000
    upkeep_ms: int = 5_000


def register(
    queue: Queue,
    wake: Callable[[str], Awaitable[None]],
    keep_up: Callable[[], Awaitable[None]],
    in_hand: set[int | None],
) -> None:
    """Tell procrastinate what its jobs do; `in_hand` holds the numbers of those that are under way."""

    async def on_wake(context: JobContext, run: str) -> None:
        in_hand.add(context.job.id)
        try:
            await wake(run)
        finally:
            in_hand.discard(context.job.id)

    async def on_upkeep(timestamp: int) -> None:
        await keep_up()

    app = queue.app
    app.task(name=WAKE, retry=_always(), pass_context=True)(on_wake)
    app.task(name=CARE)(on_upkeep)


async def upkeep(queue: Queue, beat: Beat) -> None:
    """Give the jobs of workers that no longer beat back to the queue, and wake runs that nobody else will."""
    for job in await queue.app.job_manager.get_stalled_jobs(seconds_since_heartbeat=beat.stalled_ms / 1000):
        if await _give_back(queue, job):
            log.info("job %s of a worker that is gone was given back: %s", job.id, job.lock)
    if woken := await queue.orphans():
        log.warning("%s runs had something to do and nobody to wake them; they were woken", woken)


async def forsaken(
    queue: Queue, worker_id: int, in_hand: AbstractSet[int | None], seen: AbstractSet[int | None]
) -> set[int | None]:
    """Give back the jobs that the queue counts as this worker's and that it does not have; the suspects.

    There are some when a connection died in the wrong moment: the worker was given a job and never heard of
    it, or could not say that one had ended. Such a job would keep its run's wakes waiting for as long as this
    worker lives. `seen` are the suspects of the last look: only who is one twice is no job on its way.
    """
    suspects: set[int | None] = set()
    for job in await queue.app.job_manager.list_jobs_async(status="doing", worker_id=worker_id):
        if job.id in in_hand:
            continue
        if job.id not in seen:
            suspects.add(job.id)
        elif await _give_back(queue, job):
            log.info("job %s, which nobody here has, was given back: %s", job.id, job.lock)
    return suspects


async def _give_back(queue: Queue, job: Job) -> bool:
    from procrastinate.exceptions import ConnectorException, UniqueViolation
    from procrastinate.jobs import Status

    jobs = queue.app.job_manager
    try:
        await jobs.retry_job(job, retry_at=AT_ONCE, priority=max(job.priority, BEGUN))
    except UniqueViolation:
        # Another wake of the run waits already, and says the same.
        await jobs.finish_job(job, Status.FAILED, delete_job=True)
    except ConnectorException:
        return False  # Somebody else was first; or the database is away, and the next look sees to it.
    return True


def loop_of(queue: Queue, queues: list[str] | None, concurrency: int, beat: Beat, *, once: bool) -> Loop:
    """Procrastinate's loop for one registration: it ends when the database is away, and another is made.

    Its jobs are given up at once then: the runs that they stand for go on, in tasks of the worker's own.
    """
    from procrastinate.worker import Worker as Loop

    return Loop(
        app=queue.app,
        queues=queues,
        name="shiftbook",
        concurrency=concurrency,
        wait=not once,
        fetch_job_polling_interval=beat.poll_ms / 1000,
        abort_job_polling_interval=3600,
        shutdown_graceful_timeout=0,
        listen_notify=True,
        delete_jobs="always",
        install_signal_handlers=False,
        update_heartbeat_interval=beat.heartbeat_ms / 1000,
        stalled_worker_timeout=beat.stalled_ms / 1000,
    )


def _always() -> BaseRetryStrategy:
    from procrastinate import BaseRetryStrategy, RetryDecision

    class Always(BaseRetryStrategy):
        """Tries again, whatever happened."""

        def get_retry_decision(self, *, exception: BaseException, job: Any) -> RetryDecision:
            return RetryDecision(retry_at=AT_ONCE)

    return Always()
