"""A gate that a test opens: until then the server waits in front of it, and the test knows that it does.

It stands in for time. A slow first byte, a request that is still being answered, two requests at once:
the test says when each goes on, so nothing sleeps and nothing is measured.
"""

from __future__ import annotations

import asyncio
import threading


class Gate:
    """Closed at first. `open` may be called from any thread; an opened gate stays open.

    `arrived` is set when the server reaches the gate, for the test to wait on (in a coroutine:
    `await asyncio.to_thread(gate.arrived.wait)`).
    """

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self._guard = threading.Lock()
        self._is_open = False
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def open(self) -> None:
        """Let everybody through, now and later."""
        with self._guard:
            self._is_open = True
            waiting, self._waiting = self._waiting, []
            for loop, event in waiting:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(event.set)

    async def passed(self) -> None:
        """Wait until the gate is open: what the server does."""
        with self._guard:
            self.arrived.set()
            if self._is_open:
                return
            place = (asyncio.get_running_loop(), asyncio.Event())
            self._waiting.append(place)
        try:
            await place[1].wait()
        finally:
            with self._guard:
                if place in self._waiting:
                    self._waiting.remove(place)
