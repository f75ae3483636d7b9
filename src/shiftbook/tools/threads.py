"""A plain function on a thread of its own, awaited.

A tool may run for hours, so there is no pool that could be full: a call takes an idle thread or starts a new
one. Threads are daemons, so that Ctrl-C ends the process whatever they do. A thread cannot be stopped from
outside: when the waiting task is cancelled the thread goes on, and what it returns in the end is dropped.

What the function raises is raised here, save what would be mistaken for a signal to the waiting task or to
the process: StopIteration, CancelledError, SystemExit, and GeneratorExit and KeyboardInterrupt, which no
Ctrl-C of a person brings to such a thread, come out as `RuntimeError` with the original as its cause.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

from shiftbook.tools.contract import TryAgain

T = TypeVar("T")

_SIGNALS = (StopIteration, asyncio.CancelledError, SystemExit, GeneratorExit, KeyboardInterrupt)

IDLE_MAX = 16
"""Threads kept for the next calls; starting one costs three times as much as waking one."""

_log = logging.getLogger("shiftbook")


async def in_thread(work: Callable[[], T], *, name: str) -> T:
    """Run `work` on a daemon thread, in a copy of the current context variables; `name` is for messages.

    Raises `TryAgain` when the system has no thread left: then nothing was run.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            _log.info("%s went on after it was cancelled and has ended now; its result is dropped", name)
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # T may itself include None

    def job() -> Callable[[], None]:
        result, raised = None, None
        try:
            result = context.run(work)
        except BaseException as error:  # noqa: BLE001 - it is raised again where the function is awaited
            raised = no_signal(error, name)

        def finish() -> None:
            try:
                loop.call_soon_threadsafe(settle, result, raised)
            except RuntimeError:
                _log.info("%s ended after its event loop was closed; its result is dropped", name)

        return finish

    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker(name)
    worker.jobs.put(job)
    return await future


def no_signal(error: BaseException, name: str) -> BaseException:
    """The error as it may be raised into a waiting task: what asyncio would act upon is wrapped."""
    if isinstance(error, _SIGNALS):
        wrapped = RuntimeError(f"{name} raised {type(error).__name__}")
        wrapped.__cause__ = error
        return wrapped
    return error


class _Worker:
    """A thread, one job at a time. A job returns what is left to do once the thread is free again."""

    def __init__(self, name: str) -> None:
        self.jobs: SimpleQueue[Callable[[], Callable[[], None]]] = SimpleQueue()
        try:
            threading.Thread(target=self._serve, name="shiftbook tool", daemon=True).start()
        except RuntimeError as error:
            raise TryAgain(f"The system could start no thread for {name}; nothing was run.") from error

    def _serve(self) -> None:
        stays = True
        while stays:
            finish = self.jobs.get()()
            stays = len(_idle) < IDLE_MAX
            if stays:
                _idle.append(self)
            finish()
            del finish  # it holds the result


_idle: list[_Worker] = []
# Threads do not live on in a forked child.
os.register_at_fork(after_in_child=_idle.clear)
