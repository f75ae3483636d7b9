"""A file of records, plain or gzip, read line by line with every fault told by its line.

A record is one JSON object: a line of a JSONL file, an element of a JSON list, or the whole of a JSON
document that is one object. `Source.records` gives them in order with the line where each begins, so
that a reader need not know which of the three it was. Lines end at a line feed and nowhere else: U+2028
inside a text is text. Lone surrogates that JSON escapes are kept as they are.

It refuses, in one sentence: what is no regular file, a broken gzip, an empty file, NUL bytes, text that
is not UTF-8, what is cut off or not JSON (NaN and infinities included), an object that names one key
twice, nesting deeper than DEPTH_MAX, and sizes above LINE_BYTES_MAX, DOCUMENT_BYTES_MAX and
FILE_BYTES_MAX (all after decompression: a small gzip can hold terabytes).
"""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NoReturn

from shiftbook.errors import SessionUnreadable

LINE_BYTES_MAX = 64 * 1024 * 1024
DOCUMENT_BYTES_MAX = 256 * 1024 * 1024
FILE_BYTES_MAX = 2 * 1024 * 1024 * 1024
DEPTH_MAX = 200
SAMPLE_RECORDS = 64

Container = Literal["records", "sqlite", "zip"]

_GZIP_MAGIC = b"\x1f\x8b"
_SQLITE_MAGIC = b"SQLite format 3\x00"
_ZIP_MAGIC = b"PK\x03\x04"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a file, for the sentence that says what is wrong with it."""

    path: str
    line: int
    within: str = ""

    def unreadable(self, what: str) -> SessionUnreadable:
        """The error for this place: `what` reads on after "path, line N: "."""
        return SessionUnreadable(self.path, self.line, f"{self.within}{what}")


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON object of a file and the place where it begins."""

    place: Place
    value: Mapping[str, object]


