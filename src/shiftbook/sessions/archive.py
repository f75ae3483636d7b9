"""A zip archive of JSON documents, each member within the limits of a document whatever its header claims.

A member may be compressed with Zstandard (method 93 of PKWARE's APPNOTE 6.3.8), which Python's own zip reader
knows from 3.14 on. Before that the package `backports.zstd` unpacks it, and without it the member is told.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from shiftbook.errors import SessionUnreadable
from shiftbook.sessions.source import DOCUMENT_BYTES_MAX, Source
from shiftbook.sessions.streaming import Faults

MEMBERS_MAX = 1_000_000

_ZSTANDARD = 93
_HEAD = struct.Struct("<26xHH")
"""A member's local header; it ends with the lengths of the name and the extra field that follow it."""


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
        data = _unpacked(archive, name)
    except (
        zipfile.BadZipFile,
        zlib.error,
        OSError,
        EOFError,
        RuntimeError,
        ImportError,
        ValueError,
    ) as problem:
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


def _unpacked(archive: zipfile.ZipFile, name: str) -> bytes:
    """What a member holds, at most one byte more than a document may have."""
    member = archive.getinfo(name)
    if member.compress_type != _ZSTANDARD or sys.version_info >= (3, 14):
        with archive.open(member) as stream:
            return stream.read(DOCUMENT_BYTES_MAX + 1)
    return _zstandard(str(archive.filename), member)


def _zstandard(path: str, member: zipfile.ZipInfo) -> bytes:
    try:
        from backports.zstd import ZstdError, ZstdFile
    except ImportError:
        raise ImportError(
            "it is compressed with Zstandard, and Python reads that from 3.14 on or with "
            "pip install 'shiftbook[zstd]'"
        ) from None
    with Path(path).open("rb") as file:
        file.seek(member.header_offset)
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size or not head.startswith(b"PK\x03\x04"):
            raise zipfile.BadZipFile("its header is not where the archive says")
        file.seek(sum(_HEAD.unpack(head)[-2:]), os.SEEK_CUR)
        packed = file.read(min(member.compress_size, DOCUMENT_BYTES_MAX))
    try:
        with ZstdFile(BytesIO(packed)) as stream:
            data = stream.read(DOCUMENT_BYTES_MAX + 1)
    except ZstdError as problem:
        raise zipfile.BadZipFile(str(problem)) from None
    if len(data) <= DOCUMENT_BYTES_MAX and zlib.crc32(data) != member.CRC:
        raise zipfile.BadZipFile("its checksum is another")
    return data
