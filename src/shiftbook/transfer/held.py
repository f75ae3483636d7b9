"""Holding a run for as long as it is read or written whole, however long that takes.

The lease is renewed from a thread of its own, as that of a run at work. Where it is lost all the same - the
process was frozen, the database away - whoever reads must not believe what he read, and whoever writes is
refused by the store.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shiftbook.clock import this_process
from shiftbook.errors import Fenced
from shiftbook.journal.promises import Lease, Store
from shiftbook.run.keeper import LeaseKeeper

LEASE_MS = 60_000
"""How long a copy or an import that dies on another machine keeps the run from others."""


@asynccontextmanager
async def held(store: Store, run: str, *, new: bool = False, above: int = 0) -> AsyncIterator[Lease]:
    """Within, nobody else appends to the run. Raises what `Leases.take` raises; ends with the lease."""
    lease = await store.leases.take(run, this_process(), LEASE_MS, new=new, above=above)
    keeper: LeaseKeeper | None = None
    if not store.name.startswith(":memory:"):  # A database in memory has no second reader.
        keeper = LeaseKeeper(store.reopen, lease, LEASE_MS, threading.Event())
        keeper.start()
    try:
        yield lease
    finally:
        if keeper is not None:
            keeper.end()
        await store.leases.give_back(lease)


async def check_held(store: Store, lease: Lease) -> None:
    """Raise `Fenced` when somebody else has taken the run meanwhile."""
    now = await store.leases.look(lease.run)
    if now.epoch != lease.epoch or now.holder is None:
        raise Fenced(lease.run, lease.epoch, now.epoch)
