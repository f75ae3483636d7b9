"""Snapshots in PostgreSQL: the newest of each name and run, dropped instead of believed when in doubt."""

from __future__ import annotations

from functools import partial

from shiftbook.journal.checksums import snapshot_checksum
from shiftbook.journal.postgres_connections import Connections
from shiftbook.journal.postgres_database import Database
from shiftbook.journal.promises import Snapshot


class PostgresCache:
    """Keeps the promise `Cache`. Every write may be repeated, so a lost connection costs nothing."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def save(self, run: str, snapshot: Snapshot) -> None:
        await self._connections.run(partial(_save, run=run, snapshot=snapshot))

    async def load(self, run: str, name: str, version: int) -> Snapshot | None:
        return await self._connections.run(partial(read_snapshot, run=run, name=name, version=version))

    async def drop(self, run: str | None = None) -> None:
        await self._connections.run(partial(drop_snapshots, run=run))


async def _save(database: Database, run: str, snapshot: Snapshot) -> None:
    await write_snapshot(database, await database.number(run), snapshot)


async def write_snapshot(database: Database, number: int, snapshot: Snapshot) -> None:
    """Keep a snapshot in place of the one of its name."""
    await database.run(
        "INSERT INTO shiftbook.snapshots (run, name, version, position, content, checksum) "
        "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (run, name) DO UPDATE SET version = excluded.version, "
        "position = excluded.position, content = excluded.content, checksum = excluded.checksum",
        (
            number,
            snapshot.name,
            snapshot.version,
            snapshot.position,
            snapshot.text,
            snapshot_checksum(snapshot),
        ),
    )


async def read_snapshot(database: Database, run: str, name: str, version: int) -> Snapshot | None:
    """A snapshot that can be believed: undamaged, and of an entry that is there."""
    number = await database.number(run)
    found = await database.rows(
        "SELECT position, content, checksum FROM shiftbook.snapshots WHERE run = %s AND name = %s AND "
        "version = %s AND EXISTS (SELECT 1 FROM shiftbook.entries "
        "WHERE entries.run = snapshots.run AND entries.position = snapshots.position)",
        (number, name, version),
    )
    if not found:
        return None
    position, text, checksum = found[0]
    snapshot = Snapshot(name, version, position, text)
    return snapshot if snapshot_checksum(snapshot) == checksum else None


async def drop_snapshots(database: Database, run: str | None) -> None:
    """Forget the snapshots of a run, or all."""
    if run is None:
        await database.run("DELETE FROM shiftbook.snapshots")
    else:
        await database.run("DELETE FROM shiftbook.snapshots WHERE run = %s", (await database.number(run),))
