"""The holder's hand on one run: stage entries, commit them, hold the lease.

What is staged is folded at once and committed before anything else happens outside: the loop never waits
for an effect while something that it knows is not in the database. A book of a run is held by one process
at a time; when the lease was taken over, the next commit is refused and the holder stops.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from shiftbook.clock import Clock
from shiftbook.codec import Draft, Redact, draft, open_row, payload_blob, seal
from shiftbook.entries import Entry, What
from shiftbook.errors import Fenced, InboxWaiting
from shiftbook.journal.promises import PAGE_ROWS, Commit, Lease, Snapshot, Store

OnEntry = Callable[[Entry], None]


@dataclass(slots=True)
class Book:
    """One run in the hands of its holder. Make one with `open_book`."""

    store: Store
    clock: Clock
    lease: Lease
    position: int
    head: bytes
    redact: Redact | None = None
    on_entry: OnEntry | None = None
    lost: threading.Event = field(default_factory=threading.Event)
    """Set when the lease is known to be lost: set by whoever renews it."""
    _drafts: list[Draft] = field(default_factory=list)
    _entries: list[Entry] = field(default_factory=list)
    """The staged entries, one for each draft, as they will be read back."""
    _blobs: dict[str, bytes] = field(default_factory=dict)
    _taken: dict[str, int] = field(default_factory=dict)

    @property
    def run(self) -> str:
        """The run's id."""
        return self.lease.run

    @property
    def staged(self) -> int:
        """Entries that are known here and not committed yet."""
        return len(self._drafts)

    def stage(
        self, what: What, *, blobs: Mapping[str, bytes] | None = None, taken: str | None = None
    ) -> Entry:
        """Add an entry to the next commit; returns it as it will be read back. `taken`: its inbox item."""
        item = draft(what, self.redact)
        self._drafts.append(item)
        if blobs:
            self._blobs.update(blobs)
        position = self.position + len(self._drafts)
        if taken is not None:
            self._taken[taken] = position
        entry = Entry(position, self.clock.now_ms(), self.lease.epoch, item.what, item.redacted)
        self._entries.append(entry)
        return entry

    def unstage(self, count: int) -> None:
        """Take the last `count` staged entries back: they were refused and never happened."""
        if count:
            del self._drafts[-count:]
            del self._entries[-count:]

    async def commit(self, *, if_no_mail: bool = False, snapshot: Snapshot | None = None) -> None:
        """Write what is staged, durably, or nothing of it.

        After `InboxWaiting` everything is still staged. After any other refusal this book is of no use any
        more: the run has another holder.
        """
        if not self._drafts:
            return
        if self.lost.is_set():
            raise Fenced(self.run, self.lease.epoch, self.lease.epoch + 1)
        entries = self._entries
        sealed = seal(
            self._drafts,
            after=self.position,
            head=self.head,
            at_ms=[entry.at_ms for entry in entries],
            epoch=self.lease.epoch,
            token=self.clock.token,
        )
        await self.store.entries.append(
            Commit(
                run=self.run,
                expected=self.position,
                epoch=self.lease.epoch,
                rows=sealed.rows,
                blobs={**self._blobs, **sealed.blobs},
                taken=dict(self._taken),
                if_no_mail=if_no_mail,
                snapshot=snapshot,
            )
        )
        self.position, self.head = entries[-1].position, sealed.head
        self._drafts, self._entries, self._blobs, self._taken = [], [], {}, {}
        if self.on_entry is not None:
            for entry in entries:
                self.on_entry(entry)

    async def check_lease(self) -> None:
        """Raise `Fenced` when the lease was taken over; for what costs something and follows no commit."""
        current = (await self.store.leases.look(self.run)).epoch
        if current != self.lease.epoch:
            raise Fenced(self.run, self.lease.epoch, current)

    async def commit_unless_mail(
        self, whats: Sequence[What], *, snapshot: Snapshot | None = None
    ) -> list[Entry] | None:
        """Commit what is staged and `whats` behind it, if no inbox item waits.

        If one does, what was staged is committed alone, `whats` never happened, and None is returned.
        """
        entries = [self.stage(what) for what in whats]
        try:
            await self.commit(if_no_mail=True, snapshot=snapshot)
        except InboxWaiting:
            self.unstage(len(entries))
            await self.commit()
            return None
        return entries


async def read_entries(store: Store, run: str, after: int = 0, until: int | None = None) -> list[Entry]:
    """The entries after position `after` up to `until` (the end when None), payload blobs fetched."""
    entries: list[Entry] = []
    while until is None or after < until:
        limit = PAGE_ROWS if until is None else min(PAGE_ROWS, until - after)
        rows = await store.entries.read(run, after, limit)
        for row in rows:
            name = payload_blob(row)
            if name is None:
                entries.append(open_row(row))
            else:
                content = {name: await store.blobs.get(run, name)}
                entries.append(open_row(row, content.__getitem__))
        if len(rows) < limit:
            break
        after = rows[-1].position
    return entries
