"""Entries to rows and back: canonical payload text, salted digests, and the chain over them.

A row's payload is canonical text. Its digest is salted, so that erasing payload and salt together leaves
nothing to guess from, and the chain covers digests, not payloads, so that it stays whole. The chain's head
is kept once per commit, on the commit's last row.

    digest = sha256(salt + payload)
    head   = sha256(previous head + position, kind, version, stamp, lease epoch + digest)

The codec refuses: a newer format, a payload that is not canonical, a kind or a field that it does not know.
It never falls back to another serializer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from shiftbook import canonical
from shiftbook.entries import FORMAT, Entry, What
from shiftbook.errors import Damaged, NewerFormat, NotCanonical
from shiftbook.messages import Json
from shiftbook.payload import from_plain, to_plain

SALT_BYTES = 16
INLINE_BYTES_MAX = 65_536
"""A payload longer than this (UTF-8 bytes) is kept as a blob of the run and named by its hash."""


@dataclass(frozen=True, slots=True)
class Row:
    """An entry as a store keeps it. `head` is the chain's head after it, on the last row of a commit."""

    position: int
    kind: str
    version: int
    at_ms: int
    epoch: int
    salt: bytes
    payload: str
    head: bytes | None = None


@dataclass(frozen=True, slots=True)
class Sealed:
    """A batch of entries ready for one commit: its rows, the blobs they name, the new head."""

    rows: tuple[Row, ...]
    blobs: Mapping[str, bytes]
    head: bytes


def blob_hash(content: bytes) -> str:
    """The name of a blob: sha256 of its bytes, in hex."""
    return hashlib.sha256(content).hexdigest()


def genesis(run: str) -> bytes:
    """The chain's head before the first entry of a run."""
    return hashlib.sha256(b"shiftbook chain 1\n" + run.encode("utf-8")).digest()


def link(head: bytes, row: Row) -> bytes:
    """The chain's head after `row`."""
    return _linked(head, row.position, row.kind, row.version, row.at_ms, row.epoch, row.salt, row.payload)


def _linked(
    head: bytes, position: int, kind: str, version: int, at_ms: int, epoch: int, salt: bytes, payload: str
) -> bytes:
    digest = hashlib.sha256(salt + payload.encode("utf-8", "surrogatepass")).digest()
    label = f"{position}\n{kind}\n{version}\n{at_ms}\n{epoch}\n"
    return hashlib.sha256(head + label.encode("utf-8") + digest).digest()


class Redact(Protocol):
    """Takes configured patterns out of what is to be written; tells how often each was found."""

    def __call__(self, plain: Json, /) -> tuple[Json, Mapping[str, int]]:
        """The plain value of an entry without them."""
        ...

    def blob(self, content: bytes) -> tuple[bytes, Mapping[str, int]]:
        """Bytes that are to become a blob without them; before hashing."""
        ...


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry on its way to a row: what it says after redaction, and what was taken out of it."""

    what: What
    plain: dict[str, Json]
    redacted: Mapping[str, int]


def draft(what: What, redact: Redact | None = None) -> Draft:
    """Prepare an entry. Redaction happens here, before hashing and before anything else sees the entry."""
    plain = to_plain(what)
    if redact is None:
        return Draft(what, plain, {})
    clean, taken = redact(plain)
    if not taken:
        return Draft(what, plain, {})
    return Draft(from_plain(type(what).__name__, clean), clean, dict(taken))


def seal(
    drafts: Sequence[Draft],
    *,
    after: int,
    head: bytes,
    at_ms: Sequence[int],
    epoch: int,
    token: Callable[[int], bytes],
) -> Sealed:
    """Make the rows of one commit that follows position `after` with chain head `head`."""
    rows: list[Row] = []
    blobs: dict[str, bytes] = {}
    salts = token(SALT_BYTES * len(drafts))
    last = after + len(drafts)
    for position, (item, stamp) in enumerate(zip(drafts, at_ms, strict=True), start=after + 1):
        plain = {**item.plain, "redacted": dict(item.redacted)} if item.redacted else item.plain
        payload = canonical.encode(plain)
        if len(payload) > INLINE_BYTES_MAX // 4:
            payload = _outsource(payload, blobs)
        salt, salts = salts[:SALT_BYTES], salts[SALT_BYTES:]
        kind = type(item.what).__name__
        head = _linked(head, position, kind, FORMAT, stamp, epoch, salt, payload)
        kept = head if position == last else None
        rows.append(Row(position, kind, FORMAT, stamp, epoch, salt, payload, kept))
    return Sealed(tuple(rows), blobs, head)


def _outsource(payload: str, blobs: dict[str, bytes]) -> str:
    content = payload.encode("utf-8")
    if len(content) <= INLINE_BYTES_MAX:
        return payload
    name = blob_hash(content)
    blobs[name] = content
    return f'{{"$blob":"{name}","size":{len(content)}}}'


def payload_blob(row: Row) -> str | None:
    """The hash of the blob that holds this row's payload, None when the row holds it itself."""
    if not row.payload.startswith('{"$blob":'):
        return None
    return row.payload[10:74]


def open_row(row: Row, blob: Callable[[str], bytes] | None = None) -> Entry:
    """Read an entry back. `blob` fetches an outsourced payload by its hash.

    Raises `NewerFormat` for a row of a later version and `Damaged` for anything that no release wrote.
    """
    if row.version > FORMAT:
        raise NewerFormat(
            f"Entry {row.position} has format {row.version}; this Shiftbook reads up to {FORMAT}. "
            "Update Shiftbook to read this run; nothing was changed."
        )
    payload = row.payload
    name = payload_blob(row)
    if name is not None:
        if blob is None:
            raise Damaged(f"Entry {row.position} keeps its payload in blob {name[:12]}, which was not given.")
        payload = blob(name).decode("utf-8", "replace")
    try:
        plain: Json = canonical.decode(payload)
        if not isinstance(plain, dict):
            raise TypeError("the payload is not an object")
        redacted = plain.pop("redacted", {})
        what = from_plain(row.kind, plain)
        if not all(isinstance(count, int) for count in redacted.values()):
            raise TypeError("a redaction mark is not a count")
    except (NotCanonical, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise Damaged(f"Entry {row.position} ({row.kind}) cannot be read: {error}") from error
    return Entry(row.position, row.at_ms, row.epoch, what, redacted)
