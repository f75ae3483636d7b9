"""A zip archive of JSON documents, each member within the limits of a document whatever its header claims."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from shiftbook.errors import SessionUnreadable
from shiftbook.sessions.source import DOCUMENT_BYTES_MAX, Source
from shiftbook.sessions.streaming import Faults

MEMBERS_MAX = 1_000_000


@contextmanager
def opened(source: Source) -> Iterator[zipfile.ZipFile]:
    """The archive; raises SessionUnreadable when it is none."""
    try:
        archive = zipfile.ZipFile(source.path)
    except (zipfile.BadZipFile, OSError, RuntimeError, ValueError, EOFError) as problem:
        raise SessionUnreadable(source.path, 0, f"is a zip archive that cannot be read ({problem})") from None
    with archive:
        if len(archive.infolist()) > MEMBERS_MAX:
            raise SessionUnreadable(source.path, 0, f"holds more than {MEMBERS_MAX:,} files")
        yield archive


def members(source: Source) -> Mapping[str, int]:
    """The size of each member."""
    with opened(source) as archive:
        return {member.filename: member.file_size for member in archive.infolist()}


def document(archive: zipfile.ZipFile, name: str, faults: Faults) -> Mapping[str, object] | None:
    """The JSON object that a member is, or None and a fault that names it."""
    try:
        with archive.open(name) as stream:
            data = stream.read(DOCUMENT_BYTES_MAX + 1)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError) as problem:
        faults.add(0, f"{name[:80]!r} cannot be unpacked ({problem})")
        return None
    if len(data) > DOCUMENT_BYTES_MAX:
        faults.add(0, f"{name[:80]!r} is larger than {DOCUMENT_BYTES_MAX >> 20} MiB")
        return None
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        faults.add(0, f"{name[:80]!r} is not JSON")
        return None
    if isinstance(value, dict):
        return value
    faults.add(0, f"{name[:80]!r} is not a JSON object")
    return None
