"""Cutting a run off at once when its lease is lost.

Every append is checked against the lease epoch, so a holder that was replaced can write nothing. But it may
be in the middle of an action or of a model request that takes an hour and that its successor does too. The
keeper, which renews the lease from a thread of its own, tells the fence as soon as it knows; the fence cuts
the run's task off where it stands, as a crash would, and says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from shiftbook.errors import Fenced
from shiftbook.run.desk import Desk


class Fence:
    """Stands round the task that has the run at work."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self._fault: Fenced | None = None
        self._told = 0
        self._cut = False

    def fall(self, fault: Fenced) -> None:
        """The lease was taken over. Called from whatever thread; what is at work ends with `fault`."""
        self._desk.book.lost.set()
        self._fault = fault
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has ended meanwhile, and the work with it
                loop.call_soon_threadsafe(self._cut_off)

    def _cut_off(self) -> None:
        for cancellation in self._desk.cancellations:
            cancellation.set()
        if self._task is not None and not self._cut:
            self._cut = True
            self._task.cancel()

    def check(self) -> None:
        """Raise `CancelledError` when the task was told to end and a tool or a provider swallowed that."""
        if self._task is not None and self._task.cancelling() > self._told:
            raise asyncio.CancelledError

    @contextmanager
    def around(self) -> Iterator[None]:
        """Within, the current task is cut off when the lease is lost, and `Fenced` says so."""
        self._loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._task, self._told = task, task.cancelling()
        try:
            if self._fault is not None:
                raise self._fault
            yield
        except asyncio.CancelledError:
            if self._fault is None or task.cancelling() - self._cut > self._told:
                raise  # somebody else wants it to end as well
            raise self._fault from None
        finally:
            self._task = None
            if (
                self._cut
            ):  # However the work ended: what was told to the task here counts for nothing after it.
                self._cut = False
                task.uncancel()