class Source:
    """One file of records. Opening is lazy; each call of `records` reads the file anew."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._check_file()

    def records(self) -> Iterator[Record]:
        """The records in order; raises SessionUnreadable at the first one that cannot be read."""
        if self.layout == "lines":
            for place, text in self._lines():
                yield Record(place, _whole_object(text, place))
        elif self.layout == "object":
            place = Place(self.path, 1)
            yield Record(place, _whole_object(self._document, place))
        else:
            yield from self._elements()

    def sample(self) -> tuple[list[Mapping[str, object]], SessionUnreadable | None]:
        """The first readable records, and the first fault among the first SAMPLE_RECORDS of them.

        A broken line must not hide what kind of file this is, so in a JSONL file reading goes on after it.
        """
        found: list[Mapping[str, object]] = []
        fault: SessionUnreadable | None = None
        if self.container != "records":
            return found, fault
        try:
            if self.layout != "lines":
                for seen, record in enumerate(self.records(), start=1):
                    found.append(record.value)
                    if seen == SAMPLE_RECORDS:
                        break
                return found, fault
            for seen, (place, text) in enumerate(self._lines(), start=1):
                try:
                    found.append(_whole_object(text, place))
                except SessionUnreadable as broken:
                    fault = fault or broken
                if seen == SAMPLE_RECORDS:
                    break
        except SessionUnreadable as broken:
            fault = fault or broken
        return found, fault

    def _check_file(self) -> None:
        try:
            mode = Path(self.path).stat().st_mode
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "strerror", None) or str(problem)
            raise SessionUnreadable(self.path, 0, f"cannot be opened ({reason}); check the path") from None
        if stat.S_ISDIR(mode):
            raise SessionUnreadable(self.path, 0, "is a folder; name one session file in it")
        if not stat.S_ISREG(mode):
            raise SessionUnreadable(self.path, 0, "is not a regular file; save the session to one first")

    @cached_property
    def container(self) -> Container:
        """What holds the records, by the first bytes."""
        with self.open() as stream:
            try:
                head = stream.read(len(_SQLITE_MAGIC))
            except (EOFError, zlib.error, OSError):
                return "records"
        if head == _SQLITE_MAGIC:
            return "sqlite"
        return "zip" if head.startswith(_ZIP_MAGIC) else "records"

    def open(self) -> io.BufferedIOBase:
        """The bytes of the file, unpacked."""
        try:
            with Path(self.path).open("rb") as plain:
                packed = plain.read(2) == _GZIP_MAGIC
            return gzip.open(self.path, "rb") if packed else Path(self.path).open("rb")
        except OSError as problem:
            raise SessionUnreadable(
                self.path, 0, f"cannot be opened ({problem.strerror}); check the path and its permissions"
            ) from None

    def _byte_lines(self) -> Iterator[tuple[int, bytes]]:
        """Numbered raw lines that hold something, within the limits."""
        number, total = 0, 0
        with self.open() as stream:
            while True:
                try:
                    line = stream.readline(LINE_BYTES_MAX + 1)
                except (EOFError, zlib.error, gzip.BadGzipFile):
                    raise SessionUnreadable(
                        self.path, number + 1, "the gzip data is broken or cut off here; copy the file again"
                    ) from None
                except OSError as problem:
                    raise SessionUnreadable(
                        self.path, number + 1, f"cannot be read further ({problem.strerror or problem})"
                    ) from None
                if not line:
                    return
                number, total = number + 1, total + len(line)
                if len(line) > LINE_BYTES_MAX:
                    self._too_large(number, "a line", LINE_BYTES_MAX)
                if total > FILE_BYTES_MAX:
                    self._too_large(number, "the file", FILE_BYTES_MAX)
                if number == 1 and line.startswith(_BYTE_ORDER_MARK):
                    line = line[len(_BYTE_ORDER_MARK) :]
                if line.strip():
                    yield number, line

    def _too_large(self, line: int, what: str, limit: int) -> NoReturn:
        raise SessionUnreadable(
            self.path, line, f"{what} is larger than {limit // _MEBIBYTE} MiB, which no session should be"
        )

    def _lines(self) -> Iterator[tuple[Place, str]]:
        for number, line in self._byte_lines():
            place = Place(self.path, number)
            yield place, _decoded(line, place)

    @cached_property
    def _document(self) -> str:
        """The whole file as text, for a JSON document."""
        lines: list[str] = []
        total, last = 0, 0
        for number, line in self._byte_lines():
            total += len(line) + number - last - 1
            if total > DOCUMENT_BYTES_MAX:
                self._too_large(number, "a session file that is one JSON document", DOCUMENT_BYTES_MAX)
            lines.append("\n" * (number - last - 1))
            lines.append(_decoded(line, Place(self.path, number)))
            last = number if line.endswith(b"\n") else number - 1
        return "".join(lines)

    @cached_property
    def layout(self) -> str:
        """ "lines", "list" or "object": by the first character, then by whether line 1 is whole."""
        first = next(self._byte_lines(), None)
        if first is None:
            raise SessionUnreadable(self.path, 0, "is empty: there is no session in it")
        number, line = first
        start = line.lstrip()[:1]
        if start == b"[":
            return "list"
        if start != b"{":
            return "lines"
        place = Place(self.path, number)
        try:
            _whole_object(_decoded(line, place), place)
        except SessionUnreadable:
            try:
                _whole_object(self._document, place)
            except SessionUnreadable:
                return "lines"
            return "object"
        return "lines"

    def _elements(self) -> Iterator[Record]:
        """The objects of a document that is one JSON list, each with the line where it begins."""
        text = self._document
        position, line, counted = text.index("[") + 1, 1, 0
        expected = True
        while True:
            position = _after_space(text, position)
            line, counted = line + text.count("\n", counted, position), position
            place = Place(self.path, line)
            mark = text[position : position + 1]
            if mark == "]" or mark == "":
                break
            if not expected:
                if mark != ",":
                    raise place.unreadable("is not JSON: a comma or the end of the list is missing here")
                position, expected = position + 1, True
                continue
            value, position = _parsed(text, position, place)
            yield Record(place, _as_object(value, place))
            expected = False
        if mark == "":
            raise place.unreadable("the JSON list is cut off here; copy the file again")
        if _after_space(text, position + 1) != len(text):
            raise place.unreadable("is not JSON: something stands after the end of the list")


def parsed_or_none(text: str) -> object | None:
    """The value of a JSON text out of a record (a call's arguments), or None if it is no sound JSON.

    The text is kept beside its parse, so a key that is named twice is no loss here: the last one counts.
    """
    try:
        value: object = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return None if _too_deep(value) else value


def _decoded(line: bytes, place: Place) -> str:
    if b"\x00" in line:
        raise place.unreadable(
            "holds NUL bytes (a crash while writing leaves them, and so does UTF-16); "
            "remove them or save the file as UTF-8"
        )
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise place.unreadable(f"is not UTF-8 text (byte {problem.start + 1} of the line)") from None


def _whole_object(text: str, place: Place) -> Mapping[str, object]:
    """The one object that a text is."""
    value, end = _parsed(text, _after_space(text, 0), place)
    if _after_space(text, end) != len(text):
        raise place.unreadable(f"is not JSON: more text follows at column {end + 1}; one object a line")
    return _as_object(value, place)


def _as_object(value: object, place: Place) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise place.unreadable(f"is {kind_of(value)} where a JSON object should be")
    return value


def _parsed(text: str, start: int, place: Place) -> tuple[object, int]:
    """The value that begins at `start` and where it ends."""
    value: object
    try:
        value, end = _DECODER.raw_decode(text, start)
    except _NamedTwice as twice:
        raise place.unreadable(f"names the key {label(twice.key)!r} twice in one object") from None
    except json.JSONDecodeError as problem:
        torn = problem.pos >= len(text.rstrip()) or problem.msg.startswith("Unterminated string")
        if torn:
            raise place.unreadable(
                "is cut off in the middle of a JSON value (was the file copied while it was written?); "
                "copy it again or remove the torn end"
            ) from None
        where = Place(place.path, place.line + text.count("\n", start, problem.pos))
        raise where.unreadable(f"is not JSON: {problem.msg} at column {problem.colno}") from None
    except RecursionError:
        raise place.unreadable(f"is nested deeper than {DEPTH_MAX} levels") from None
    except ValueError as problem:
        raise place.unreadable(f"is not JSON that can be read: {problem}") from None
    if _too_deep(value):
        raise place.unreadable(f"is nested deeper than {DEPTH_MAX} levels")
    return value, end


def _too_deep(value: object) -> bool:
    """Whether nesting passes DEPTH_MAX; not left to the interpreter, whose own limit moves with the stack."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEPTH_MAX:
            return True
        level = [
            inner
            for outer in level
            for inner in (
                outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ()
            )
            if isinstance(inner, (dict, list))
        ]
    return False


class _NamedTwice(Exception):
    """A JSON object names a key twice."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _NamedTwice(key)
            seen.add(key)
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_each_key_once, parse_constant=_no_constant)


def _after_space(text: str, position: int) -> int:
    """The next position that is not JSON white space."""
    while text[position : position + 1] in (" ", "\t", "\r", "\n"):
        position += 1
    return position


def kind_of(value: object) -> str:
    """A JSON value's kind in words, for a sentence about it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (int, float)):
        return "a number"
    return "a list" if isinstance(value, list) else "an object"


def label(text: str) -> str:
    """A name out of a file, made fit for a sentence: printable, at most 40 characters."""
    return "".join(sign if sign.isprintable() else "?" for sign in text[:40])
