"""Taking a run to its rest under a person's eyes and hands, and telling how it ended.

The first Ctrl-C (or SIGTERM) asks the run to rest at the next safe boundary; the second cuts it off at once,
the third ends the process without a word. All three leave a run that can be resumed.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from shiftbook.cli.live import Live
from shiftbook.entries import State
from shiftbook.run.loop import Run

INTERRUPTED = 4
EXIT_CODES: Mapping[State, int] = {
    "finished": 0,
    "failed": 3,
    "paused": INTERRUPTED,
    "running": INTERRUPTED,
    "cancelled": INTERRUPTED,
    "waiting": 5,
    "limited": 6,
}
"""How a run rests, as the program's exit code."""


async def drive(handle: Run, live: Live) -> bool:
    """Go on until the run rests and give its lease back; False when a person cut it off before."""
    async with handle:
        with _hands_on(handle, live):
            try:
                await handle.finish()
            except asyncio.CancelledError:
                return False
    return True


@contextmanager
def _hands_on(handle: Run, live: Live) -> Iterator[None]:
    """Listen to Ctrl-C and SIGTERM while the run is at work.

    The handlers are the interpreter's own, not the event loop's: a tool that holds the loop's thread must not
    keep a person from ending the program.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    times = 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal times
        times += 1
        if times == 1:
            loop.call_soon_threadsafe(_stop, handle, live)
        elif times == 2:
            loop.call_soon_threadsafe(task.cancel)
        else:
            os._exit(INTERRUPTED)

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _stop(handle: Run, live: Live) -> None:
    handle.stop("interrupted by a person")
    live.note("Stopping at the next safe boundary. Once more cuts it off at once.", "yellow")
