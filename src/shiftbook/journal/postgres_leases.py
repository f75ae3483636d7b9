"""Leases in PostgreSQL: taken, renewed and given back by the server's time, with an epoch that only grows.

A lease is read, and set where it is still what was read: two statements and no open transaction, so that a
holder that freezes in between keeps nobody from the run. A holder on this host whose process is gone is
replaced at once; any other is waited for. A checksum over the row tells what was changed behind Shiftbook's
back, since a lower epoch would let a fenced writer in again; by it the row is known to be what was read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from shiftbook.clock import Holder, is_alive
from shiftbook.errors import Damaged, Fenced, Held, RunExists, UnknownRun
from shiftbook.journal.admission import RUN_ID, check_run_id
from shiftbook.journal.checksums import lease_checksum
from shiftbook.journal.postgres_connections import Connections
from shiftbook.journal.postgres_database import Database
from shiftbook.journal.promises import Lease, LeaseRow

_COLUMNS = "number, run, epoch, host, pid, started, until_ms, mail, checksum"
_SET = "epoch = %s, host = %s, pid = %s, started = %s, until_ms = %s, mail = %s, checksum = %s"


class PostgresLeases:
    """Keeps the promise `Leases`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def take(
        self, run: str, holder: Holder, lease_ms: int, *, new: bool = False, above: int = 0
    ) -> Lease:
        # Not repeated when its outcome is unknown: the holder would meet itself. The lease runs out.
        return await self._connections.run(
            partial(take, run=run, holder=holder, lease_ms=lease_ms, new=new, above=above)
        )

    async def renew(self, lease: Lease, lease_ms: int) -> Lease:
        job = partial(renew, lease=lease, lease_ms=lease_ms)
        return await self._connections.run(job, again=job)

    async def give_back(self, lease: Lease) -> None:
        job = partial(give_back, lease=lease)
        await self._connections.run(job, again=job)

    async def look(self, run: str) -> LeaseRow:
        return await self._connections.run(partial(look, run=run))


async def take(database: Database, run: str, holder: Holder, lease_ms: int, new: bool, above: int) -> Lease:
    """Take a lease that is free, or whose holder is gone."""
    if new:
        check_run_id(run)
        await _open(database, run)
    while True:
        seen = await _look(database, run)
        if new and (seen.last is not None or await _was_used(database, seen.number)):
            raise RunExists(f"Run {run} exists already; resume it, or choose another id.")
        if not new and seen.last is None:
            raise UnknownRun(run)
        held, now_ms = seen.row, seen.now_ms
        if held.holder is not None and held.until_ms > now_ms and is_alive(held.holder) is not False:
            raise Held(run, str(held.holder), held.until_ms - now_ms)
        epoch = max(held.epoch, above, seen.last or 0) + 1
        if await _swap(database, seen, LeaseRow(run, epoch, holder, now_ms + lease_ms)):
            return Lease(run, epoch, now_ms + lease_ms)


async def renew(database: Database, lease: Lease, lease_ms: int) -> Lease:
    """Hold on, unless the lease was taken over or given back."""
    while True:
        seen = await _look(database, lease.run)
        if seen.row.epoch != lease.epoch or seen.row.holder is None:
            raise Fenced(lease.run, lease.epoch, seen.row.epoch)
        until_ms = seen.now_ms + lease_ms
        if await _swap(database, seen, LeaseRow(lease.run, lease.epoch, seen.row.holder, until_ms)):
            return Lease(lease.run, lease.epoch, until_ms)


async def give_back(database: Database, lease: Lease) -> None:
    """End a lease that is still ours."""
    while True:
        seen = await _look(database, lease.run)
        if seen.row.epoch != lease.epoch or seen.row.holder is None:
            return
        if await _swap(database, seen, LeaseRow(lease.run, lease.epoch, None, 0)):
            return


async def look(database: Database, run: str) -> LeaseRow:
    """A run's lease as it is written, checked against its checksum."""
    seen = await _look(database, run)
    return replace(seen.row, left_ms=seen.row.until_ms - seen.now_ms)


