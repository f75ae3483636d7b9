"""An SDK's client, one for each event loop, closed together with its loop.

A provider is a value of an agent's module and may be used from several loops, one after another
(`run_sync` opens one each time), while the connections of a client belong to the loop that opened them. The
client is held by an asynchronous generator: `asyncio.run` ends those of its loop before it closes it, and
the connections with them. `close` does it earlier.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary


class Closable(Protocol):
    """What both SDKs' clients have."""

    async def close(self) -> None: ...


Client = TypeVar("Client", bound=Closable)


class Clients(Generic[Client]):
    """Makes a client when a loop first asks, and gives that loop the same one from then on."""

    def __init__(self, make: Callable[[], Client]) -> None:
        self._make = make
        self._open: WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[Client, AsyncGenerator[Client, None]]
        ] = WeakKeyDictionary()

    async def get(self) -> Client:
        """The client of the running loop."""
        loop = asyncio.get_running_loop()
        held = self._open.get(loop)
        if held is None:
            holder = self._hold()
            held = (await anext(holder), holder)
            self._open[loop] = held
        return held[0]

    async def close(self) -> None:
        """Close the running loop's client, if there is one; the next `get` makes another."""
        held = self._open.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await held[1].aclose()

    async def _hold(self) -> AsyncGenerator[Client, None]:
        client = self._make()
        try:
            yield client
        finally:
            await client.close()
