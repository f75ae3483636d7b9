"""One commit into the book on PostgreSQL: guarded by position and lease epoch, whole or not at all.

A plain commit - rows, and a run that stays where it stands - is one call of a function of the database,
which is its own transaction: one round trip. Whatever else a commit carries (blobs, inbox items that moved,
a snapshot, a change in the catalogue) makes it a transaction of several statements behind the same guard.

When the connection dies in the middle of a COMMIT, the commit may be there or not. Its last row tells: the
salts are unpredictable, so a row that has ours is ours. Only if it is not there is the commit tried again.
"""

from __future__ import annotations

from shiftbook.errors import Conflict, Fenced, InboxWaiting, Refused, UnknownRun
from shiftbook.journal.admission import check_blobs, check_commit
from shiftbook.journal.postgres_blobs import blobs_named, write_blobs
from shiftbook.journal.postgres_cache import write_snapshot
from shiftbook.journal.postgres_catalogue import read_standing, write_standing
from shiftbook.journal.postgres_database import Database
from shiftbook.journal.postgres_inbox import move
from shiftbook.journal.postgres_rows import ARRAYS, arrays_of
from shiftbook.journal.promises import Commit
from shiftbook.projections import standing

_APPEND = f"SELECT refusal, seen FROM shiftbook.append(%s, %s, %s, %s, %s, {ARRAYS})"
_ADMIT = "SELECT refusal, seen FROM shiftbook.admit(%s, %s, %s, %s, %s, %s::text[])"
_WRITE = f"SELECT shiftbook.write(%s, %s, {ARRAYS})"


async def append(database: Database, commit: Commit) -> None:
    """Write a commit or raise why not."""
    check_commit(commit)
    number = await database.number(commit.run)
    known = database.known.standings.get(number)
    if (
        known is not None
        and known[0] == commit.expected
        and not (commit.blobs or commit.taken or commit.snapshot)
        and standing.is_unmoved(known[1], {row.kind for row in commit.rows})
    ):
        await _append_plain(database, number, commit)
        database.known.learn(number, commit.rows[-1].position, known[1])
    else:
        await _append_whole(database, number, commit)


async def append_again(database: Database, commit: Commit) -> None:
    """Append a commit of which it is not known whether it is there already."""
    number = await database.number(commit.run)
    async with database.transaction():
        # Whoever of us is still committing holds this lock; after it, what is there is there.
        await database.rows("SELECT 1 FROM shiftbook.leases WHERE number = %s FOR NO KEY UPDATE", (number,))
        last = commit.rows[-1]
        found = await database.rows(
            "SELECT salt, head FROM shiftbook.entries WHERE run = %s AND position = %s",
            (number, last.position),
        )
    if found != [(last.salt, last.head)]:
        await append(database, commit)


async def _append_plain(database: Database, number: int, commit: Commit) -> None:
    database.uncertain = True
    ((refusal, found),) = await database.rows(
        _APPEND,
        (number, commit.run, commit.epoch, commit.expected, commit.if_no_mail, *arrays_of(commit.rows)),
    )
    database.uncertain = False
    if refusal is not None:
        raise _refused(refusal, found, commit)


async def _append_whole(database: Database, number: int, commit: Commit) -> None:
    check_blobs(commit)
    async with database.transaction():
        ((refusal, found),) = await database.rows(
            _ADMIT,
            (number, commit.run, commit.epoch, commit.expected, commit.if_no_mail, [*commit.taken]),
        )
        if refusal is not None:
            raise _refused(refusal, found, commit)
        known = database.known.standings.get(number)
        if known is not None and known[0] == commit.expected:
            before: standing.Standing | None = known[1]
        else:
            before = await read_standing(database, number, commit.run) if commit.expected else None
        fetched = {**await blobs_named(database, number, commit), **commit.blobs}
        now = before
        for row in commit.rows:
            now = standing.after(now, row, fetched.__getitem__)
        await move(database, number, commit.run, commit.taken)
        await database.rows(_WRITE, (number, commit.expected, *arrays_of(commit.rows)))
        await write_blobs(database, number, commit.blobs)
        if now is not None and now != before:
            await write_standing(database, number, now)
        if commit.snapshot is not None:
            await write_snapshot(database, number, commit.snapshot)
    if now is not None:
        database.known.learn(number, commit.rows[-1].position, now)


def _refused(refusal: str, found: int | None, commit: Commit) -> Refused | UnknownRun:
    if refusal == "fenced":
        return Fenced(commit.run, commit.epoch, found or 0)
    if refusal == "conflict":
        return Conflict(commit.run, commit.expected, found or 0)
    if refusal == "mail":
        return InboxWaiting(f"A message waits in the inbox of run {commit.run}; take it in first.")
    return UnknownRun(commit.run)
