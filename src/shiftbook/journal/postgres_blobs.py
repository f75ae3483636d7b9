"""Blobs in PostgreSQL: bytes under their hash, shared within one run only."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from shiftbook.codec import blob_hash, payload_blob
from shiftbook.errors import Damaged
from shiftbook.journal.postgres_connections import Connections
from shiftbook.journal.postgres_database import Database
from shiftbook.journal.promises import PAGE_ROWS, Commit
from shiftbook.projections.standing import STANDING_KINDS


class PostgresBlobs:
    """Keeps the promise `Blobs`; the commit that names a blob writes it."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def get(self, run: str, name: str) -> bytes:
        return await self._connections.run(partial(read_blob, run=run, name=name))

    async def names(self, run: str, after: str = "", limit: int = PAGE_ROWS) -> list[str]:
        return await self._connections.run(partial(read_names, run=run, after=after, limit=limit))


async def write_blobs(database: Database, number: int, blobs: Mapping[str, bytes]) -> None:
    """Keep bytes under their hashes; once is enough."""
    for name, content in blobs.items():
        await database.run(
            "INSERT INTO shiftbook.blobs (run, name, content) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            (number, name, content),
        )


async def read_blob(database: Database, run: str, name: str) -> bytes:
    """A blob's bytes, checked against its name."""
    number = await database.number(run)
    found = await database.rows(
        "SELECT content FROM shiftbook.blobs WHERE run = %s AND name = %s", (number, name)
    )
    if not found:
        raise Damaged(f"Blob {name[:12]} of run {run} is not there.")
    content = bytes(found[0][0])
    if blob_hash(content) != name:
        raise Damaged(f"Blob {name[:12]} of run {run} is damaged: its bytes do not hash to its name.")
    return content


async def blobs_named(database: Database, number: int, commit: Commit) -> dict[str, bytes]:
    """The payloads, kept as blobs before, of the rows of a commit that say where the run stands."""
    names = {payload_blob(row) for row in commit.rows if row.kind in STANDING_KINDS}
    return {
        name: await read_blob(database, commit.run, name)
        for name in sorted(name for name in names if name is not None and name not in commit.blobs)
    }


async def read_names(database: Database, run: str, after: str, limit: int) -> list[str]:
    """A page of the names of a run's blobs."""
    found = await database.rows(
        "SELECT name FROM shiftbook.blobs WHERE run = %s AND name > %s ORDER BY name LIMIT %s",
        (await database.number(run), after, max(limit, 0)),
    )
    return [name for (name,) in found]
