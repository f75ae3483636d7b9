"""Ending a task of asyncio: the one way to cancel something and wait for it.

A cancellation can be lost. `asyncio.wait_for` of Python 3.11 swallows one that comes in the same moment as
what it waits for, and a tool or a library may catch it and go on. Whoever cancelled once and waited would
then wait for ever. So a task is told again, with growing pauses, which leave time to a task that is tidying
up; and one that will not end is left behind and named in the log.

The outcome of a task that was told to end is nobody's any more: it is fetched here, so that asyncio does not
complain of it long after.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

log = logging.getLogger("shiftbook")

AGAIN_S = 0.5
"""After so many seconds a task that has not ended is told again; then after twice as many, and so on."""

TELLINGS = 6
"""How often a task is told before it is left behind: after about half a minute."""


async def end(task: asyncio.Future[Any]) -> bool:
    """Cancel a task and wait until it has ended, whatever comes of it; False when it was left behind."""
    task.add_done_callback(_fetch)  # Whoever waits here may be cut off as well, before the task has ended.
    pause_s = AGAIN_S
    for _ in range(TELLINGS):
        if task.done():
            break
        task.cancel()
        await asyncio.wait({task}, timeout=pause_s)
        pause_s *= 2
    else:
        if not task.done():
            log.warning("a task does not end although it was told %s times: %r", TELLINGS, task)
            leave(task)
            return False
    _fetch(task)
    return True


def leave(task: asyncio.Future[Any]) -> None:
    """Cancel a task and do not wait for it; what comes of it is fetched when it comes."""
    task.cancel()
    task.add_done_callback(_fetch)


def tellings() -> int:
    """How often the current task was told to end so far; 0 where no task is.

    A `CancelledError` means that this task is to end only where the count has grown since what raised it was
    begun. Else what was awaited was cancelled by itself: a task keeps count of those that it lived through.
    """
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _fetch(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()
