"""A whole run into a store, by the store's promises and in one commit."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from shiftbook.errors import RunExists
from shiftbook.journal.promises import Commit, InboxItem, Store
from shiftbook.transfer.held import held
from shiftbook.transfer.reader import Reader, WholeRun


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


async def _nothing() -> None:
    """Nothing is to be looked at before the commit."""


async def write_whole(store: Store, whole: WholeRun, check: Callable[[], Awaitable[None]] = _nothing) -> None:
    """Write a run that the store does not have, in one commit. Raises as `import_run` does.

    `check` is called right before the commit; what it raises, nothing is written for.
    """
    # The lease's epoch becomes the exporter's: no entry is above it, and the next holder's will be.
    try:
        async with held(store, whole.run, new=True, above=whole.epoch - 1) as lease:
            await _put_items(store, whole)
            taken = {item.id: item.moved_to for item in whole.items if item.moved_to is not None}
            await check()
            await store.entries.append(Commit(whole.run, 0, lease.epoch, whole.rows, whole.blobs, taken))
    except RunExists as fault:
        if isinstance(fault, _OtherMail):
            raise
        raise RunExists(
            f"Run {whole.run} is in this store already, and an import keeps a run's id: import it into "
            "another database."
        ) from None


class _OtherMail(RunExists):
    """The run was begun in this store and not written, and its inbox is another's."""


async def _put_items(store: Store, whole: WholeRun) -> None:
    """Put the items in as waiting; the commit that follows moves those that it holds."""
    wanted = [replace(item, moved_to=None) for item in whole.items]
    there: list[InboxItem] = []
    while page := await store.inbox.items(whole.run, there[-1].id if there else None):
        there += page
    if there != wanted[: len(there)]:
        raise _OtherMail(
            f"A run {whole.run} was begun in this store and has other mail in its inbox; import into another "
            "database."
        )
    for item in wanted[len(there) :]:
        await store.inbox.put(whole.run, item)
