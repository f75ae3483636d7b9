"""Lines back to a run, in memory and checked: the first line that no export wrote is refused by its number.

An export is hostile text. Every field has one type and one place; the chain, each blob's hash, the inbox
against the entries, the counts and the digest over all lines must come out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from shiftbook import canonical
from shiftbook.codec import SALT_BYTES, Row, blob_hash, genesis, link, open_row
from shiftbook.entries import FORMAT, KIND_NUMBERS, PersonSaid, RuleSet
from shiftbook.errors import BadInput, Damaged, NewerFormat, NotCanonical
from shiftbook.journal.promises import InboxItem
from shiftbook.messages import Json
from shiftbook.payload import from_plain
from shiftbook.projections.blobs import blobs_of
from shiftbook.transfer.lines import (
    BLOB,
    END,
    ENTRY,
    ENTRY_WITH_HEAD,
    EXPORT,
    HEADER,
    LINE_CHARS_MAX,
    MOVED,
    WAITING,
    item_payload,
)

HEAD_BYTES = 32
NUMBER_MAX = canonical.INT_SAFE_MAX
ITEM_ID_CHARS_MAX = 200

_HEX = frozenset("0123456789abcdef")
_FOREIGN = (
    "This is no Shiftbook export: its first line is not the header of one. If it is a session that another "
    "program recorded, use `shiftbook rerun FILE`."
)


@dataclass(slots=True)
class WholeRun:
    """A run as its export holds it; `epoch` is the lease's when it was exported."""

    run: str
    epoch: int
    rows: list[Row] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)
    items: list[InboxItem] = field(default_factory=list)


class Reader:
    """Takes the lines one by one, in order."""

    def __init__(self) -> None:
        self._number = 0
        self._digest = hashlib.sha256()
        self._whole: WholeRun | None = None
        self._head = b""
        self._ended = False
        self._moved: dict[str, InboxItem] = {}
        """Items that entries name and no inbox line has told yet."""
        self._item_ids: set[str] = set()

    def take(self, line: str) -> None:
        """Read the next line, with or without its newline.

        Raises `BadInput` with the line's number, `NewerFormat` for what a newer Shiftbook wrote.
        """
        self._number += 1
        if self._ended:
            raise self._fault("it stands after the end of the export")
        if len(line) > LINE_CHARS_MAX:
            raise self._fault(f"it has {len(line)} characters, and an export at most {LINE_CHARS_MAX} a line")
        text = line.removesuffix("\n")
        try:
            self._read(canonical.decode(text))
        except NotCanonical as error:
            raise self._fault(str(error)) if self._whole else BadInput(_FOREIGN) from None
        except NewerFormat as error:
            raise NewerFormat(f"Line {self._number} of the export: {error}") from None
        except (Damaged, TypeError, ValueError, KeyError) as error:
            raise self._fault(str(error)) from None
        self._digest.update((text + "\n").encode("utf-8"))

    def whole(self) -> WholeRun:
        """The run, once its end was read. Raises `BadInput` before."""
        if self._whole is None:
            raise BadInput("The export is empty; give a file that `shiftbook export` wrote.")
        if not self._ended:
            raise BadInput(
                f"The export breaks off after line {self._number}: its end line is missing. Fetch it again, "
                "whole; nothing was written."
            )
        return self._whole

    def _fault(self, what: str) -> BadInput:
        return BadInput(
            f"Line {self._number} of the export cannot be used: {what.rstrip('.')}. Nothing was written."
        )

    def _read(self, plain: Json) -> None:
        if self._whole is None:
            self._whole = _header(plain)
            self._head = genesis(self._whole.run)
            return
        if not isinstance(plain, dict):
            raise TypeError("it is not an object")
        read = _LINES.get(next(iter(plain), ""))
        if read is None:
            raise TypeError("it is neither an entry, nor a blob, an inbox item or the end")
        read(self, self._whole, plain)

    def _entry(self, whole: WholeRun, plain: Mapping[str, Json]) -> None:
        _fields(plain, ENTRY_WITH_HEAD if "head" in plain else ENTRY)
        row = Row(
            position=_number(plain["entry"], 1),
            kind=_text(plain["kind"]),
            version=_number(plain["version"], 1),
            at_ms=_number(plain["at"], -NUMBER_MAX),
            epoch=_number(plain["epoch"], 1),
            salt=_hex(plain["salt"], SALT_BYTES),
            payload=_text(plain["payload"]),
            head=_hex(plain["head"], HEAD_BYTES) if "head" in plain else None,
        )
        if row.position != len(whole.rows) + 1:
            raise ValueError(f"entry {row.position} stands after entry {len(whole.rows)}")
        if self._item_ids:
            raise ValueError("an entry stands after the inbox items")
        if row.epoch > whole.epoch or (whole.rows and row.epoch < whole.rows[-1].epoch):
            raise ValueError("its lease epoch is below that of the entry before, or above the header's")
        if row.version <= FORMAT and row.kind not in KIND_NUMBERS:
            raise ValueError(f"there is no kind {row.kind!a:.60}")
        entry = open_row(row, _given(whole.blobs))
        for name in blobs_of(entry):
            _given(whole.blobs)(name)
        self._head = link(self._head, row)
        if row.head is not None and row.head != self._head:
            raise ValueError("the chain is broken, so an entry since the last head is not what was written")
        if isinstance(entry.what, PersonSaid | RuleSet) and entry.what.item is not None:
            name = entry.what.item
            if name in self._moved:
                raise ValueError(f"inbox item {name!a:.60} is in two entries")
            self._moved[name] = InboxItem(name, row.kind, 0, item_payload(entry), row.position)
        whole.rows.append(row)

    def _blob(self, whole: WholeRun, plain: Mapping[str, Json]) -> None:
        _fields(plain, BLOB)
        name, content = _text(plain["blob"]), plain["content"]
        if type(content) is not bytes or blob_hash(content) != name or name in whole.blobs:
            raise ValueError("the blob's content does not hash to its name, or stands here for a second time")
        whole.blobs[name] = content

    def _inbox(self, whole: WholeRun, plain: Mapping[str, Json]) -> None:
        is_moved = "moved_to" in plain
        _fields(plain, MOVED if is_moved else WAITING)
        name, kind = _text(plain["inbox"]), _text(plain["kind"])
        at_ms = _number(plain["at"], -NUMBER_MAX)
        if not (0 < len(name) <= ITEM_ID_CHARS_MAX and name.isascii() and name.isprintable()):
            raise ValueError(f"{name!a:.60} cannot be the id of an inbox item")
        if name in self._item_ids:
            raise ValueError(f"inbox item {name!a:.60} stands here for a second time")
        self._item_ids.add(name)
        item = self._moved.pop(name, None)
        if not is_moved:
            if item is not None:
                raise ValueError(f"inbox item {name!a:.60} waits, but entry {item.moved_to} holds it")
            payload = _text(plain["payload"])
            from_plain(kind, canonical.decode(payload))  # type: ignore[arg-type]
            whole.items.append(InboxItem(name, kind, at_ms, payload))
        elif item is None or (item.kind, item.moved_to) != (kind, plain["moved_to"]):
            raise ValueError(f"inbox item {name!a:.60} is said to be in an entry that does not name it")
        else:
            whole.items.append(replace(item, at_ms=at_ms))

    def _end(self, whole: WholeRun, plain: Mapping[str, Json]) -> None:
        _fields(plain, END)
        counted = (len(whole.rows), len(whole.blobs), len(whole.items), self._head.hex())
        if tuple(plain[name] for name in END[1:]) != counted:
            raise ValueError(
                "it counts other lines than were read, or ends in another head: lines are missing"
            )
        if not whole.rows or whole.rows[-1].head is None:
            raise ValueError("the last entry carries no chain head")
        if self._moved:
            raise ValueError(f"inbox item {next(iter(self._moved))!a:.60} is in an entry and has no line")
        if plain["end"] != self._digest.hexdigest():
            raise ValueError("the digest over all lines is another: a line before it was altered")
        self._ended = True


