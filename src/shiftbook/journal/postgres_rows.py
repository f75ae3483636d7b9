"""How an entry lies in PostgreSQL: run and position as the key, the kind as a small number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shiftbook.codec import Row
from shiftbook.entries import FORMAT, KIND_NUMBERS
from shiftbook.errors import Damaged, NewerFormat

COLUMNS = "position, kind, version, at_ms, epoch, salt, payload, head"

ARRAYS = "%s::smallint[], %s::smallint[], %s::bigint[], %s::bigint[], %s::bytea[], %s::text[], %s::bytea[]"
"""Rows as the columns that `shiftbook.write` takes."""

_KINDS = {number: name for name, number in KIND_NUMBERS.items()}


def arrays_of(rows: Sequence[Row]) -> tuple[list[Any], ...]:
    """Rows as `ARRAYS`."""
    return (
        [KIND_NUMBERS[row.kind] for row in rows],
        [row.version for row in rows],
        [row.at_ms for row in rows],
        [row.epoch for row in rows],
        [row.salt for row in rows],
        [row.payload for row in rows],
        [row.head for row in rows],
    )


def row_of(columns: tuple[Any, ...], run: str, expected: int) -> Row:
    """The row at position `expected`; `Damaged` when this is none that any release wrote there."""
    position, kind, version, at_ms, epoch, salt, payload, head = columns
    if position != expected:
        raise Damaged(f"Entry {expected} of run {run} is missing or not a row that Shiftbook wrote.")
    name = _KINDS.get(kind)
    if name is not None:
        return Row(expected, name, version, at_ms, epoch, salt, payload, head)
    if version > FORMAT:
        raise NewerFormat(
            f"Entry {expected} of run {run} has format {version}; this Shiftbook reads up to {FORMAT}. "
            "Update Shiftbook to read this run; nothing was changed."
        )
    raise Damaged(f"Entry {expected} of run {run} is of kind {kind}, which does not exist.")
