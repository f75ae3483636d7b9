"""Vectors in SQLite's search file: rows beside those of the units, under the units' ids.

Each function is a part of a transaction that its caller has begun. A run is given by its number, a unit by
its id: `low` is that of the run's first, and `high` one that no unit of it passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from shiftbook.journal.index import Alike, Lacking
from shiftbook.journal.index_vectors import likeness_of, nearest, signs_together


def units_with(connection: apsw.Connection, number: int, name: str) -> int:
    """How many units of a run have a vector by that name."""
    found: list[tuple[Any, ...]] = connection.execute(
        "SELECT units FROM vector_runs WHERE run = ? AND name = ?", (number, name)
    ).fetchall()
    return int(found[0][0]) if found else 0


def lacking(connection: apsw.Connection, number: int, low: int, high: int, name: str, limit: int) -> Lacking:
    """The first units of a run without a vector by that name."""
    start = units_with(connection, number, name)
    spans = connection.execute(
        "SELECT first, last FROM units WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?",
        (low + start, high, limit),
    )
    return Lacking(start, tuple((int(first), int(last)) for first, last in spans))


def add(
    connection: apsw.Connection, number: int, low: int, high: int, name: str, vectors: Sequence[bytes]
) -> None:
    """Take in vectors of the units after those that have one; those by another name are forgotten."""
    start = units_with(connection, number, name)
    if not start:
        forget(connection, number, low, high)
    connection.executemany("INSERT INTO vectors (id, vector) VALUES (?, ?)", enumerate(vectors, low + start))
    connection.execute("INSERT INTO signs (id, signs) VALUES (?, ?)", (low + start, signs_together(vectors)))
    connection.execute(
        "INSERT OR REPLACE INTO vector_runs (run, name, units) VALUES (?, ?, ?)",
        (number, name, start + len(vectors)),
    )


def forget(connection: apsw.Connection, number: int, low: int, high: int) -> None:
    """Forget a run's vectors."""
    connection.execute("DELETE FROM vectors WHERE id BETWEEN ? AND ?", (low, high))
    connection.execute("DELETE FROM signs WHERE id BETWEEN ? AND ?", (low, high))
    connection.execute("DELETE FROM vector_runs WHERE run = ?", (number,))


def likeness(
    connection: apsw.Connection,
    number: int,
    low: int,
    high: int,
    alike: Alike,
    chosen: Sequence[int],
    units: int,
) -> dict[int, float]:
    """Of the units that were chosen and of those that are most alike, how alike they are."""
    if units_with(connection, number, alike.name) != units:
        return {}
    signs = connection.execute("SELECT signs FROM signs WHERE id BETWEEN ? AND ? ORDER BY id", (low, high))
    near = nearest([bytes(content) for (content,) in signs], alike, units)
    rows = connection.execute(
        "SELECT id - ?, vector FROM vectors WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (low, ids_told(low, sorted({*chosen, *near}) if near else [])),
    )
    return likeness_of({int(unit): bytes(content) for unit, content in rows}, alike)


def ids_told(low: int, units: Iterable[int]) -> str:
    """The ids of these units as one value to bind, a JSON list."""
    return f"[{','.join(str(low + unit) for unit in units)}]"
