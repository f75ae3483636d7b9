"""Walk through a run's record once and tell everything in it that is not as a Shiftbook writes it.

Rows without a gap and in canonical form; the chain and each head that was stored; turns, calls, keys and
epochs; blobs there and whole, none without an entry; each inbox item at the entry that names it; each prompt
made again to its digest; the lease epoch. No agent code, model, tokenizer or price is needed. Memory holds
the open epoch, the open calls, and a name for each blob and each message that came through the inbox.

What the record holds never raises: it becomes a fault. Not found, since nothing in the record tells it: a
tail that was cut off whole commits at a time (that takes a seal kept outside), and whoever can write the
whole database may write another run. The catalogue and the snapshots are derived and are not looked at.
"""

from __future__ import annotations

from shiftbook import canonical
from shiftbook.codec import Row, genesis, link, open_row, payload_blob
from shiftbook.entries import FORMAT, Entry, PersonSaid, RuleSet
from shiftbook.errors import Damaged, NotCanonical
from shiftbook.journal.promises import InboxItem, Store
from shiftbook.payload import from_plain
from shiftbook.projections.blobs import blobs_of
from shiftbook.verify.conduct import Conduct
from shiftbook.verify.pages import blob_names, items_of, rows_of
from shiftbook.verify.prompts import Prompts
from shiftbook.verify.verdict import Fault, Findings, Verdict, named


async def verify(store: Store, run: str) -> Verdict:
    """Check the record of a run, whole.

    Raises `UnknownRun`, `NewerFormat` for a run that a newer Shiftbook wrote to, and `StoreError` when the
    database cannot be read at all. Whatever is wrong with the run itself is in the verdict.
    """
    walk = _Walk(store, run)
    await walk.list_blobs()
    async for piece in rows_of(store, run):
        if isinstance(piece, Fault):
            walk.skip(piece)
        else:
            await walk.take(piece)
    await walk.end()
    faults = walk.findings.faults()
    return Verdict(run, not faults, walk.entries, walk.prompts.count, 0, faults)


