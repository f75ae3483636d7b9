"""Keeping a lease while a tool has the loop's thread, for hours if it must.

The keeper is a thread of its own with a connection of its own: an author's tool that blocks the event loop
does not cost the run its lease. It starts to work only after the first third of the lease, so that a short
run never pays for it. When somebody else took the lease it sets `lost`, and the book refuses to commit;
`on_lost` is told as well, so that what is at work can be cut off.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

from shiftbook.errors import Fenced, ShiftbookError
from shiftbook.journal.promises import Lease, Store

log = logging.getLogger("shiftbook")

RENEWALS_PER_LEASE = 3
"""Renewals within one lease: two may fail before it runs out."""


class LeaseKeeper:
    """Renews one lease until it is told to end."""

    def __init__(
        self,
        reopen: Callable[[], Awaitable[Store]],
        lease: Lease,
        lease_ms: int,
        lost: threading.Event,
        on_lost: Callable[[Fenced], None] | None = None,
    ) -> None:
        self._reopen = reopen
        self._lease = lease
        self._lease_ms = lease_ms
        self._lost = lost
        self._on_lost = on_lost
        self._end = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._work, name=f"lease-{lease.run}", daemon=True)

    def start(self) -> None:
        """Begin; the first renewal comes after a third of the lease."""
        self._thread.start()

    def end(self) -> None:
        """Stop renewing and wait until the thread is done with the database.

        A renewal that waits for a database that is away is given up: whoever ends a lease is on the loop that
        has all other runs of the process at work.
        """
        self._end.set()
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):  # it has ended by itself meanwhile
                loop.call_soon_threadsafe(self._give_up)
        self._thread.join()

    def _give_up(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()

    def _work(self) -> None:
        if self._end.wait(self._lease_ms / 1000 / RENEWALS_PER_LEASE):
            return
        asyncio.run(self._renew())

    async def _renew(self) -> None:
        store: Store | None = None
        self._loop = asyncio.get_running_loop()
        try:
            while not self._end.is_set():
                self._renewing = asyncio.current_task()
                try:
                    if store is None:
                        store = await self._reopen()
                    self._lease = await store.leases.renew(self._lease, self._lease_ms)
                except asyncio.CancelledError:
                    return
                except Fenced as fault:
                    self._lost.set()
                    if self._on_lost is not None:
                        self._on_lost(fault)
                    return
                except ShiftbookError as fault:
                    log.warning("lease of run %s not renewed, trying again: %s", self._lease.run, fault)
                finally:
                    self._renewing = None
                if self._end.wait(self._lease_ms / 1000 / RENEWALS_PER_LEASE):
                    return
        finally:
            if store is not None:
                await store.close()
