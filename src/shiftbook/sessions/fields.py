"""Typed access to one JSON object of a foreign file: every getter checks, every fault has its place.

The files are hostile or merely odd, so no reader touches a raw value: it asks a `Fields` for a text, a
flag, a whole number, an inner object or a list. An absent field and a null are the same: None.

It refuses a field of another type with one sentence that names the field and the line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shiftbook.errors import SessionUnreadable
from shiftbook.sessions.source import Place, kind_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE_MAX = 2**53


@dataclass(frozen=True, slots=True)
class Fields:
    """One JSON object, its place, and its own name within the record ("message.usage")."""

    place: Place
    value: Mapping[str, object]
    name: str = ""

    def wrong(self, key: str, wanted: str) -> SessionUnreadable:
        """The error that `key` is not what was `wanted`."""
        found = kind_of(self.value[key]) if key in self.value else "missing"
        return self.place.unreadable(f'"{self.name}{key}" is {found}, not {wanted}')

    def text(self, key: str) -> str | None:
        """A text, or None."""
        value = self.value.get(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(key, "text")
        return value

    def need_text(self, key: str) -> str:
        """A text that must be there."""
        value = self.text(key)
        if value is None:
            raise self.wrong(key, "text")
        return value

    def flag(self, key: str) -> bool:
        """True or false; absent is false."""
        value = self.value.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return bool(value)

    def whole(self, key: str) -> int | None:
        """A whole number from 0 to 2^53, or None."""
        value = self.value.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _WHOLE_MAX:
            raise self.wrong(key, "a whole number of at least 0")
        return value

    def inner(self, key: str) -> Fields | None:
        """An inner object, or None."""
        value = self.value.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return Fields(self.place, value, f"{self.name}{key}.")

    def need_inner(self, key: str) -> Fields:
        """An inner object that must be there."""
        value = self.inner(key)
        if value is None:
            raise self.wrong(key, "an object")
        return value

    def objects(self, key: str) -> Iterator[Fields]:
        """The objects of an inner list; nothing when it is absent."""
        value = self.value.get(key)
        if value is not None and not isinstance(value, list):
            raise self.wrong(key, "a list")
        for number, element in enumerate(value or (), start=1):
            name = f"{self.name}{key}[{number}]"
            if not isinstance(element, dict):
                raise self.place.unreadable(f'"{name}" is {kind_of(element)}, not an object')
            yield Fields(self.place, element, f"{name}.")

    def stamp_ms(self, key: str) -> int | None:
        """An ISO 8601 time as Unix milliseconds, or None; one without a zone is taken as UTC."""
        written = self.text(key)
        if written is None:
            return None
        try:
            at = datetime.fromisoformat(written)
            return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)
        except (ValueError, OverflowError):
            raise self.place.unreadable(f'"{self.name}{key}" is not an ISO 8601 time') from None
