"""One commit into the book: guarded by position and lease epoch, whole or not at all.

A plain commit - rows, and a run that stays where it stands - is one guarded INSERT .. SELECT, which is its
own transaction. Whatever else a commit carries (blobs, inbox items that moved, a snapshot, a change in the
catalogue) makes it a transaction with the same guard read first. Both refuse before they write anything.
"""

from __future__ import annotations

from functools import lru_cache

import apsw

from shiftbook.errors import Conflict, Fenced, InboxWaiting, Refused
from shiftbook.journal.admission import POSITION_MAX, check_blobs, check_commit
from shiftbook.journal.promises import Commit
from shiftbook.journal.sqlite_blobs import read_blob, write_blob
from shiftbook.journal.sqlite_cache import write_snapshot
from shiftbook.journal.sqlite_catalogue import read_standing, write_standing
from shiftbook.journal.sqlite_database import Database
from shiftbook.journal.sqlite_inbox import move
from shiftbook.journal.sqlite_rows import COLUMNS, POSITION_BITS, columns_of, span
from shiftbook.projections import standing

PLAIN_ROWS_MAX = 16
"""Rows of a commit that go into one statement; more of them are written one by one in a transaction."""

_INSERT = f"INSERT INTO entries ({COLUMNS}) "
_ROW = "(?, ?, ?, ?, ?, ?, ?, ?)"
# As scalar subqueries, which SQLite runs once a statement: written with EXISTS and ORDER BY the same guard
# costs 2.3 to 3.7 times the CPU of the whole commit.
_LAST = "(SELECT max(id) FROM entries WHERE id BETWEEN ? AND ?)"
_GUARD = f"(SELECT epoch FROM leases WHERE number = ? AND run = ?) = ? AND {_LAST} IS ?"
_NO_MAIL = " AND NOT EXISTS (SELECT 1 FROM inbox WHERE run = ? AND moved_to IS NULL)"


def append(database: Database, commit: Commit) -> None:
    """Write a commit or raise why not. A job for `Commits.write`."""
    check_commit(commit)
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


def _append_plain(database: Database, number: int, commit: Commit) -> None:
    base = number << POSITION_BITS
    expected = base + commit.expected if commit.expected else None
    bindings: list[apsw.SQLiteValue] = []
    for row in commit.rows:
        bindings += columns_of(base, row)
    bindings += (number, commit.run, commit.epoch, *span(number), expected)
    if commit.if_no_mail:
        bindings.append(number)
    if not database.run(_plain_statement(len(commit.rows), commit.if_no_mail), tuple(bindings)):
        _refuse(database, number, commit)


@lru_cache(maxsize=2 * PLAIN_ROWS_MAX)
def _plain_statement(count: int, if_no_mail: bool) -> str:
    values = f"SELECT {_ROW[1:-1]}" if count == 1 else f"SELECT * FROM (VALUES {', '.join([_ROW] * count)})"
    return f"{_INSERT}{values} WHERE {_GUARD}{_NO_MAIL if if_no_mail else ''}"


def _append_whole(database: Database, number: int, commit: Commit) -> None:
    check_blobs(commit)

    def blob(name: str) -> bytes:
        content = commit.blobs.get(name)
        return read_blob(database, commit.run, name) if content is None else content

    with database.transaction():
        refusal = _refusal(database, number, commit)
        if refusal is not None:
            raise refusal
        before = read_standing(database, number) if commit.expected else None
        now = before
        for row in commit.rows:
            now = standing.after(now, row, blob)
        move(database, number, commit.run, commit.taken)
        base = number << POSITION_BITS
        database.connection.executemany(
            f"{_INSERT}VALUES {_ROW}", [columns_of(base, row) for row in commit.rows]
        )
        for name, content in commit.blobs.items():
            write_blob(database, number, name, content)
        if now is not None and now != before:
            write_standing(database, number, now)
        if commit.snapshot is not None:
            write_snapshot(database, number, commit.snapshot)
    if now is not None:
        database.learn(number, commit.rows[-1].position, now)


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
            "SELECT id FROM inbox WHERE run = ? AND moved_to IS NULL ORDER BY place LIMIT ?",
            (number, len(commit.taken) + 1),
        )
        if any(item not in commit.taken for (item,) in waiting):
            return InboxWaiting(f"A message waits in the inbox of run {commit.run}; take it in first.")
    return None


def _refuse(database: Database, number: int, commit: Commit) -> None:
    # Positions and epochs only grow, so whatever refused the statement still shows.
    raise _refusal(database, number, commit) or Conflict(commit.run, commit.expected, commit.expected)
