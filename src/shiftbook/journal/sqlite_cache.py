"""Snapshots in SQLite: the newest of each name and run, dropped instead of believed when in doubt."""

from __future__ import annotations

from functools import partial

from shiftbook.journal.checksums import snapshot_checksum
from shiftbook.journal.promises import Snapshot
from shiftbook.journal.sqlite_commits import Commits
from shiftbook.journal.sqlite_database import Database
from shiftbook.journal.sqlite_reader import Reader
from shiftbook.journal.sqlite_rows import POSITION_BITS


class SqliteCache:
    """Keeps the promise `Cache`."""

    def __init__(self, reader: Reader, commits: Commits) -> None:
        self._reader = reader
        self._commits = commits

    async def save(self, run: str, snapshot: Snapshot) -> None:
        await self._commits.write(lambda database: write_snapshot(database, database.number(run), snapshot))

    async def load(self, run: str, name: str, version: int) -> Snapshot | None:
        return self._reader.read(partial(read_snapshot, run=run, name=name, version=version))

    async def drop(self, run: str | None = None) -> None:
        await self._commits.write(partial(drop_snapshots, run=run))


def write_snapshot(database: Database, number: int, snapshot: Snapshot) -> None:
    """Keep a snapshot in place of the one of its name."""
    database.run(
        "INSERT OR REPLACE INTO snapshots (run, name, version, position, content, checksum) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (
            number,
            snapshot.name,
            snapshot.version,
            snapshot.position,
            snapshot.text,
            snapshot_checksum(snapshot),
        ),
    )


def read_snapshot(database: Database, run: str, name: str, version: int) -> Snapshot | None:
    """A snapshot that can be believed: undamaged, and of an entry that is there."""
    number = database.number(run)
    found = database.rows(
        "SELECT position, content, checksum FROM snapshots WHERE run = ? AND name = ? AND version = ? "
        "AND EXISTS (SELECT 1 FROM entries WHERE id = (? << ?) + position)",
        (number, name, version, number, POSITION_BITS),
    )
    if not found:
        return None
    position, text, checksum = found[0]
    snapshot = Snapshot(name, version, position, text)
    if type(position) is not int or type(text) is not str or snapshot_checksum(snapshot) != checksum:
        return None
    return snapshot


def drop_snapshots(database: Database, run: str | None) -> None:
    """Forget the snapshots of a run, or all."""
    if run is None:
        database.run("DELETE FROM snapshots")
    else:
        database.run("DELETE FROM snapshots WHERE run = ?", (database.number(run),))
