"""Entries as plain rows, a page at a time: what `show --json` and `tail --json` print."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from shiftbook.codec import Row, open_row, payload_blob
from shiftbook.entries import Entry
from shiftbook.journal.promises import PAGE_ROWS, Store
from shiftbook.messages import Json
from shiftbook.payload import to_plain

_1970 = datetime(1970, 1, 1, tzinfo=UTC)


async def entries_of(
    store: Store, run: str, after: int = 0, until: int | None = None
) -> AsyncIterator[Entry]:
    """The entries after position `after` up to `until` (the end as it is now when None), in order.

    Raises `UnknownRun`; `Damaged` and `NewerFormat` at the first entry that cannot be read.
    """
    while until is None or after < until:
        limit = PAGE_ROWS if until is None else min(PAGE_ROWS, until - after)
        rows = await store.entries.read(run, after, limit)
        for row in rows:
            yield await opened(store, run, row)
        if len(rows) < limit:
            return
        after = rows[-1].position


async def follow_entries(store: Store, run: str, after: int = 0) -> AsyncIterator[Entry]:
    """The entries after `after` as they are committed by whatever process, for ever."""
    async for rows in store.entries.follow(run, after):
        for row in rows:
            yield await opened(store, run, row)


async def opened(store: Store, run: str, row: Row) -> Entry:
    """A row as an entry, its payload fetched from its blob where it lies in one."""
    name = payload_blob(row)
    content = {} if name is None else {name: await store.blobs.get(run, name)}
    return open_row(row, content.__getitem__)


async def show_rows(
    store: Store, run: str, after: int = 0, until: int | None = None
) -> AsyncIterator[dict[str, Json]]:
    """The entries as plain rows: `position, at, kind, lease`, then what the kind holds."""
    async for entry in entries_of(store, run, after, until):
        yield show_row(entry)


def show_row(entry: Entry) -> dict[str, Json]:
    """An entry as a plain row; what has its default is left out, as in the journal.

    `at` is ISO 8601 in UTC, `lease` the lease epoch. Values may be of any canonical type: print rows with
    `canonical.encode`, which also escapes every control character.
    """
    row: dict[str, Json] = {"position": entry.position, "at": stamp(entry.at_ms), "kind": entry.kind}
    row |= {"lease": entry.epoch, **to_plain(entry.what)}
    return row | {"redacted": dict(entry.redacted)} if entry.redacted else row


def stamp(at_ms: int) -> str:
    """A stamp as ISO 8601 in UTC to the millisecond; the bare number where no calendar reaches."""
    try:
        return (_1970 + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds")[:-6] + "Z"
    except OverflowError:
        return str(at_ms)
