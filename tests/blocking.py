"""A store whose real work is done on the loop of another thread, so that its caller never waits for it.

For tests whose own loop is virtual: there time jumps, and a socket would never be heard. To such a loop a
store on a server is what a store in memory is: each call comes back at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

from shiftbook.clock import Clock
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Store

T = TypeVar("T")

PARTS = ("entries", "leases", "inbox", "blobs", "catalogue", "cache")
_LOOPS: list[asyncio.AbstractEventLoop] = []


def open_blocking(address: str, clock: Clock) -> Store:
    """Open a store, here and now."""
    return cast(Store, _Blocking(elsewhere(open_store(address, clock=clock))))


def elsewhere(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on the other thread's loop."""
    if not _LOOPS:
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, name="blocking", daemon=True).start()
        _LOOPS.append(loop)
    return asyncio.run_coroutine_threadsafe(work, _LOOPS[0]).result()


class _Part:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        async def call(*given: Any, **named: Any) -> Any:
            return elsewhere(method(*given, **named))

        return call


class _Blocking(_Part):
    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.name = inner.name
        for part in PARTS:
            setattr(self, part, _Part(getattr(inner, part)))
