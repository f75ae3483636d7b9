"""Blobs in SQLite: bytes under their hash, shared within one run only."""

from __future__ import annotations

from functools import partial

from shiftbook.codec import blob_hash
from shiftbook.errors import Damaged
from shiftbook.journal.promises import PAGE_ROWS
from shiftbook.journal.sqlite_database import Database
from shiftbook.journal.sqlite_reader import Reader


class SqliteBlobs:
    """Keeps the promise `Blobs`; the commit that names a blob writes it."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def get(self, run: str, name: str) -> bytes:
        return self._reader.read(partial(read_blob, run=run, name=name))

    async def names(self, run: str, after: str = "", limit: int = PAGE_ROWS) -> list[str]:
        return self._reader.read(partial(read_names, run=run, after=after, limit=limit))


def write_blob(database: Database, number: int, name: str, content: bytes) -> None:
    """Keep bytes under their hash; once is enough."""
    database.run("INSERT OR IGNORE INTO blobs (run, name, content) VALUES (?, ?, ?)", (number, name, content))


def read_blob(database: Database, run: str, name: str) -> bytes:
    """A blob's bytes, checked against its name."""
    number = database.number(run)
    found = database.rows("SELECT content FROM blobs WHERE run = ? AND name = ?", (number, name))
    if not found:
        raise Damaged(f"Blob {name[:12]} of run {run} is not there.")
    content = found[0][0]
    if type(content) is not bytes or blob_hash(content) != name:
        raise Damaged(f"Blob {name[:12]} of run {run} is damaged: its bytes do not hash to its name.")
    return content


def read_names(database: Database, run: str, after: str, limit: int) -> list[str]:
    """A page of the names of a run's blobs."""
    found = database.rows(
        "SELECT name FROM blobs WHERE run = ? AND name > ? ORDER BY name LIMIT ?",
        (database.number(run), after, max(limit, 0)),
    )
    if not all(type(name) is str for (name,) in found):
        raise Damaged(f"A blob of run {run} has a name that is no text.")
    return [name for (name,) in found]
