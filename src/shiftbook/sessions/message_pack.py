"""MessagePack as plain data: numbers, texts, bytes, lists, maps, and extensions as they stand.

Written from the format's specification (github.com/msgpack/msgpack/blob/master/spec.md). An extension is a
type and its bytes; nothing is made of it here, so nothing in a file can be run. It refuses what is cut off,
nested deeper than DEPTH_MAX, or followed by more bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

DEPTH_MAX = 100


class NotMessagePack(Exception):
    """The bytes are no MessagePack value."""


@dataclass(frozen=True, slots=True)
class Extension:
    """An extension: its type and what it holds."""

    kind: int
    data: bytes


def unpacked(data: bytes) -> object:
    """The one value that the bytes are; raises NotMessagePack."""
    value, end = _value(data, 0, 0)
    if end != len(data):
        raise NotMessagePack("more bytes follow")
    return value


_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_SIZED = {
    0xC4: ("bytes", ">B"),
    0xC5: ("bytes", ">H"),
    0xC6: ("bytes", ">I"),
    0xC7: ("extension", ">B"),
    0xC8: ("extension", ">H"),
    0xC9: ("extension", ">I"),
    0xD9: ("text", ">B"),
    0xDA: ("text", ">H"),
    0xDB: ("text", ">I"),
    0xDC: ("list", ">H"),
    0xDD: ("list", ">I"),
    0xDE: ("map", ">H"),
    0xDF: ("map", ">I"),
}


def _value(data: bytes, at: int, depth: int) -> tuple[object, int]:
    if depth > DEPTH_MAX:
        raise NotMessagePack(f"nested deeper than {DEPTH_MAX} levels")
    head, at = _bytes(data, at, 1)
    first = head[0]
    if first <= 0x7F:
        return first, at
    if first >= 0xE0:
        return first - 0x100, at
    if first <= 0x8F:
        return _map(data, at, first & 0x0F, depth)
    if first <= 0x9F:
        return _list(data, at, first & 0x0F, depth)
    if first <= 0xBF:
        return _text(data, at, first & 0x1F)
    if first in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[first], at
    if first in _NUMBERS:
        return _number(data, at, _NUMBERS[first])
    if 0xD4 <= first <= 0xD8:
        return _extension(data, at, 1 << (first - 0xD4))
    if first not in _SIZED:
        raise NotMessagePack(f"the byte {first:#x} begins no value")
    kind, form = _SIZED[first]
    size, at = _number(data, at, form)
    assert isinstance(size, int)
    if kind == "bytes":
        return _bytes(data, at, size)
    if kind == "text":
        return _text(data, at, size)
    if kind == "extension":
        return _extension(data, at, size)
    return (_list if kind == "list" else _map)(data, at, size, depth)


def _bytes(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise NotMessagePack("cut off")
    return data[at : at + size], at + size


def _number(data: bytes, at: int, form: str) -> tuple[int | float, int]:
    raw, at = _bytes(data, at, struct.calcsize(form))
    number: int | float = struct.unpack(form, raw)[0]
    return number, at


def _text(data: bytes, at: int, size: int) -> tuple[str, int]:
    raw, at = _bytes(data, at, size)
    return raw.decode("utf-8", "replace"), at


def _extension(data: bytes, at: int, size: int) -> tuple[Extension, int]:
    kind, at = _number(data, at, ">b")
    raw, at = _bytes(data, at, size)
    return Extension(int(kind), raw), at


def _list(data: bytes, at: int, size: int, depth: int) -> tuple[list[object], int]:
    found: list[object] = []
    for _ in range(size):
        value, at = _value(data, at, depth + 1)
        found.append(value)
    return found, at


def _map(data: bytes, at: int, size: int, depth: int) -> tuple[dict[object, object], int]:
    found: dict[object, object] = {}
    for _ in range(size):
        key, at = _value(data, at, depth + 1)
        value, at = _value(data, at, depth + 1)
        found[key if isinstance(key, (str, int, float, bytes, bool)) else repr(key)[:80]] = value
    return found, at
