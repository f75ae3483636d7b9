"""An event loop whose time is a number: it jumps to the next deadline when everybody waits.

A time-out of ten minutes takes no time, and the same program takes the same steps on every machine. What
waits for nothing that can come is an error at once, not a test that hangs. Threads are refused.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.on_idle: Callable[[], None] = lambda: None

    def select(self, timeout: float | None = None) -> Any:
        if timeout is not None and timeout <= 0:
            return []
        self.on_idle()
        if timeout is None:
            raise RuntimeError("every task waits for something that will never come")
        self.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """See the module. `on_idle` is called whenever the loop would wait."""

    def __init__(self, on_idle: Callable[[], None] = lambda: None) -> None:
        self._jumping = _Jumping()
        self._jumping.on_idle = on_idle
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run(main: Coroutine[Any, Any, T], on_idle: Callable[[], None] = lambda: None) -> T:
    """Like `asyncio.run`, on a virtual loop."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(on_idle)) as runner:
        return runner.run(main)


def at_once(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never has to wait, wherever we are."""
    try:
        main.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    main.close()
    raise RuntimeError("it had to wait")
