"""A file of records read to its end whatever stands in it: a broken line is told, and the rest counts.

This is the reading of `measure`, where one torn line must not cost a month of sessions. `Source` is the
strict twin. Memory holds one line of a JSONL file at a time; a JSON document is held whole, within the
limits of `Source`. Passed over and told: what is not JSON, lines above LINE_BYTES_MAX, a gzip that breaks
off. NUL bytes at the ends of a line, which a crash while writing leaves behind, are taken off and told. Of a
key that is named twice in one object the last counts.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping

from shiftbook.errors import SessionUnreadable
from shiftbook.sessions.requests import BrokenLine
from shiftbook.sessions.source import FILE_BYTES_MAX, LINE_BYTES_MAX, Place, Record, Source

_DECODER = json.JSONDecoder()

FAULTS_MAX = 1_000
"""Faults of one file that are told one by one; the others are counted."""


class Faults:
    """The broken parts of a file, at most FAULTS_MAX of them and a count of the rest."""

    def __init__(self) -> None:
        self._told: list[BrokenLine] = []
        self._more = 0

    def add(self, line: int, what: str) -> None:
        """One more."""
        if len(self._told) < FAULTS_MAX:
            self._told.append(BrokenLine(line, what))
        else:
            self._more += 1

    def all(self) -> tuple[BrokenLine, ...]:
        """In the order in which they were met."""
        more = (BrokenLine(0, f"{self._more:,} more broken lines are not listed"),) if self._more else ()
        return (*self._told, *more)


def raw_lines(source: Source, faults: Faults) -> Iterator[tuple[int, bytes]]:
    """The numbered lines that hold something, without the white space and NUL bytes around them."""
    number, total = 0, 0
    with source.open() as stream:
        while True:
            number += 1
            try:
                line = stream.readline(LINE_BYTES_MAX + 1)
                if len(line) > LINE_BYTES_MAX:
                    faults.add(number, f"the line is larger than {LINE_BYTES_MAX >> 20} MiB")
                    while line and not line.endswith(b"\n"):
                        total += len(line)
                        line = stream.readline(LINE_BYTES_MAX)
                    continue
            except (EOFError, zlib.error, gzip.BadGzipFile):
                faults.add(number, "the gzip data is broken or cut off here")
                return
            except OSError as problem:
                faults.add(number, f"the file cannot be read further ({problem.strerror or problem})")
                return
            if not line:
                return
            total += len(line)
            if total > FILE_BYTES_MAX:
                faults.add(
                    number, f"the file is larger than {FILE_BYTES_MAX >> 20} MiB: the rest is not read"
                )
                return
            kept = line.strip()
            if b"\x00" in line:
                faults.add(number, "holds NUL bytes, which a crash while writing leaves")
                kept = kept.strip(b"\x00 \t\r\n")
            if number == 1:
                kept = kept.removeprefix(b"\xef\xbb\xbf")
            if kept:
                yield number, kept


def parsed(line: bytes, number: int, faults: Faults) -> Mapping[str, object] | None:
    """The JSON object that a line is, or None and a fault."""
    try:
        text = line.decode("utf-8", "surrogatepass")
        value, end = _DECODER.raw_decode(text)
        if end != len(text):
            faults.add(number, "is not JSON: more follows")
            return None
    except UnicodeDecodeError:
        faults.add(number, "is not UTF-8 text")
        return None
    except (ValueError, RecursionError):
        torn = line[:1] == b"{" and line[-1:] != b"}"
        faults.add(number, "is cut off in the middle of a JSON value" if torn else "is not JSON")
        return None
    if isinstance(value, dict):
        return value
    faults.add(number, "is not a JSON object")
    return None


def records(source: Source, faults: Faults) -> Iterator[Record]:
    """The records of a file in order: JSONL line by line, a JSON document or list as `Source` reads it.

    Raises SessionUnreadable for a document that is no JSON, of which nothing can be kept.
    """
    if source.layout == "lines":
        for number, line in raw_lines(source, faults):
            value = parsed(line, number, faults)
            if value is not None:
                yield Record(Place(source.path, number), value)
        return
    read = source.records()
    met = 0
    while True:
        try:
            record = next(read)
        except StopIteration:
            return
        except SessionUnreadable as broken:
            if not met:
                raise
            faults.add(broken.line, broken.what)
            return
        met += 1
        yield record
