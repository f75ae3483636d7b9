"""Whatever a tool returned, ready to be recorded: never refused, never raising, never without bound.

Text is kept as text and everything that JSON can say as its canonical text (None is `null`). Bytes are text
when they are readable UTF-8, else media. Dataclasses and pydantic models are read field by field, sets are
sorted, arrays become lists. A value that cannot be walked stands as `{"type": ..., "repr": ...}` and a place
that is not followed (a circle, too deep, past the payload limit) as `{"type": ..., "cut": why}`.

A tool that returns an `Image` or a `File`, alone, in a list or inside other values, gives the model media.
"""

from __future__ import annotations

import enum
import traceback
from dataclasses import dataclass
from pathlib import Path

from shiftbook import canonical
from shiftbook.codec import blob_hash
from shiftbook.errors import NotCanonical
from shiftbook.messages import Media, Missing, Text
from shiftbook.tools.contract import Output
from shiftbook.tools.plain import Walk, exact_text, shown

PAYLOAD_BYTES_MAX = 16 * 1024 * 1024
"""What one result may hold in all, in bytes; the rest is named as missing."""

TRACEBACK_CHARS_MAX = 20_000

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_UNREADABLE = frozenset(range(32)) - frozenset(b"\t\n\r\x1b") | {127}


@dataclass(frozen=True, slots=True)
class File:
    """A file for the model: its bytes, and its media type where the bytes do not tell."""

    data: bytes
    media_type: str | None = None
    name: str | None = None

    @classmethod
    def read(cls, path: str | Path, media_type: str | None = None) -> File:
        """The file at `path`, named after it; raises `OSError` when it cannot be read."""
        return cls(Path(path).read_bytes(), media_type, Path(path).name)


@dataclass(frozen=True, slots=True)
class Image(File):
    """A picture for the model: PNG, JPEG, GIF and WebP are known by their first bytes."""


def to_output(value: object, *, payload_bytes_max: int = PAYLOAD_BYTES_MAX, is_error: bool = False) -> Output:
    """The value as parts and blobs, at most `payload_bytes_max` bytes of them. Never raises."""
    outgoing = _Outgoing(payload_bytes_max)
    try:
        outgoing.take(value)
    except Exception:  # noqa: BLE001 - a hostile value may raise anything from anywhere
        outgoing = _Outgoing(payload_bytes_max)
        outgoing.text(canonical.encode(shown(value)))
    failed = is_error or (type(value) is Output and value.is_error is True)
    return Output(tuple(outgoing.parts), outgoing.blobs, failed)


def from_error(error: BaseException, *, payload_bytes_max: int = PAYLOAD_BYTES_MAX) -> Output:
    """What the model is told of an error: its type and its message, not where in the code it was."""
    return to_output(error, payload_bytes_max=payload_bytes_max, is_error=True)


def error_text(error: BaseException) -> str:
    """An error's type and its message, if it has one that can be had. Never raises."""
    name, message = type(error).__name__, error_message(error)
    return f"{name}: {message}" if message else name


def error_message(error: BaseException) -> str:
    """An error's own message, "" where making it fails. Never raises."""
    try:
        return exact_text(str(error))
    except Exception:  # noqa: BLE001 - the message is made by the error's own code
        return ""


def traceback_text(error: BaseException, *, chars_max: int = TRACEBACK_CHARS_MAX) -> str:
    """The error's traceback for the entry: the end of it when it is longer than `chars_max`. Never raises."""
    try:
        text = "".join(traceback.format_exception(error))
    except Exception:  # noqa: BLE001 - formatting calls the error's own code
        text = "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__ + "\n"
    if len(text) <= chars_max:
        return text
    return f"[{len(text) - chars_max} characters before this are cut]\n" + text[len(text) - chars_max :]


class _Outgoing:
    """Parts and blobs as they come together, within the limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._room = limit
        self.parts: list[Text | Media | Missing] = []
        self.blobs: dict[str, bytes] = {}

    def take(self, value: object) -> None:
        # A list that holds media or parts is a row of parts; any other list is one value.
        items = value if isinstance(value, list | tuple) and type(value) in (list, tuple) else ()
        if any(type(item) in _PART_MAKERS for item in items):
            for item in items:
                self._take_one(item)
        else:
            self._take_one(value)

    def _take_one(self, value: object) -> None:
        if isinstance(value, str) and not isinstance(value, enum.Enum):
            self.text(exact_text(value))
        elif isinstance(value, bytes | bytearray | memoryview):
            self._raw(bytes(value))
        elif type(value) is Text:
            self.text(exact_text(value.text))
        elif type(value) is Missing:
            self.parts.append(Missing(exact_text(value.what)))
        elif isinstance(value, File):
            self._file(value)
        elif type(value) is Output:
            self._output(value)
        elif isinstance(value, BaseException):
            self.text(error_text(value))
        else:
            self._structure(value)

    def text(self, text: str) -> None:
        size = len(text.encode("utf-8", "surrogatepass"))
        if size <= self._room:
            self._room -= size
            self.parts.append(Text(text))
            return
        kept = text.encode("utf-8", "surrogatepass")[: self._room].decode("utf-8", "ignore")
        self._room = 0
        if kept:
            self.parts.append(Text(kept))
        self.parts.append(Missing(f"the rest of this text: {size:,} bytes in all, {self._over()}"))

    def _raw(self, content: bytes) -> None:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            text = None
        if text is None or not _UNREADABLE.isdisjoint(content):
            self._media(content, _sniff(content), None)
        else:
            self.text(text)

    def _file(self, file: File) -> None:
        content = bytes(file.data)
        name = None if file.name is None else exact_text(file.name)
        self._media(content, exact_text(file.media_type or _sniff(content)), name)

    def _media(self, content: bytes, media_type: str, name: str | None) -> str | None:
        if len(content) > self._room:
            self.parts.append(Missing(f"{name or media_type}, {len(content):,} bytes, {self._over()}"))
            return None
        self._room -= len(content)
        blob = blob_hash(content)
        self.blobs[blob] = content
        self.parts.append(Media(blob, media_type, len(content), name))
        return blob

    def _output(self, output: Output) -> None:
        for part in output.content:
            if type(part) is Media:
                content = output.blobs.get(part.blob)
                if content is None:
                    self.parts.append(Missing(f"{part.media_type}, whose bytes the tool did not give"))
                else:
                    name = None if part.name is None else exact_text(part.name)
                    self._media(bytes(content), exact_text(part.media_type), name)
            else:
                self._take_one(part)

    def _structure(self, value: object) -> None:
        walk = Walk(self._room, leave=File)
        plain = walk.plain(value)
        try:
            text = canonical.encode(plain)
        except NotCanonical:
            text = canonical.encode(shown(value))
        self.text(text)
        if walk.is_short:
            self.parts.append(Missing(f"a part of this value, {self._over()}"))
        for file in walk.left:
            self._file(file)

    def _over(self) -> str:
        return f"over the payload limit of {self._limit:,} bytes"


_PART_MAKERS = (Image, File, Text, Missing)


def _sniff(content: bytes) -> str:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC if content.startswith(magic)), "application/octet-stream")
