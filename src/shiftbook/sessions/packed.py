"""Files that hold sessions in a wrapping that is not read: told by their first bytes, with what to do."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from shiftbook.sessions.source import Source

_PACKERS: Mapping[bytes, str] = {
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"7z\xbc\xaf\x27\x1c": "7-Zip",
    b"Rar!": "RAR",
}
_TAR, _TAR_AT = b"ustar", 257


def packed_as(source: Source) -> str | None:
    """What a file of no known format is packed as and what to do, as the end of a sentence; None if not."""
    if source.container == "zip":
        return "is a zip archive and no log of Inspect; unpack it and name the folder"
    try:
        with source.open() as stream:
            head = stream.read(_TAR_AT + len(_TAR))
    except (OSError, EOFError, zlib.error):
        return None
    if head[_TAR_AT:] == _TAR:
        return "is a tar archive; unpack it and name the folder"
    for opening, packer in _PACKERS.items():
        if head.startswith(opening):
            return f"is packed with {packer}, which is not read; unpack it first"
    return None
