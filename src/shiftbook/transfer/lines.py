"""The five lines of an export: their fields, in their order.

    {"shiftbook":"export","export":1,"run":...,"engine":...,"epoch":...}            first
    {"blob":NAME,"content":{"$bytes":...}}                          before the first entry that needs it
    {"entry":POSITION,"kind":...,"version":...,"at":...,"epoch":...,"salt":HEX,"payload":TEXT,"head":HEX}
    {"inbox":ID,"kind":...,"at":...,"moved_to":POSITION} or ...,"payload":TEXT}     after the entries
    {"end":DIGEST,"entries":...,"blobs":...,"inbox":...,"head":HEX}                 last

`head` stands on the last entry of each commit only. Each line is the canonical text of its object.
"""

from __future__ import annotations

from dataclasses import replace

from shiftbook import canonical
from shiftbook.codec import Row
from shiftbook.entries import Entry, PersonSaid, RuleSet
from shiftbook.journal.promises import InboxItem
from shiftbook.messages import Json
from shiftbook.payload import to_plain

EXPORT = 1
"""Version of the export's lines; newer ones are refused."""

HEADER = ("shiftbook", "export", "run", "engine", "epoch")
BLOB = ("blob", "content")
ENTRY = ("entry", "kind", "version", "at", "epoch", "salt", "payload")
ENTRY_WITH_HEAD = (*ENTRY, "head")
WAITING = ("inbox", "kind", "at", "payload")
MOVED = ("inbox", "kind", "at", "moved_to")
END = ("end", "entries", "blobs", "inbox", "head")

LINE_CHARS_MAX = 400_000_000
"""Characters of a line: room for the largest value that a store takes, in base64."""


Line = tuple[Json, ...]
"""A line's fields as a tuple of names, then its values."""


def entry_line(row: Row) -> Line:
    """An entry's line."""
    values = (row.position, row.kind, row.version, row.at_ms, row.epoch, row.salt.hex(), row.payload)
    return (ENTRY, *values) if row.head is None else (ENTRY_WITH_HEAD, *values, row.head.hex())


def item_line(item: InboxItem) -> Line:
    """An inbox item's line; what a moved one held is in its entry."""
    if item.moved_to is not None:
        return (MOVED, item.id, item.kind, item.at_ms, item.moved_to)
    return (WAITING, item.id, item.kind, item.at_ms, item.payload)


def item_payload(entry: Entry) -> str:
    """What an inbox item held before it became this entry."""
    if not isinstance(entry.what, PersonSaid | RuleSet):
        raise TypeError(f"no inbox item becomes a {entry.kind}")
    return canonical.encode(to_plain(replace(entry.what, item=None)))
