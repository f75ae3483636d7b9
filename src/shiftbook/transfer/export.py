"""A run to lines: read once, in order, nothing held but the names of its blobs."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace

from shiftbook import canonical
from shiftbook.codec import Row, genesis, link, open_row, payload_blob
from shiftbook.entries import Entry, RunOpened
from shiftbook.errors import BadInput, Damaged
from shiftbook.journal.promises import PAGE_ROWS, InboxItem, Store
from shiftbook.messages import Json
from shiftbook.projections.blobs import blobs_of
from shiftbook.transfer.lines import BLOB, END, EXPORT, HEADER, entry_line, item_line, item_payload


async def export_run(store: Store, run: str) -> AsyncIterator[str]:
    """The lines of a run's export, each with its newline; joined they are the file.

    A run that is being written to is exported up to where it stood at the call. Raises `UnknownRun`, and
    `Damaged` where the record is not whole: then the text has no end line, and no import takes it.
    """
    until = await store.entries.head(run)
    if until.position == 0:
        raise BadInput(f"Run {run} holds no entry: there is nothing to export.")
    lease = await store.leases.look(run)
    writer = _Writer()
    head, blobs = genesis(run), set[str]()
    async for row, entry, payload in _rows(store, run, 0, until.position):
        if row.position == 1:
            engine = entry.what.engine if isinstance(entry.what, RunOpened) else ""
            yield writer.line(HEADER, "export", EXPORT, run, engine, lease.epoch)
        for name in (*([] if payload is None else [payload]), *blobs_of(entry)):
            if name not in blobs:
                blobs.add(name)
                yield writer.line(BLOB, name, await store.blobs.get(run, name))
        head = link(head, row)
        if row.head is not None and row.head != head:
            raise Damaged(f"The chain of run {run} is broken at entry {row.position}; verify tells more.")
        yield writer.line(*entry_line(row))
    if head != until.head:
        raise Damaged(f"The chain of run {run} does not end in its stored head; verify tells more.")
    items = 0
    async for item in _items(store, run, until.position):
        items += 1
        yield writer.line(*item_line(item))
    yield writer.line(END, writer.digest, until.position, len(blobs), items, head.hex())


class _Writer:
    """Makes lines and keeps the digest over them."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    @property
    def digest(self) -> str:
        """Over the lines made so far, newlines included, in hex."""
        return self._digest.hexdigest()

    def line(self, names: tuple[str, ...], *values: Json) -> str:
        """A line of these fields."""
        line = canonical.encode(dict(zip(names, values, strict=True))) + "\n"
        self._digest.update(line.encode("utf-8"))
        return line


async def _rows(
    store: Store, run: str, after: int, until: int
) -> AsyncIterator[tuple[Row, Entry, str | None]]:
    """The rows up to `until`, each opened, with the name of the blob that holds its payload."""
    while after < until:
        rows = await store.entries.read(run, after, min(PAGE_ROWS, until - after))
        if not rows:
            raise Damaged(f"Entry {after + 1} of run {run} is missing; verify tells more.")
        for row in rows:
            name = payload_blob(row)
            content = {} if name is None else {name: await store.blobs.get(run, name)}
            yield row, open_row(row, content.__getitem__), name
        after = rows[-1].position


async def _items(store: Store, run: str, until: int) -> AsyncIterator[InboxItem]:
    """The inbox as it was when the run stood at `until`: what was moved since is waiting again."""
    after: str | None = None
    while items := await store.inbox.items(run, after):
        for item in items:
            if item.moved_to is not None and item.moved_to > until:
                async for _row, entry, _name in _rows(store, run, item.moved_to - 1, item.moved_to):
                    item = replace(item, payload=item_payload(entry), moved_to=None)
            yield item
        after = items[-1].id
