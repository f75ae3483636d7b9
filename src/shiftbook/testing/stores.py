"""What every store is held to: one suite a promise, and `check_store` for all of them.

`open_store` opens the SAME database each time it is called, with the clock it is given as the database's
time. The suites need no test runner; a store that breaks a promise raises `Broken`, an AssertionError that
names the clause. Each clause's docstring says which store it fails:

    async def open_store(clock):
        return await shiftbook.journal.open.open_store("try.db", clock=clock)

    asyncio.run(check_store(open_store))

The suites are tried themselves: `shiftbook.testing.broken_stores` breaks one promise at a time. They cannot
show what needs several processes, a power cut or a full disk; a store's own tests do.
"""

from __future__ import annotations

from shiftbook.errors import StoreError
from shiftbook.testing import (
    clauses_blobs,
    clauses_derived,
    clauses_entries,
    clauses_inbox,
    clauses_leases,
)
from shiftbook.testing.ground import Broken, Clause, Ground, OpenStore, hold, require_raises, said

__all__ = [
    "SUITES",
    "Broken",
    "OpenStore",
    "check_blobs",
    "check_cache",
    "check_catalogue",
    "check_entries",
    "check_inbox",
    "check_leases",
    "check_store",
]


async def j1_a_closed_store_says_so(ground: Ground) -> None:
    """Fails a store that hangs or raises its driver's error once it is closed, or cannot be closed twice."""
    store = await ground.open()
    writer = await ground.begin(store)
    commit = await writer.commit(said("late"))
    await ground.reopen(store)
    await require_raises(StoreError, store.entries.append(commit), "an append after closing")
    await require_raises(StoreError, store.entries.read(writer.run), "a read after closing")
    await store.close()


SUITES: dict[str, tuple[Clause, ...]] = {
    "entries": clauses_entries.CLAUSES,
    "leases": clauses_leases.CLAUSES,
    "inbox": clauses_inbox.CLAUSES,
    "blobs": clauses_blobs.CLAUSES,
    "catalogue": clauses_derived.CATALOGUE_CLAUSES,
    "cache": clauses_derived.CACHE_CLAUSES,
    "store": (j1_a_closed_store_says_so,),
}
"""Every clause, by the promise that it belongs to."""


async def check_entries(open_store: OpenStore, seed: int = 0) -> None:
    """Rows of runs, append-only (J1, J3, J4)."""
    await hold(SUITES["entries"], open_store, seed)


async def check_leases(open_store: OpenStore, seed: int = 0) -> None:
    """One holder a run, a greater epoch at each taking (W1)."""
    await hold(SUITES["leases"], open_store, seed)


async def check_inbox(open_store: OpenStore, seed: int = 0) -> None:
    """In by anybody, out by the holder, once and in order (J4)."""
    await hold(SUITES["inbox"], open_store, seed)


async def check_blobs(open_store: OpenStore, seed: int = 0) -> None:
    """Bytes by their hash, within one run (J3)."""
    await hold(SUITES["blobs"], open_store, seed)


async def check_catalogue(open_store: OpenStore, seed: int = 0) -> None:
    """Which runs there are, derived from the rows (J1)."""
    await hold(SUITES["catalogue"], open_store, seed)


async def check_cache(open_store: OpenStore, seed: int = 0) -> None:
    """Snapshots that may be dropped at any time (J1)."""
    await hold(SUITES["cache"], open_store, seed)


async def check_store(open_store: OpenStore, seed: int = 0) -> None:
    """All six promises and the store's end. Seeds of the suites differ, so that runs do not meet."""
    for place, clauses in enumerate(SUITES.values()):
        await hold(clauses, open_store, seed * len(SUITES) + place)
