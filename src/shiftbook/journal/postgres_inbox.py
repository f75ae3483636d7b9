"""The inbox in PostgreSQL: outsiders add at the end, a commit of the holder moves items out, each once.

An item's row stays for ever, without its payload, so that the same id cannot come in twice. A run's items
have the places 1, 2, 3 ... and are counted beside its lease, whose lock orders those who put in.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from shiftbook.errors import BadInput, Damaged, Refused
from shiftbook.journal.admission import check_item
from shiftbook.journal.checksums import item_checksum
from shiftbook.journal.postgres_connections import Connections
from shiftbook.journal.postgres_database import Database
from shiftbook.journal.postgres_leases import count_mail, look_whole
from shiftbook.journal.postgres_news import News
from shiftbook.journal.promises import PAGE_ROWS, InboxItem

_COLUMNS = "place, id, kind, at_ms, payload, moved_to, checksum"


class PostgresInbox:
    """Keeps the promise `Inbox`."""

    def __init__(self, connections: Connections, news: News) -> None:
        self._connections = connections
        self._news = news

    async def put(self, run: str, item: InboxItem) -> bool:
        is_put = await self._connections.run(
            partial(put, run=run, item=item), again=partial(put_again, run=run, item=item)
        )
        if is_put:
            self._news.announce(run)
        return is_put

    async def waiting(self, run: str, limit: int = PAGE_ROWS) -> list[InboxItem]:
        return await self._connections.run(partial(read_waiting, run=run, limit=limit))

    async def items(self, run: str, after: str | None = None, limit: int = PAGE_ROWS) -> list[InboxItem]:
        return await self._connections.run(partial(read_items, run=run, after=after, limit=limit))


async def put(database: Database, run: str, item: InboxItem) -> bool:
    """Add an item at the end, unless its id was there before."""
    check_item(item)
    async with database.transaction():
        return await put_in(database, run, item)


async def put_in(database: Database, run: str, item: InboxItem) -> bool:
    """The same, within a transaction that the caller has begun and ends."""
    number, lease, mail = await look_whole(database, run, lock=True)
    if await database.rows("SELECT 1 FROM shiftbook.inbox WHERE run = %s AND id = %s", (number, item.id)):
        return False
    place = await count_mail(database, number, lease, mail)
    await database.run(
        f"INSERT INTO shiftbook.inbox (run, {_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        (
            number,
            place,
            item.id,
            item.kind,
            item.at_ms,
            item.payload,
            item.moved_to,
            item_checksum(run, place, item),
        ),
    )
    return True


async def put_again(database: Database, run: str, item: InboxItem) -> bool:
    """Put in an item of which it is not known whether it is in already: now it is."""
    await put(database, run, item)
    return True


async def move(database: Database, number: int, run: str, taken: Mapping[str, int]) -> None:
    """Mark items as moved into the entries at the positions given; `Refused` when one does not wait."""
    if not taken:
        return
    rows = await database.rows(
        f"SELECT {_COLUMNS} FROM shiftbook.inbox WHERE run = %s AND id = ANY (%s)", (number, [*taken])
    )
    found = {columns[1]: columns for columns in rows}
    for name, position in taken.items():
        if name not in found:
            raise Refused(f"Inbox item {name} was never put in for run {run}; nothing was written.")
        item = _item(found[name], run)
        if item.moved_to is not None:
            raise Refused(
                f"Inbox item {name} of run {run} is in entry {item.moved_to} already; nothing was written."
            )
        moved = InboxItem(item.id, item.kind, item.at_ms, "", position)
        await database.run(
            "UPDATE shiftbook.inbox SET payload = '', moved_to = %s, checksum = %s "
            "WHERE run = %s AND id = %s",
            (position, item_checksum(run, found[name][0], moved), number, name),
        )


async def read_waiting(database: Database, run: str, limit: int) -> list[InboxItem]:
    """A page of the items that wait, oldest first."""
    found = await database.rows(
        f"SELECT {_COLUMNS} FROM shiftbook.inbox WHERE run = %s AND moved_to IS NULL ORDER BY place LIMIT %s",
        (await database.number(run), max(limit, 0)),
    )
    return [_item(columns, run) for columns in found]


async def read_items(database: Database, run: str, after: str | None, limit: int) -> list[InboxItem]:
    """A page of all items, oldest first."""
    number, _, counted = await look_whole(database, run)
    start = 0
    if after is not None:
        place = await database.rows(
            "SELECT place FROM shiftbook.inbox WHERE run = %s AND id = %s", (number, after)
        )
        if not place:
            raise BadInput(f"Run {run} has no inbox item {after}.")
        start = place[0][0]
    found = await database.rows(
        f"SELECT {_COLUMNS} FROM shiftbook.inbox WHERE run = %s AND place > %s ORDER BY place LIMIT %s",
        (number, start, max(limit, 0)),
    )
    items = [_item(columns, run) for columns in found]
    for wanted, columns in enumerate(found, start=start + 1):
        if columns[0] != wanted:
            raise Damaged(f"Inbox item number {wanted} of run {run} is missing.")
    if len(found) < limit and start + len(found) < counted:
        raise Damaged(
            f"Inbox item number {start + len(found) + 1} of run {run} is missing: {counted} were put in."
        )
    return items


def _item(columns: tuple[Any, ...], run: str) -> InboxItem:
    place, *fields, checksum = columns
    item = InboxItem(*fields)
    if item_checksum(run, place, item) != checksum:
        raise Damaged(f"Inbox item {item.id!r:.40} of run {run} is damaged: its row is not what was written.")
    return item
