"""Leases in PostgreSQL: taken, renewed and given back by the server's time, with an epoch that only grows.

Each is decided under a lock on the run's row. A holder on this host whose process is gone is replaced at
once; any other is waited for. A checksum over the row tells what was changed behind Shiftbook's back, since
a lower epoch would let a fenced writer in again.
"""

from __future__ import annotations

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
    async with database.transaction():
        opened = new and await _open(database, run)
        number, found, mail = await look_whole(database, run, lock=True)
        if opened:
            row = LeaseRow(run, max(above, 0) + 1, holder, await database.now_ms() + lease_ms)
            return await _set(database, number, row, mail)
        last = await database.rows(
            "SELECT epoch FROM shiftbook.entries WHERE run = %s ORDER BY position DESC LIMIT 1", (number,)
        )
        if new and (last or await _was_used(database, number)):
            raise RunExists(f"Run {run} exists already; resume it, or choose another id.")
        if not new and not last:
            raise UnknownRun(run)
        now = await database.now_ms()
        if found.holder is not None and found.until_ms > now and is_alive(found.holder) is not False:
            raise Held(run, str(found.holder), found.until_ms - now)
        epoch = max(found.epoch, above, last[0][0] if last else 0) + 1
        return await _set(database, number, LeaseRow(run, epoch, holder, now + lease_ms), mail)


async def renew(database: Database, lease: Lease, lease_ms: int) -> Lease:
    """Hold on, unless the lease was taken over or given back."""
    async with database.transaction():
        number, found, mail = await look_whole(database, lease.run, lock=True)
        if found.epoch != lease.epoch or found.holder is None:
            raise Fenced(lease.run, lease.epoch, found.epoch)
        until = await database.now_ms() + lease_ms
        return await _set(database, number, LeaseRow(lease.run, lease.epoch, found.holder, until), mail)


async def give_back(database: Database, lease: Lease) -> None:
    """End a lease that is still ours."""
    async with database.transaction():
        number, found, mail = await look_whole(database, lease.run, lock=True)
        if found.epoch == lease.epoch and found.holder is not None:
            await _set(database, number, LeaseRow(lease.run, lease.epoch, None, 0), mail)


async def look(database: Database, run: str) -> LeaseRow:
    """A run's lease as it is written, checked against its checksum."""
    return (await look_whole(database, run))[1]


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
    number, name, epoch, host, pid, started, until_ms, mail, checksum = found[0]
    if checksum == b"" and epoch == 0:
        return number, LeaseRow(name, 0, None, 0), 0
    row = LeaseRow(name, epoch, None if host is None else Holder(host, pid, started), until_ms)
    if lease_checksum(number, row, mail) != checksum:
        raise Damaged(f"The lease of run {run} is damaged: its row is not what was written.")
    return number, row, mail


async def count_mail(database: Database, number: int, row: LeaseRow, mail: int) -> int:
    """Count one more item into the run's inbox; its place. Within the transaction that puts it in."""
    await _set(database, number, row, mail + 1)
    return mail + 1


async def _open(database: Database, run: str) -> bool:
    """Give a run its number; False when it has one. Who comes second waits here for who came first."""
    return bool(
        await database.run(
            "INSERT INTO shiftbook.leases (run, epoch, until_ms, mail, checksum) "
            "VALUES (%s, 0, 0, 0, '') ON CONFLICT (run) DO NOTHING",
            (run,),
        )
    )


async def _was_used(database: Database, number: int) -> bool:
    # Without an entry these can only be what an interrupted deletion has left.
    ((used,),) = await database.rows(
        "SELECT EXISTS (SELECT 1 FROM shiftbook.blobs WHERE run = %s) OR EXISTS "
        "(SELECT 1 FROM shiftbook.inbox WHERE run = %s AND moved_to IS NOT NULL)",
        (number, number),
    )
    return bool(used)


async def _set(database: Database, number: int, row: LeaseRow, mail: int) -> Lease:
    holder = row.holder
    named = (None, None, None) if holder is None else (holder.host, holder.pid, holder.started)
    await database.run(
        f"UPDATE shiftbook.leases SET {_SET} WHERE number = %s",
        (row.epoch, *named, row.until_ms, mail, lease_checksum(number, row, mail), number),
    )
    return Lease(row.run, row.epoch, row.until_ms)
