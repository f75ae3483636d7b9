"""Leases in SQLite: taken, renewed and given back by the database's time, with an epoch that only grows.

A holder on this host whose process is gone is replaced at once; any other is waited for. A run exists once
it has an entry: a lease whose holder died before the first may be opened anew. A checksum over the row tells
a flipped byte, since a lower epoch would let a fenced writer in again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from shiftbook.clock import Holder, is_alive
from shiftbook.errors import Damaged, Fenced, Held, RunExists, UnknownRun
from shiftbook.journal.admission import check_run_id
from shiftbook.journal.checksums import lease_checksum
from shiftbook.journal.promises import Lease, LeaseRow
from shiftbook.journal.sqlite_commits import Commits
from shiftbook.journal.sqlite_database import Database
from shiftbook.journal.sqlite_reader import Reader
from shiftbook.journal.sqlite_rows import span

_SHAPES = frozenset(
    {
        (str, int, str, int, str, int, int, bytes),
        (str, int, type(None), type(None), type(None), int, int, bytes),
    }
)
_SET = "epoch = ?, host = ?, pid = ?, started = ?, until_ms = ?, mail = ?, checksum = ?"


class SqliteLeases:
    """Keeps the promise `Leases`."""

    def __init__(self, reader: Reader, commits: Commits) -> None:
        self._reader = reader
        self._commits = commits

    async def take(
        self, run: str, holder: Holder, lease_ms: int, *, new: bool = False, above: int = 0
    ) -> Lease:
        return await self._commits.write(
            partial(take, run=run, holder=holder, lease_ms=lease_ms, new=new, above=above)
        )

    async def renew(self, lease: Lease, lease_ms: int) -> Lease:
        return await self._commits.write(partial(renew, lease=lease, lease_ms=lease_ms))

    async def give_back(self, lease: Lease) -> None:
        await self._commits.write(partial(give_back, lease=lease))

    async def look(self, run: str) -> LeaseRow:
        return self._reader.read(partial(look, run=run))


def take(database: Database, run: str, holder: Holder, lease_ms: int, new: bool, above: int) -> Lease:
    """Take a lease that is free, or whose holder is gone."""
    with database.transaction():
        now = _now(database)
        if not database.rows("SELECT 1 FROM leases WHERE run = ?", (run,)):
            if not new:
                raise UnknownRun(run)
            return _open(database, LeaseRow(run, max(above, 0) + 1, holder, now + lease_ms))
        found, mail = look_whole(database, run)
        number = database.number(run)
        last = database.rows(
            "SELECT epoch FROM entries WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1", span(number)
        )
        if new and (last or _was_used(database, number)):
            raise RunExists(f"Run {run} exists already; resume it, or choose another id.")
        if not new and not last:
            raise UnknownRun(run)
        if found.holder is not None and found.until_ms > now and is_alive(found.holder) is not False:
            raise Held(run, str(found.holder), found.until_ms - now)
        seen = last[0][0] if last else 0
        if type(seen) is not int:
            raise Damaged(f"The last entry of run {run} is not a row that Shiftbook wrote.")
        epoch = max(found.epoch, above, seen) + 1
        return _set(database, number, LeaseRow(run, epoch, holder, now + lease_ms), mail)


def renew(database: Database, lease: Lease, lease_ms: int) -> Lease:
    """Hold on, unless the lease was taken over or given back."""
    with database.transaction():
        found, mail = look_whole(database, lease.run)
        if found.epoch != lease.epoch or found.holder is None:
            raise Fenced(lease.run, lease.epoch, found.epoch)
        until = _now(database) + lease_ms
        row = LeaseRow(lease.run, lease.epoch, found.holder, until)
        return _set(database, database.number(lease.run), row, mail)


def give_back(database: Database, lease: Lease) -> None:
    """End a lease that is still ours."""
    with database.transaction():
        found, mail = look_whole(database, lease.run)
        if found.epoch == lease.epoch and found.holder is not None:
            _set(database, database.number(lease.run), LeaseRow(lease.run, lease.epoch, None, 0), mail)


def look(database: Database, run: str) -> LeaseRow:
    """A run's lease as it is written, checked against its checksum."""
    row = look_whole(database, run)[0]
    return replace(row, left_ms=row.until_ms - _now(database))


def look_whole(database: Database, run: str) -> tuple[LeaseRow, int]:
    """A run's lease, and how many items were put into its inbox so far."""
    number = database.number(run)
    found = database.rows(
        "SELECT run, epoch, host, pid, started, until_ms, mail, checksum FROM leases WHERE number = ?",
        (number,),
    )
    if not found:
        raise UnknownRun(run)
    if (*map(type, found[0]),) not in _SHAPES:
        raise Damaged(f"The lease of run {run} is damaged: its row is not what was written.")
    name, epoch, host, pid, started, until_ms, mail, checksum = found[0]
    holder = None if host is None else Holder(host, pid, started)
    row = LeaseRow(name, epoch, holder, until_ms)
    if name != run or lease_checksum(number, row, mail) != checksum:
        raise Damaged(f"The lease of run {run} is damaged: its row is not what was written.")
    return row, mail


def next_place(database: Database, run: str) -> int:
    """Count one more item into the run's inbox; its place. Within the transaction that puts it in."""
    row, mail = look_whole(database, run)
    _set(database, database.number(run), row, mail + 1)
    return mail + 1


def _open(database: Database, row: LeaseRow) -> Lease:
    check_run_id(row.run)
    ((number,),) = database.rows("SELECT coalesce(max(number), 0) + 1 FROM leases")
    database.run(
        "INSERT INTO leases (number, run, epoch, until_ms, mail, checksum) VALUES (?, ?, 0, 0, 0, x'')",
        (number, row.run),
    )
    return _set(database, number, row, 0)


def _was_used(database: Database, number: int) -> bool:
    # Without an entry these can only be what an interrupted deletion has left.
    ((used,),) = database.rows(
        "SELECT EXISTS (SELECT 1 FROM blobs WHERE run = ?) OR EXISTS (SELECT 1 FROM inbox WHERE run = ? AND "
        "moved_to IS NOT NULL)",
        (number, number),
    )
    return bool(used)


def _set(database: Database, number: int, row: LeaseRow, mail: int) -> Lease:
    holder = row.holder
    named = (None, None, None) if holder is None else (holder.host, holder.pid, holder.started)
    database.run(
        f"UPDATE leases SET {_SET} WHERE number = ?",
        (row.epoch, *named, row.until_ms, mail, lease_checksum(number, row, mail), number),
    )
    return Lease(row.run, row.epoch, row.until_ms)


def _now(database: Database) -> int:
    ((now,),) = database.rows("SELECT shiftbook_now()")
    return int(now)
