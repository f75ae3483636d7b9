"""The inbox in SQLite: outsiders add at the end, a commit of the holder moves items out, each once.

An item's row stays for ever, without its payload, so that the same id cannot come in twice. A run's items
have the places 1, 2, 3 ... and are counted beside its lease; a checksum over run, place and row tells a
flipped byte when it is read, and the count an item that is not where it was put.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from shiftbook.errors import BadInput, Damaged, Refused
from shiftbook.journal.admission import check_item
from shiftbook.journal.checksums import item_checksum
from shiftbook.journal.promises import PAGE_ROWS, InboxItem
from shiftbook.journal.sqlite_commits import Commits
from shiftbook.journal.sqlite_database import Database
from shiftbook.journal.sqlite_leases import look_whole, next_place
from shiftbook.journal.sqlite_reader import Reader

_SHAPES = frozenset(
    {
        (int, str, str, int, str, type(None), bytes),
        (int, str, str, int, str, int, bytes),
    }
)
_COLUMNS = "place, id, kind, at_ms, payload, moved_to, checksum"


class SqliteInbox:
    """Keeps the promise `Inbox`."""

    def __init__(self, reader: Reader, commits: Commits) -> None:
        self._reader = reader
        self._commits = commits

    async def put(self, run: str, item: InboxItem) -> bool:
        return await self._commits.write(partial(put, run=run, item=item))

    async def waiting(self, run: str, limit: int = PAGE_ROWS) -> list[InboxItem]:
        return self._reader.read(partial(read_waiting, run=run, limit=limit))

    async def items(self, run: str, after: str | None = None, limit: int = PAGE_ROWS) -> list[InboxItem]:
        return self._reader.read(partial(read_items, run=run, after=after, limit=limit))


def put(database: Database, run: str, item: InboxItem) -> bool:
    """Add an item at the end, unless its id was there before."""
    check_item(item)
    with database.transaction():
        number = database.number(run)
        if database.rows("SELECT 1 FROM inbox WHERE run = ? AND id = ?", (number, item.id)):
            return False
        place = next_place(database, run)
        database.run(
            f"INSERT INTO inbox (run, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
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


def move(database: Database, number: int, run: str, taken: Mapping[str, int]) -> None:
    """Mark items as moved into the entries at the positions given; `Refused` when one does not wait."""
    for name, position in taken.items():
        found = database.rows(f"SELECT {_COLUMNS} FROM inbox WHERE run = ? AND id = ?", (number, name))
        if not found:
            raise Refused(f"Inbox item {name} was never put in for run {run}; nothing was written.")
        item = _item(found[0], run)
        if item.moved_to is not None:
            raise Refused(
                f"Inbox item {name} of run {run} is in entry {item.moved_to} already; nothing was written."
            )
        moved = InboxItem(item.id, item.kind, item.at_ms, "", position)
        database.run(
            "UPDATE inbox SET payload = '', moved_to = ?, checksum = ? WHERE run = ? AND id = ?",
            (position, item_checksum(run, found[0][0], moved), number, name),
        )


def read_waiting(database: Database, run: str, limit: int) -> list[InboxItem]:
    """A page of the items that wait, oldest first."""
    found = database.rows(
        f"SELECT {_COLUMNS} FROM inbox WHERE run = ? AND moved_to IS NULL ORDER BY place LIMIT ?",
        (database.number(run), max(limit, 0)),
    )
    return [_item(columns, run) for columns in found]


def read_items(database: Database, run: str, after: str | None, limit: int) -> list[InboxItem]:
    """A page of all items, oldest first."""
    number, put_in = database.number(run), look_whole(database, run)[1]
    start = 0
    if after is not None:
        place = database.rows("SELECT place FROM inbox WHERE run = ? AND id = ?", (number, after))
        if not place:
            raise BadInput(f"Run {run} has no inbox item {after}.")
        start = place[0][0]
    found = database.rows(
        f"SELECT {_COLUMNS} FROM inbox WHERE run = ? AND place > ? ORDER BY place LIMIT ?",
        (number, start, max(limit, 0)),
    )
    items = [_item(columns, run) for columns in found]
    for wanted, columns in enumerate(found, start=start + 1):
        if columns[0] != wanted:
            raise Damaged(f"Inbox item number {wanted} of run {run} is missing.")
    if len(found) < limit and start + len(found) < put_in:
        raise Damaged(
            f"Inbox item number {start + len(found) + 1} of run {run} is missing: {put_in} were put in."
        )
    return items


def _item(columns: tuple[Any, ...], run: str) -> InboxItem:
    place, *fields, checksum = columns
    item = InboxItem(*fields)
    if (*map(type, columns),) not in _SHAPES or item_checksum(run, place, item) != checksum:
        raise Damaged(f"Inbox item {item.id!r:.40} of run {run} is damaged: its row is not what was written.")
    return item
