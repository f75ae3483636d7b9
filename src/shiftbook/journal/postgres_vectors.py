"""Vectors in PostgreSQL: tables of the search index, with the same rows as in SQLite's file.

Each function is a part of a transaction that its caller has begun; a run is given by its number there.
"""

from __future__ import annotations

from collections.abc import Sequence

from shiftbook.journal.index import Alike, Lacking
from shiftbook.journal.index_vectors import likeness_of, nearest, signs_together
from shiftbook.journal.postgres_database import Database

TABLES = ("search_vector_runs", "search_vectors", "search_signs")


async def lacking(database: Database, number: int, name: str, limit: int) -> Lacking:
    """The first units of a run without a vector by that name."""
    start = await _units_with(database, number, name)
    spans = await database.rows(
        "SELECT first, last FROM shiftbook.search_units WHERE run = %s AND unit >= %s ORDER BY unit LIMIT %s",
        (number, start, limit),
    )
    return Lacking(start, tuple((first, last) for first, last in spans))


async def add(database: Database, number: int, name: str, start: int, vectors: Sequence[bytes]) -> bool:
    """Take in vectors of the units from `start` on, if these are next; those by another name go.

    The caller holds the lock on the run's row.
    """
    found = await lacking(database, number, name, len(vectors))
    if found.start != start or len(found.spans) != len(vectors):
        return False
    if not start:
        await forget(database, number)
    await database.run(
        "INSERT INTO shiftbook.search_vectors (run, unit, vector) "
        "SELECT %s, each.* FROM unnest(%s::bigint[], %s::bytea[]) AS each",
        (number, list(range(start, start + len(vectors))), list(vectors)),
    )
    await database.run(
        "INSERT INTO shiftbook.search_signs (run, unit, signs) VALUES (%s, %s, %s)",
        (number, start, signs_together(vectors)),
    )
    await database.run(
        "INSERT INTO shiftbook.search_vector_runs (run, name, units) VALUES (%s, %s, %s) "
        "ON CONFLICT (run) DO UPDATE SET units = excluded.units",
        (number, name, start + len(vectors)),
    )
    return True


async def forget(database: Database, number: int) -> None:
    """Forget a run's vectors."""
    for table in TABLES:
        await database.run(f"DELETE FROM shiftbook.{table} WHERE run = %s", (number,))


async def likeness(
    database: Database, number: int, alike: Alike, chosen: Sequence[int], units: int
) -> dict[int, float]:
    """Of the units that were chosen and of those that are most alike, how alike they are."""
    if await _units_with(database, number, alike.name) != units:
        return {}
    rows = await database.rows(
        "SELECT signs FROM shiftbook.search_signs WHERE run = %s ORDER BY unit", (number,)
    )
    near = nearest([signs for (signs,) in rows], alike, units)
    rows = await database.rows(
        "SELECT unit, vector FROM shiftbook.search_vectors WHERE run = %s AND unit = ANY(%s::bigint[]) "
        "ORDER BY unit",
        (number, sorted({*chosen, *near}) if near else []),
    )
    return likeness_of(dict(rows), alike)


async def _units_with(database: Database, number: int, name: str) -> int:
    found = await database.rows(
        "SELECT units FROM shiftbook.search_vector_runs WHERE run = %s AND name = %s", (number, name)
    )
    return int(found[0][0]) if found else 0
