"""Any Python value as the plain values of `shiftbook.canonical`, within a budget and without trusting it.

The walk calls no method that a subclass could have replaced where the base's own will do, follows each
container once on its way down, goes `DEPTH_MAX` deep and spends at most its budget of bytes; so circles, deep
nests, and small values that unfold to huge ones all end. Nothing is dropped silently: what is not followed
stands in place as a marker.
"""

from __future__ import annotations

import dataclasses
import enum
import os
import sys
import types
import uuid
from collections import deque
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from shiftbook import canonical
from shiftbook.messages import Json

DEPTH_MAX = 60
"""A third of the canonical text's own limit: a dict with odd keys takes three of its levels."""

REPR_CHARS_MAX = 2_000
_EXACT = (Decimal, datetime, date, time)
_SETS = (set, frozenset)
_CONTAINERS = (dict, list, tuple, deque, *_SETS)


def exact_text(value: str) -> str:
    """A text as a plain `str`, whatever its subclass says of itself."""
    return str.__str__(value)


def shown(value: object) -> dict[str, str]:
    """A value that cannot be walked: its type and its own description of itself. Never raises."""
    try:
        # Of these `repr` would follow every reference, as often as it is held.
        is_open = isinstance(value, _CONTAINERS) or dataclasses.is_dataclass(value)
        told = "(it cannot be read)" if is_open else exact_text(repr(value))
    except (Exception, SystemExit, GeneratorExit):  # noqa: BLE001 - `repr` runs the value's own code
        told = "(its repr fails)"
    if len(told) > REPR_CHARS_MAX:
        told = told[:REPR_CHARS_MAX] + f"... ({len(told):,} characters)"
    return {"type": type_name(value), "repr": told}


def type_name(value: object) -> str:
    """The value's type, with its module unless it is a builtin."""
    # Through `type`, since a metaclass may have its own idea of these names.
    module = type.__getattribute__(type(value), "__module__")
    name = type.__dict__["__qualname__"].__get__(type(value))
    return exact_text(name) if module == "builtins" or type(module) is not str else f"{module}.{name}"


class Walk:
    """One walk over one value. `is_short` tells whether the budget ran out; `left` are values set aside."""

    def __init__(self, budget: int, *, leave: type | None = None) -> None:
        """`budget` is in bytes of text, roughly; values of type `leave` are named in place and set aside."""
        self._budget = budget
        self._leave = leave
        self._above: set[int] = set()
        self.is_short = False
        self.left: list[Any] = []

    def plain(self, value: object) -> Json:
        """The value in plain terms."""
        # The plain ones first: nearly all values are of these.
        kind = type(value)
        self._budget -= 2
        if self._budget < 0:
            self.is_short = True
            return {"type": type_name(value), "cut": "payload limit"}
        if kind is str:
            return self._text(value)  # type: ignore[arg-type]
        if value is None or kind is bool or kind is float:
            return value
        try:
            return self._plain(value)
        except Exception:  # noqa: BLE001 - a value may raise anything, or change while it is read
            self._budget -= REPR_CHARS_MAX
            return shown(value)

    def _plain(self, value: object) -> Json:
        kind = type(value)
        if isinstance(value, enum.Enum):
            return self.plain(value.value)
        if isinstance(value, str):
            return self._text(exact_text(value))
        if isinstance(value, int):
            self._budget -= value.bit_length() // 3
            return int.__int__(value)
        if isinstance(value, float):
            return float.__float__(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return self._bytes(value)
        if kind in _EXACT:
            canonical.encode(value)
            return value
        if self._leave is not None and isinstance(value, self._leave):
            self.left.append(value)
            return {"type": type_name(value), "given": f"as part {len(self.left)} after this text"}
        if isinstance(value, os.PathLike):
            return self.plain(os.fspath(value))
        if isinstance(value, uuid.UUID | timedelta):
            return str(value)
        return self._container(value)

    def _text(self, text: str) -> Json:
        self._budget -= len(text)
        if self._budget >= 0:
            return text
        self.is_short = True
        return text[: max(0, len(text) + self._budget)]

    def _bytes(self, value: bytes | bytearray | memoryview) -> Json:
        size = memoryview(value).nbytes
        self._budget -= size * 4 // 3
        if self._budget >= 0:
            return bytes(value)
        self.is_short = True
        return {"type": type_name(value), "cut": f"payload limit, {size:,} bytes"}

    def _container(self, value: object) -> Json:
        if id(value) in self._above:
            return {"type": type_name(value), "cut": "it holds itself"}
        if len(self._above) >= DEPTH_MAX:
            return {"type": type_name(value), "cut": f"more than {DEPTH_MAX} deep"}
        self._above.add(id(value))
        try:
            return self._opened(value)
        finally:
            self._above.discard(id(value))

    def _opened(self, value: object) -> Json:
        if isinstance(value, dict):
            return self._pairs(dict.items(value), value)
        if isinstance(value, types.MappingProxyType):
            return self._pairs(value.items(), value)
        if isinstance(value, list):
            return self._items(list.__iter__(value), value)
        if isinstance(value, tuple):
            return self._items(tuple.__iter__(value), value)
        if isinstance(value, deque):
            return self._items(deque.__iter__(value), value)
        if isinstance(value, _SETS):
            items = set.__iter__(value) if isinstance(value, set) else frozenset.__iter__(value)
            return sorted(self._items(items, value), key=canonical.encode)
        if isinstance(value, BaseException):
            return {"type": type_name(value), "message": self._text(exact_text(str(value)))}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [item.name for item in dataclasses.fields(value)]
            return self._pairs([(name, getattr(value, name)) for name in names], value)
        if _is_pydantic(value):
            return self.plain(value.model_dump())  # type: ignore[attr-defined]
        if hasattr(type(value), "tolist") and value.nbytes <= self._budget:  # type: ignore[attr-defined]
            return self.plain(value.tolist())  # type: ignore[attr-defined]
        self._budget -= REPR_CHARS_MAX
        return shown(value)

    def _items(self, items: Iterable[object], of: object) -> list[Json]:
        plain = []
        for item in items:
            if self._budget <= 0:
                self.is_short = True
                plain.append({"type": type_name(of), "cut": "payload limit"})
                break
            plain.append(self.plain(item))
        return plain

    def _pairs(self, items: Iterable[tuple[object, object]], of: object) -> Json:
        pairs = []
        for key, item in items:
            if self._budget <= 0:
                self.is_short = True
                pairs.append((f"(cut: {type_name(of)})", "payload limit"))
                break
            pairs.append((self.plain(key), self.plain(item)))
        if all(type(key) in _KEYS for key, _ in pairs):
            plain = dict(pairs)
            if len(plain) == len(pairs):
                return plain
        # Keys that are lists or objects in plain terms, or fell together in them: told one by one.
        return {"type": type_name(of), "items": [list(pair) for pair in pairs]}


_KEYS = frozenset({type(None), bool, int, float, str, bytes, *_EXACT})


def _is_pydantic(value: object) -> bool:
    # Whoever returns a model has loaded pydantic; looking it up does not load it for those who have not.
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(value, pydantic.BaseModel)
