"""How an entry lies in the table: one integer key for run and position, the kind as a small number."""

from __future__ import annotations

from typing import Any

import apsw

from shiftbook.codec import Row
from shiftbook.entries import FORMAT, KIND_NUMBERS
from shiftbook.errors import Damaged, NewerFormat
from shiftbook.journal.admission import POSITION_MAX

POSITION_BITS = 32

COLUMNS = "id, kind, version, at_ms, epoch, salt, payload, head"

_KINDS = {number: name for name, number in KIND_NUMBERS.items()}
_SHAPES = frozenset(
    {
        (int, int, int, int, int, bytes, str, bytes),
        (int, int, int, int, int, bytes, str, type(None)),
    }
)


def span(number: int) -> tuple[int, int]:
    """The ids that the entries of a run can have, lowest and highest."""
    base = number << POSITION_BITS
    return base + 1, base | POSITION_MAX


def columns_of(base: int, row: Row) -> tuple[apsw.SQLiteValue, ...]:
    """A row as `COLUMNS`; `base` is the run's number in place."""
    return (
        base + row.position,
        KIND_NUMBERS[row.kind],
        row.version,
        row.at_ms,
        row.epoch,
        row.salt,
        row.payload,
        row.head,
    )


def row_of(columns: tuple[Any, ...], run: str, expected: int) -> Row:
    """The row at position `expected`; `Damaged` when this is none that any release wrote there."""
    if (*map(type, columns),) not in _SHAPES or columns[0] & POSITION_MAX != expected:
        raise Damaged(f"Entry {expected} of run {run} is missing or not a row that Shiftbook wrote.")
    _id, kind, version, at_ms, epoch, salt, payload, head = columns
    name = _KINDS.get(kind)
    if name is not None:
        return Row(expected, name, version, at_ms, epoch, salt, payload, head)
    if version > FORMAT:
        raise NewerFormat(
            f"Entry {expected} of run {run} has format {version}; this Shiftbook reads up to {FORMAT}. "
            "Update Shiftbook to read this run; nothing was changed."
        )
    raise Damaged(f"Entry {expected} of run {run} is of kind {kind}, which does not exist.")
