"""Reading a record that may be broken: what can be read of it, and where it cannot be.

A store refuses a page that holds one bad row. Here the page is halved until the bad row stands alone, is told
as a fault and passed over, so that one bad byte does not hide the rest of the run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from shiftbook.codec import Row
from shiftbook.errors import Damaged
from shiftbook.journal.promises import PAGE_ROWS, InboxItem, Store
from shiftbook.verify.verdict import Fault

UNREADABLE_MAX = 20
"""Rows in a row that cannot be read before the rest is given up: a gap may be four thousand million wide."""


async def rows_of(store: Store, run: str) -> AsyncIterator[Row | Fault]:
    """The run's rows in order; in place of each one that cannot be read, a fault."""
    after, limit, unreadable = 0, PAGE_ROWS, 0
    while True:
        try:
            rows = await store.entries.read(run, after, limit)
        except Damaged as error:
            if limit > 1:
                limit //= 2
                continue
            after, unreadable = after + 1, unreadable + 1
            yield Fault(after, str(error))
            if unreadable == UNREADABLE_MAX:
                yield Fault(after, "The entries after this one cannot be reached.")
                return
            continue
        for row in rows:
            yield row
        if not rows:
            return
        after, limit, unreadable = rows[-1].position, min(limit * 2, PAGE_ROWS), 0


async def items_of(store: Store, run: str) -> AsyncIterator[InboxItem | Fault]:
    """All inbox items in the order in which they came; a fault where they cannot be read any further."""
    after: str | None = None
    limit = PAGE_ROWS
    while True:
        try:
            items = await store.inbox.items(run, after, limit)
        except Damaged as error:
            if limit > 1:
                limit //= 2
                continue
            yield Fault(0, f"{error} Items after it were not checked.")
            return
        for item in items:
            yield item
        if not items:
            return
        after, limit = items[-1].id, min(limit * 2, PAGE_ROWS)


async def blob_names(store: Store, run: str) -> AsyncIterator[str]:
    """The names of all blobs of the run."""
    after = ""
    while names := await store.blobs.names(run, after):
        for name in names:
            yield name
        after = names[-1]
