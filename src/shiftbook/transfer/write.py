"""A whole run into a store, by the store's promises and in one commit."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass, replace

from shiftbook.clock import this_process
from shiftbook.errors import RunExists
from shiftbook.journal.promises import Commit, InboxItem, Store
from shiftbook.transfer.reader import Reader, WholeRun

LEASE_MS = 60_000
"""How long an import that dies on another machine keeps the run's id from others."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import wrote."""

    run: str
    entries: int
    blobs: int
    inbox: int


async def import_run(store: Store, lines: Iterable[str] | AsyncIterable[str]) -> Imported:
    """Write the run that an export holds into this store, whole or not at all; its lease is free then.

    Raises `BadInput` with the number of the first line that no export wrote, `NewerFormat` for a newer
    export or entry, `RunExists` when the store has a run of that id (a run keeps its id: its keys and its
    chain are made from it), `Held` while another process begins one. Nothing is written in these cases.
    """
    reader = Reader()
    if isinstance(lines, AsyncIterable):
        async for line in lines:
            reader.take(line)
    else:
        for line in lines:
            reader.take(line)
    whole = reader.whole()
    await write_whole(store, whole)
    return Imported(whole.run, len(whole.rows), len(whole.blobs), len(whole.items))


async def write_whole(store: Store, whole: WholeRun) -> None:
    """Write a run that the store does not have, in one commit. Raises as `import_run` does."""
    # The lease's epoch becomes the exporter's: no entry is above it, and the next holder's will be.
    try:
        lease = await store.leases.take(whole.run, this_process(), LEASE_MS, new=True, above=whole.epoch - 1)
    except RunExists:
        raise RunExists(
            f"Run {whole.run} is in this store already, and an import keeps a run's id: import it into "
            "another database."
        ) from None
    try:
        await _put_items(store, whole)
        taken = {item.id: item.moved_to for item in whole.items if item.moved_to is not None}
        await store.entries.append(Commit(whole.run, 0, lease.epoch, whole.rows, whole.blobs, taken))
    finally:
        await store.leases.give_back(lease)


async def _put_items(store: Store, whole: WholeRun) -> None:
    """Put the items in as waiting; the commit that follows moves those that it holds."""
    wanted = [replace(item, moved_to=None) for item in whole.items]
    there: list[InboxItem] = []
    while page := await store.inbox.items(whole.run, there[-1].id if there else None):
        there += page
    if there != wanted[: len(there)]:
        raise RunExists(
            f"A run {whole.run} was begun in this store and has other mail in its inbox; import into another "
            "database."
        )
    for item in wanted[len(there) :]:
        await store.inbox.put(whole.run, item)
