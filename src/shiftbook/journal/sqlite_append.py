"""One commit into the book: guarded by position and lease epoch, whole or not at all.

A plain commit - rows, and a run that stays where it stands - is one guarded INSERT .. SELECT, which is its
own transaction. Whatever else a commit carries (blobs, inbox items that moved, a snapshot, a change in the
catalogue) makes it a transaction with the same guard read first. Both refuse before they write anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache

import apsw

from shiftbook import canonical
from shiftbook.codec import Row, blob_hash, payload_blob
from shiftbook.entries import KIND_NUMBERS
from shiftbook.errors import BadInput, Conflict, Fenced, InboxWaiting, NotCanonical, Refused
from shiftbook.journal.promises import Commit, Snapshot
from shiftbook.journal.sqlite_catalogue import read_standing, write_standing
from shiftbook.journal.sqlite_database import Database
from shiftbook.journal.sqlite_inbox import move
from shiftbook.projections import standing

POSITION_BITS = 32
POSITION_MAX = (1 << POSITION_BITS) - 1
"""The last position that a run can have: the id of an entry keeps 32 bits for it."""

PLAIN_ROWS_MAX = 16
"""Rows of a commit that go into one statement; more of them are written one by one in a transaction."""

_INSERT = "INSERT INTO entries (id, kind, version, at_ms, epoch, salt, payload, head) "
_ROW = "(?, ?, ?, ?, ?, ?, ?, ?)"
_LAST = "(SELECT id FROM entries WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1)"
_GUARD = f"EXISTS (SELECT 1 FROM leases WHERE number = ? AND run = ? AND epoch = ?) AND {_LAST} IS ?"
_NO_MAIL = " AND NOT EXISTS (SELECT 1 FROM inbox WHERE run = ? AND moved_to IS NULL)"


def span(number: int) -> tuple[int, int]:
    """The ids that the entries of a run can have, lowest and highest."""
    base = number << POSITION_BITS
    return base + 1, base | POSITION_MAX


def append(database: Database, commit: Commit) -> None:
    """Write a commit or raise why not. A job for `Commits.write`."""
    _check(commit)
    number = database.number(commit.run)
    known = database.standings.get(number)
    is_plain = (
        known is not None
        and known[0] == commit.expected
        and len(commit.rows) <= PLAIN_ROWS_MAX
        and not (commit.blobs or commit.taken or commit.snapshot)
        and standing.is_unmoved(known[1], {row.kind for row in commit.rows})
    )
    if known is not None and is_plain:
        _append_plain(database, number, commit)
        database.learn(number, commit.rows[-1].position, known[1])
    else:
        _append_whole(database, number, commit)


def _check(commit: Commit) -> None:
    """Refuse a commit that no correct writer makes, before anything looks at the database."""
    rows = commit.rows
    if not rows or rows[-1].head is None:
        raise BadInput("A commit needs at least one row, and the chain's head on its last.")
    if commit.expected < 0 or commit.expected + len(rows) > POSITION_MAX:
        raise BadInput(f"Run {commit.run} is at its last possible entry; start a new run.")
    for position, row in enumerate(rows, start=commit.expected + 1):
        if row.position != position or row.epoch > commit.epoch or row.kind not in KIND_NUMBERS:
            raise BadInput(
                f"Row {row.position} ({row.kind}) of a commit to run {commit.run} does not belong at entry "
                f"{position} under lease epoch {commit.epoch}."
            )


def _append_plain(database: Database, number: int, commit: Commit) -> None:
    base = number << POSITION_BITS
    bindings: list[apsw.SQLiteValue] = []
    for row in commit.rows:
        bindings += _columns(base, row)
    bindings += (number, commit.run, commit.epoch, *span(number), (base + commit.expected) or None)
    if not commit.expected:
        bindings[-1] = None
    if commit.if_no_mail:
        bindings.append(number)
    if not database.run(_plain_statement(len(commit.rows), commit.if_no_mail), tuple(bindings)):
        _refuse(database, number, commit)


@lru_cache(maxsize=2 * PLAIN_ROWS_MAX)
def _plain_statement(count: int, if_no_mail: bool) -> str:
    values = f"SELECT {_ROW[1:-1]}" if count == 1 else f"SELECT * FROM (VALUES {', '.join([_ROW] * count)})"
    return f"{_INSERT}{values} WHERE {_GUARD}{_NO_MAIL if if_no_mail else ''}"


def _columns(base: int, row: Row) -> tuple[apsw.SQLiteValue, ...]:
    return (
        base + row.position,
        KIND_NUMBERS[row.kind],
        row.version,
        row.at_ms,
        row.epoch,
        row.salt,
        row.payload,
        row.head,
    )


def _append_whole(database: Database, number: int, commit: Commit) -> None:
    for name, content in commit.blobs.items():
        if blob_hash(content) != name:
            raise BadInput(f"A blob of run {commit.run} was handed in under a name that is not its hash.")
    holders = {item: _holder(item, commit) for item in commit.taken}
    with database.transaction():
        refusal = _refusal(database, number, commit)
        if refusal is not None:
            raise refusal
        before = read_standing(database, number) if commit.expected else None
        now = before
        for row in commit.rows:
            now = standing.after(now, row, _blob_reader(commit.blobs))
        move(database, number, commit.run, holders)
        base = number << POSITION_BITS
        database.connection.executemany(
            f"{_INSERT}VALUES {_ROW}", [_columns(base, row) for row in commit.rows]
        )
        for name, content in commit.blobs.items():
            database.run(
                "INSERT OR IGNORE INTO blobs (run, name, content) VALUES (?, ?, ?)", (number, name, content)
            )
        if now is not None and now != before:
            write_standing(database, number, now)
        if commit.snapshot is not None:
            save(database, number, commit.snapshot)
    if now is not None:
        database.learn(number, commit.rows[-1].position, now)


def _blob_reader(blobs: Mapping[str, bytes]) -> Callable[[str], bytes]:
    def read(name: str) -> bytes:
        if name not in blobs:
            raise BadInput(f"A row names blob {name[:12]}, which its commit does not carry.")
        return blobs[name]

    return read


def _holder(item: str, commit: Commit) -> int:
    """The position of the row that names an inbox item as the one it came in."""
    for row in commit.rows:
        name = payload_blob(row)
        text = row.payload if name is None else commit.blobs.get(name, b"").decode("utf-8", "replace")
        if '"item":' not in text:
            continue
        try:
            plain = canonical.decode(text)
        except NotCanonical:
            continue
        if isinstance(plain, dict) and plain.get("item") == item:
            return row.position
    raise BadInput(f"A commit to run {commit.run} takes inbox item {item}, but no row of it names that item.")


def _refusal(database: Database, number: int, commit: Commit) -> Refused | None:
    """Why the guard does not let this commit in, None when it does."""
    ((epoch,),) = database.rows("SELECT epoch FROM leases WHERE number = ?", (number,))
    if epoch != commit.epoch:
        return Fenced(commit.run, commit.epoch, epoch)
    ((last,),) = database.rows(f"SELECT {_LAST}", span(number))
    found = 0 if last is None else last & POSITION_MAX
    if found != commit.expected:
        return Conflict(commit.run, commit.expected, found)
    if commit.if_no_mail:
        waiting = database.rows(
            "SELECT id FROM inbox WHERE run = ? AND moved_to IS NULL ORDER BY number LIMIT ?",
            (number, len(commit.taken) + 1),
        )
        if any(item not in commit.taken for (item,) in waiting):
            return InboxWaiting(f"A message waits in the inbox of run {commit.run}; take it in first.")
    return None


def _refuse(database: Database, number: int, commit: Commit) -> None:
    # Positions and epochs only grow, so whatever refused the statement still shows.
    raise _refusal(database, number, commit) or Conflict(commit.run, commit.expected, commit.expected)


def save(database: Database, number: int, snapshot: Snapshot) -> None:
    """Keep a snapshot in place of the one of its name."""
    database.run(
        "INSERT OR REPLACE INTO snapshots (run, name, version, position, content, checksum) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (number, snapshot.name, snapshot.version, snapshot.position, snapshot.text, snapshot_checksum(snapshot)),
    )


def snapshot_checksum(snapshot: Snapshot) -> bytes:
    """What tells a snapshot that was damaged, so that it is dropped instead of believed."""
    label = f"{snapshot.name}\n{snapshot.version}\n{snapshot.position}\n{snapshot.text}"
    return hashlib.sha256(label.encode("utf-8")).digest()
