"""What the child processes of these tests do: `python -m tests.journal.children VERB ARGUMENTS`.

Verbs print what they did, one line a fact, and fail loudly: a lock error in a child is an exit code.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Literal, cast

from shiftbook.clock import SystemClock, this_process
from shiftbook.errors import Held, RunExists, UnknownRun
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import InboxItem, Lease, Store
from shiftbook.testing.ground import Writer, said

LEASE_MS = 60_000
NOBODY = 65534


async def opened(path: str, commits: str = "in-loop") -> Store:
    return await open_store(path, commits=cast(Literal["in-loop", "writer"], commits))


async def own(path: str, run: str, count: str) -> None:
    """Append to a run of one's own."""
    store = await opened(path)
    writer = Writer(store, await store.leases.take(run, this_process(), LEASE_MS, new=True), SystemClock())
    for number in range(int(count)):
        await writer.append(said(f"{run} {number}"))
    await store.close()


async def _shared_lease(store: Store, run: str) -> Lease:
    clock = SystemClock()
    while True:
        for new in (False, True):
            try:
                return await store.leases.take(run, this_process(), LEASE_MS, new=new)
            except (Held, RunExists, UnknownRun):
                await clock.sleep_ms(1)


async def shared(path: str, run: str, name: str, count: str) -> None:
    """Take the one run, append, give it back; again and again, against everybody else."""
    store = await opened(path)
    for number in range(int(count)):
        lease = await _shared_lease(store, run)
        position = (await store.entries.head(run)).position
        await Writer(store, lease, SystemClock(), position).append(said(f"{name} {number}"))
        await store.leases.give_back(lease)
    await store.close()


async def endless(path: str, commits: str, runs: str) -> None:
    """Append commits of three rows to several runs for ever, printing each that is acknowledged."""
    store = await opened(path, commits)
    clock = SystemClock()

    async def one(run: str) -> None:
        writer = Writer(store, await store.leases.take(run, this_process(), LEASE_MS, new=True), clock)
        while True:
            await writer.append(said("a"), said("b"), said("c"))
            print(run, writer.position, flush=True)
            await asyncio.sleep(0)

    await asyncio.gather(*(one(f"run{number}") for number in range(int(runs))))


async def continued(path: str, run: str, count: str) -> None:
    """Append to a run that is there."""
    store = await opened(path)
    lease = await store.leases.take(run, this_process(), LEASE_MS)
    writer = Writer(store, lease, SystemClock(), (await store.entries.head(run)).position)
    for number in range(int(count)):
        await writer.append(said(f"from the child {number}"))
    await store.leases.give_back(lease)
    await store.close()


async def mail(path: str, run: str, name: str, count: str) -> None:
    """Put messages into a run's inbox, each twice."""
    store = await opened(path)
    for number in range(int(count)):
        item = InboxItem(f"{name}-{number}", "PersonSaid", number, '{"content":"x"}')
        print(await store.inbox.put(run, item), await store.inbox.put(run, item))
    await store.close()


async def unwritable(path: str) -> None:
    """Give up the powers of root, try to open a database, print what is said."""
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        await opened(path)
    except Exception as error:  # noqa: BLE001 - the test looks at what it is
        print(type(error).__name__, error, sep="\n")


VERBS = {verb.__name__: verb for verb in (own, shared, endless, continued, mail, unwritable)}

if __name__ == "__main__":
    asyncio.run(VERBS[sys.argv[1]](*sys.argv[2:]))