_LINES: Mapping[Json, Callable[[Reader, WholeRun, Mapping[str, Json]], None]] = {
    "entry": Reader._entry,
    "blob": Reader._blob,
    "inbox": Reader._inbox,
    "end": Reader._end,
}


def _header(plain: Json) -> WholeRun:
    if not isinstance(plain, dict) or plain.get("shiftbook") != "export":
        raise NotCanonical(_FOREIGN)
    version = _number(plain.get("export"), 1)
    if version > EXPORT:
        raise NewerFormat(
            f"the export has version {version}; this Shiftbook reads up to {EXPORT}. Update Shiftbook "
            "to read it; nothing was written."
        )
    _fields(plain, HEADER)
    _text(plain["engine"])
    return WholeRun(_text(plain["run"]), _number(plain["epoch"], 1))


def _given(blobs: Mapping[str, bytes]) -> Callable[[str], bytes]:
    def read(name: str) -> bytes:
        if name not in blobs:
            raise ValueError(f"it needs blob {name[:12]!a}, which no line before it holds")
        return blobs[name]

    return read


def _fields(plain: Mapping[str, Json], names: tuple[str, ...]) -> None:
    if tuple(plain) != names:
        odd = [*(name for name in plain if name not in names), *(name for name in names if name not in plain)]
        raise TypeError(
            f"its fields are {', '.join(names)}, in this order{f', not {odd[0]!a:.60}' if odd else ''}"
        )


def _text(value: Json) -> str:
    if type(value) is not str:
        raise TypeError(f"a text was expected, not {value!a:.40}")
    return value


def _number(value: Json, least: int) -> int:
    if type(value) is not int or not least <= value <= NUMBER_MAX:
        raise TypeError(f"a whole number from {least} on was expected, not {value!a:.40}")
    return value


def _hex(value: Json, size: int) -> bytes:
    text = _text(value)
    if len(text) != 2 * size or not _HEX.issuperset(text):
        raise TypeError(f"{2 * size} hexadecimal digits were expected, not {text!a:.40}")
    return bytes.fromhex(text)
