"""An SDK's client, one for each event loop, closed together with its loop.

A provider is a value of an agent's module and may be used from several loops, one after another
(`run_sync` opens one each time), while the connections of a client belong to the loop that opened them. The
client is held by an asynchronous generator: `asyncio.run` ends those of its loop before it closes it, and
the connections with them. `close` does it earlier. A provider that is dropped before leaves its client to
the end of the loop: connections cannot be closed by whoever collects garbage.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, Generic, Protocol, TypeVar


class Closable(Protocol):
    """What both SDKs' clients have."""

    async def close(self) -> None: ...


Client = TypeVar("Client", bound=Closable)

Holder = AsyncGenerator[Client, None]

_HELD: dict[object, AsyncGenerator[Any, None]] = {}
"""What must outlive its provider: an event loop itself keeps only weak references to its generators."""


class Clients(Generic[Client]):
    """Makes a client when a loop first asks, and gives that loop the same one from then on."""

    def __init__(self, make: Callable[[], Client]) -> None:
        self._make = make
        self._open: dict[asyncio.AbstractEventLoop, tuple[Client, Holder[Client]]] = {}

    async def get(self) -> Client:
        """The client of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._open:
            token = object()
            holder = self._hold(loop, token)
            self._open[loop] = (await anext(holder), holder)
            _HELD[token] = holder
        return self._open[loop][0]

    async def close(self) -> None:
        """Close the running loop's client, if there is one; the next `get` makes another."""
        held = self._open.get(asyncio.get_running_loop())
        if held is not None:
            await held[1].aclose()

    async def _hold(self, loop: asyncio.AbstractEventLoop, token: object) -> Holder[Client]:
        client = self._make()
        try:
            yield client
        finally:
            # Nothing may be left that names the loop: a provider sees many of them.
            self._open.pop(loop, None)
            _HELD.pop(token, None)
            await client.close()