class _Walk:
    """What the walk knows after the rows taken so far."""

    def __init__(self, store: Store, run: str) -> None:
        self.store, self.run = store, run
        self.findings = Findings()
        self.entries = 0
        self.prompts = Prompts(store, run)
        self._conduct = Conduct(run)
        self._head: bytes | None = genesis(run)
        """The chain's head; None after a row that could not be read, until the next stored head."""
        self._headed = 0
        """Position of the last stored head."""
        self._position = 0
        self._unread = 0
        """Position of the first entry that could not be read, 0 while there is none."""
        self._unnamed: set[str] = set()
        self._blobs: set[str] = set()
        """Names that were looked up."""
        self._items: dict[str, tuple[int, str]] = {}

    async def list_blobs(self) -> None:
        """Note the blobs that are there before the rows are read: each must have its entry by then."""
        try:
            async for name in blob_names(self.store, self.run):
                self._unnamed.add(name)
        except Damaged as error:
            self.findings.add(0, str(error))

    def skip(self, fault: Fault) -> None:
        """Pass over a row that cannot be read."""
        self.findings.add(fault.position, fault.what)
        self._position, self._head = max(self._position, fault.position), None
        self._unread = self._unread or fault.position

    async def take(self, row: Row) -> None:
        """Check the next row and the entry in it."""
        self.entries += 1
        self._position = row.position
        self._chain(row)
        entry = await self._entry(row)
        if entry is None:
            self._unread = self._unread or row.position
            return
        for name in blobs_of(entry):
            if name not in self._blobs:
                await self._blob(row.position, name)
        if isinstance(entry.what, PersonSaid | RuleSet) and entry.what.item is not None:
            self._item(entry, entry.what.item)
        if self._unread:
            return  # What depends on an entry that is not there would only be told as a second fault.
        for what in self._conduct.take(entry):
            self.findings.add(row.position, what)
        for fault in await self.prompts.take(entry):
            self.findings.add(fault.position, fault.what)

    def _chain(self, row: Row) -> None:
        if row.version < 1:
            self.findings.add(row.position, f"It has format {row.version}; formats count from 1 to {FORMAT}.")
        head = None if self._head is None else link(self._head, row)
        if row.head is not None:
            if head is not None and row.head != head:
                first = self._headed + 1
                what = (
                    "this entry" if first == row.position else f"one of the entries {first} to {row.position}"
                )
                self.findings.add(row.position, f"The chain is broken: {what} is not what was written.")
            head, self._headed = row.head, row.position
        self._head = head

    async def _entry(self, row: Row) -> Entry | None:
        """The entry of a row; None when it cannot be read, which is told."""
        name = payload_blob(row)
        content = b""
        if name is not None:
            found = await self._blob(row.position, name)
            if found is None:
                return None
            content = found
            if row.payload != f'{{"$blob":"{name}","size":{len(content)}}}':
                self.findings.add(
                    row.position, "It names its payload's blob in a form that no release wrote."
                )
        try:
            return open_row(row, lambda _name: content)
        except Damaged as error:
            self.findings.add(row.position, str(error))
            return None

    async def _blob(self, position: int, name: str) -> bytes | None:
        """A blob's content; None when it is not there or not whole, which is told."""
        self._unnamed.discard(name)
        self._blobs.add(name)
        try:
            return await self.store.blobs.get(self.run, name)
        except Damaged as error:
            self.findings.add(position, str(error))
            return None

    def _item(self, entry: Entry, item: str) -> None:
        if item in self._items:
            what = f"It holds inbox item {named(item)}, which entry {self._items[item][0]} holds already."
            self.findings.add(entry.position, what)
        self._items[item] = (entry.position, entry.kind)

    async def end(self) -> None:
        """Check what can only be told at the end: the last head, the inbox, blobs left over, the lease."""
        if self._position == 0:
            self.findings.add(
                0, "The run holds no entry: its start, or its import, was cut off. Do it again."
            )
        elif self._headed != self._position and not self._unread:
            self.findings.add(self._position, "The last entry carries no chain head: the run's end is gone.")
        await self._inbox()
        for name in sorted(self._unnamed):
            if not self._unread:
                self.findings.add(0, f"Blob {named(name[:12])} is named by no entry.")
        try:
            lease = await self.store.leases.look(self.run)
        except Damaged as error:
            self.findings.add(0, str(error))
            return
        if lease.epoch < self._conduct.lease:
            what = f"The lease's epoch is {lease.epoch}, below the {self._conduct.lease} of its entries."
            self.findings.add(self._position, what)

    async def _inbox(self) -> None:
        moved, waiting = 0, ""
        async for item in items_of(self.store, self.run):
            if isinstance(item, Fault):
                self.findings.add(0, item.what)
                return
            if item.moved_to is None or item.moved_to > self._position:
                waiting = waiting or item.id
                self._waits(item)
                continue
            if item.moved_to <= moved or waiting:
                self.findings.add(
                    item.moved_to, f"Inbox item {named(item.id)} was moved in out of its order."
                )
            moved = max(moved, item.moved_to)
            if self._items.pop(item.id, None) != (item.moved_to, item.kind) and not self._unread:
                what = f"The inbox says that item {named(item.id)} was moved in here, but the entry does not."
                self.findings.add(item.moved_to, what)
        for name, (position, _kind) in self._items.items():
            self.findings.add(
                position, f"It holds inbox item {named(name)}, which the inbox does not know as moved."
            )

    def _waits(self, item: InboxItem) -> None:
        if item.moved_to is not None:
            return  # Moved while we were reading: the entry that holds it came after ours.
        try:
            plain = canonical.decode(item.payload)
            if not isinstance(plain, dict):
                raise TypeError("the payload is not an object")
            from_plain(item.kind, {str(key): value for key, value in plain.items()})
        except (NotCanonical, KeyError, TypeError, ValueError, AttributeError) as error:
            self.findings.add(0, f"Inbox item {named(item.id)} waits but cannot be read: {error}")
