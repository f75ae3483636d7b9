"""A run from one store into another, byte for byte, each run whole or not at all.

A run travels as its export does, with every check of an import, and what was written is read back. It keeps
its id, its salts, its chain and its lease epoch, so the same run in two stores can be told apart by nothing:
go on in one of them only. A run that is there already and equal costs two reads; one that has grown since is
carried on where the copy ended. So a copy that was cut off is simply started again.

While a run is copied its lease is held in both stores, and renewed: nobody appends to it, and a process that
believed to hold it is refused. A message that comes into the source's inbox after that run was copied stays
there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from shiftbook.codec import genesis, link
from shiftbook.errors import Damaged, RunExists, UnknownRun
from shiftbook.journal.promises import PAGE_ROWS, Commit, Head, InboxItem, Store
from shiftbook.transfer.export import export_run
from shiftbook.transfer.held import check_held, held
from shiftbook.transfer.reader import Reader, WholeRun
from shiftbook.transfer.write import write_whole

PAGE_RUNS = 200
"""Runs that are listed at once."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What became of a run: its entries in the source, and how many of them were written now."""

    run: str
    entries: int
    written: int


async def runs_of(store: Store) -> list[str]:
    """All runs of a store, the oldest first, so that a copy lists them in the same order."""
    runs: list[str] = []
    while page := await store.catalogue.runs(after=runs[-1] if runs else None, limit=PAGE_RUNS):
        runs += [row.run for row in page]
    return runs[::-1]


async def copy_run(source: Store, target: Store, run: str) -> Copied:
    """Make the target's run what the source's is.

    Raises `RunExists` when the target has a run of that id that is another one or has gone on by itself,
    `Held` when somebody holds the run in either store, `Fenced` when somebody took it in the middle,
    `Damaged` when the source's record is not whole; nothing was written then.
    """
    there = await _head(target, run)
    if there.position and await _is_equal(source, target, run, there):
        return Copied(run, there.position, 0)
    async with held(source, run) as lease:
        whole = await _read(export_run(source, run))
        if there.position:
            await _carry_on(target, whole, there, partial(check_held, source, lease))
        else:
            await write_whole(target, whole, partial(check_held, source, lease))
        await _compare(target, whole)
    return Copied(run, len(whole.rows), len(whole.rows) - there.position)


async def _read(lines: AsyncIterator[str]) -> WholeRun:
    reader = Reader()
    async for line in lines:
        reader.take(line)
    return reader.whole()


async def _head(store: Store, run: str) -> Head:
    try:
        return await store.entries.head(run)
    except UnknownRun:
        return Head(0, genesis(run))


async def _is_equal(source: Store, target: Store, run: str, there: Head) -> bool:
    if await source.entries.head(run) != there:
        return False
    return await _items(source, run) == await _items(target, run)


async def _items(store: Store, run: str) -> list[InboxItem]:
    items: list[InboxItem] = []
    while page := await store.inbox.items(run, items[-1].id if items else None):
        items += page
    return items


async def _carry_on(
    target: Store, whole: WholeRun, there: Head, check: Callable[[], Awaitable[None]]
) -> None:
    """Append what the source has more, in one commit, if what is there is the beginning of it."""
    head = genesis(whole.run)
    for row in whole.rows[: there.position]:
        head = link(head, row)
    mail = [replace(item, moved_to=None) for item in whole.items]
    mail_there = await _items(target, whole.run)
    known = [(item.id, item.kind, item.at_ms) for item in mail_there]
    if (
        head != there.head
        or len(whole.rows) < there.position
        or known != [(item.id, item.kind, item.at_ms) for item in mail[: len(known)]]
    ):
        raise RunExists(
            f"Run {whole.run} is in {target.name} already and has gone its own way there (entry "
            f"{there.position}); it was left as it is. Copy into another database, or go on in that one."
        )
    async with held(target, whole.run, above=whole.epoch - 1) as lease:
        for item in mail[len(known) :]:
            await target.inbox.put(whole.run, item)
        rows = whole.rows[there.position :]
        if rows:
            taken = {
                item.id: item.moved_to
                for item in whole.items
                if item.moved_to is not None and item.moved_to > there.position
            }
            commit = Commit(whole.run, there.position, lease.epoch, rows, whole.blobs, taken)
            await check()
            await target.entries.append(commit)


async def _compare(target: Store, whole: WholeRun) -> None:
    """Read back what was written; `Damaged` where it is not what was read."""
    read = 0
    while page := await target.entries.read(whole.run, read, PAGE_ROWS):
        if page != whole.rows[read : read + len(page)]:
            raise Damaged(
                f"Run {whole.run} was written to {target.name} and reads otherwise; verify tells more."
            )
        read += len(page)
    wanted = [item if item.moved_to is None else replace(item, payload="") for item in whole.items]
    names: set[str] = set()
    while more := await target.blobs.names(whole.run, max(names, default="")):
        names.update(more)
    if (
        read != len(whole.rows)
        or await _items(target, whole.run) != wanted
        or not names >= whole.blobs.keys()
    ):
        raise Damaged(
            f"Run {whole.run} was written to {target.name} and not all of it is there; verify tells more."
        )
