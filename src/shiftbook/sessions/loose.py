"""What a foreign record says where it can be had: the wrong type is the same as nothing.

The readers of requests go through files that are half broken, so nothing here raises. The strict twin,
which refuses with the field's name, is `sessions.fields`: it serves what will be driven through an engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_WHOLE_MAX = 2**53
_NOTHING: Mapping[str, object] = {}


def text(value: Mapping[str, object], key: str) -> str | None:
    """A text that is not empty."""
    found = value.get(key)
    return found if isinstance(found, str) and found else None


def inner(value: Mapping[str, object], key: str) -> Mapping[str, object]:
    """An inner object; empty when there is none."""
    found = value.get(key)
    return found if isinstance(found, dict) else _NOTHING


def objects(value: Mapping[str, object], key: str) -> Iterator[Mapping[str, object]]:
    """The objects of an inner list; what else stands in it is passed over."""
    found = value.get(key)
    if isinstance(found, list):
        yield from (each for each in found if isinstance(each, dict))


def whole(value: Mapping[str, object], key: str) -> int | None:
    """A whole number from 0 to 2^53."""
    found = value.get(key)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= _WHOLE_MAX:
        return None
    return found


def stamp_ms(value: Mapping[str, object], key: str) -> int | None:
    """Unix milliseconds of an ISO 8601 text (no zone: UTC) or of a number of Unix seconds to nanoseconds.

    A number's unit is told by its size, which is sound from the year 2001 to 5138.
    """
    found = value.get(key)
    if isinstance(found, str):
        if found.isdecimal() and found.isascii() and len(found) < 20:
            return _number_ms(int(found))
        try:
            at = datetime.fromisoformat(found)
            return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // _MS
        except (ValueError, OverflowError):
            return None
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return _number_ms(found)
    return None


def _number_ms(number: float) -> int | None:
    if not 1e8 < number < 1e21:
        return None
    for unit in (1_000, 1, 1 / 1_000, 1 / 1_000_000):
        # Seconds, milliseconds, microseconds, nanoseconds: 1e12 ms is the year 2001.
        if 1e12 <= number * unit < 1e14:
            return int(number * unit)
    return None