async def look_whole(database: Database, run: str, *, lock: bool = False) -> tuple[int, LeaseRow, int]:
    """A run's number and lease, and how many items were put into its inbox so far."""
    if not RUN_ID.fullmatch(run):
        raise UnknownRun(run)
    found = await database.rows(
        f"SELECT {_COLUMNS} FROM shiftbook.leases WHERE run = %s" + (" FOR NO KEY UPDATE" if lock else ""),
        (run,),
    )
    if not found:
        raise UnknownRun(run)
    return _checked(*found[0])


def _checked(
    number: int,
    run: str,
    epoch: int,
    host: str | None,
    pid: int,
    started: str,
    until_ms: int,
    mail: int,
    checksum: bytes,
) -> tuple[int, LeaseRow, int]:
    if checksum == b"" and epoch == 0:
        return number, LeaseRow(run, 0, None, 0), 0
    row = LeaseRow(run, epoch, None if host is None else Holder(host, pid, started), until_ms)
    if lease_checksum(number, row, mail) != checksum:
        raise Damaged(f"The lease of run {run} is damaged: its row is not what was written.")
    return number, row, mail


@dataclass(frozen=True, slots=True)
class _Seen:
    """A run's lease as it was at one moment of the server's time; `last` is the epoch of its last entry."""

    number: int
    row: LeaseRow
    mail: int
    checksum: bytes
    now_ms: int
    last: int | None


async def _look(database: Database, run: str) -> _Seen:
    if not RUN_ID.fullmatch(run):
        raise UnknownRun(run)
    found = await database.rows(
        f"SELECT {_COLUMNS}, shiftbook.now_ms(), (SELECT entries.epoch FROM shiftbook.entries "
        "WHERE entries.run = leases.number ORDER BY position DESC LIMIT 1) "
        "FROM shiftbook.leases WHERE leases.run = %s",
        (run,),
    )
    if not found:
        raise UnknownRun(run)
    (*columns, now_ms, last) = found[0]
    number, row, mail = _checked(*columns)
    database.known.learn_number(run, number)
    return _Seen(number, row, mail, columns[-1], database.time_ms(now_ms), last)


async def _swap(database: Database, seen: _Seen, row: LeaseRow) -> bool:
    """Set a lease that is still what was seen; False when it is not."""
    database.uncertain = True
    changed = await _set(database, seen.number, row, seen.mail, where=seen.checksum)
    database.uncertain = False
    return changed == 1


async def count_mail(database: Database, number: int, row: LeaseRow, mail: int) -> int:
    """Count one more item into the run's inbox; its place. Within the transaction that puts it in."""
    await _set(database, number, row, mail + 1)
    return mail + 1


async def _open(database: Database, run: str) -> None:
    """Give a run its number, unless it has one."""
    await database.run(
        "INSERT INTO shiftbook.leases (run, epoch, until_ms, mail, checksum) "
        "VALUES (%s, 0, 0, 0, '') ON CONFLICT (run) DO NOTHING",
        (run,),
    )


async def _was_used(database: Database, number: int) -> bool:
    # Without an entry these can only be what an interrupted deletion has left.
    ((used,),) = await database.rows(
        "SELECT EXISTS (SELECT 1 FROM shiftbook.blobs WHERE run = %s) OR EXISTS "
        "(SELECT 1 FROM shiftbook.inbox WHERE run = %s AND moved_to IS NOT NULL)",
        (number, number),
    )
    return bool(used)


async def _set(
    database: Database, number: int, row: LeaseRow, mail: int, *, where: bytes | None = None
) -> int:
    holder = row.holder
    named = (None, None, None) if holder is None else (holder.host, holder.pid, holder.started)
    return await database.run(
        f"UPDATE shiftbook.leases SET {_SET} WHERE number = %s AND (%s::bytea IS NULL OR checksum = %s)",
        (row.epoch, *named, row.until_ms, mail, lease_checksum(number, row, mail), number, where, where),
    )
