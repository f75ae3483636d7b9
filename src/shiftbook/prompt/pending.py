"""What is open, as a section of the brief: calls without an answer, unknown outcomes, words not answered.

A pick of this form names the entries that it is made of, and the fold over exactly these gives the lines: the
same from the entries as they are and from their excerpts, whatever else of the run is at hand. `keep` bounds
the section as it bounds the others: the newest lines stand, those left out are counted and named.

Arguments and words are quoted by their beginnings. No key of a call is shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from shiftbook.entries import Entry, Pick
from shiftbook.errors import Damaged
from shiftbook.messages import Block, Text
from shiftbook.projections.pending import OpenCall, Pending, excerpt, named, open_calls, pending_of
from shiftbook.prompt import wording
from shiftbook.prompt.brief import PENDING, Line, within
from shiftbook.prompt.cut import plain_arguments
from shiftbook.prompt.quoting import arguments_told, quoted
from shiftbook.prompt.told import entry_text, quoted_name, stamp

WORDS_CHARS = 200
"""A person's words are quoted up to this length: whole they stand in the turns, or are carried."""


def pending_pick(pending: Pending, last: int) -> Pick | None:
    """The pick of what is open after the entry at `last`; None where nothing is."""
    of = named(pending)
    return Pick(1, last, PENDING, None, of) if of else None


def render_pending(pick: Pick, entries: Mapping[int, Entry]) -> list[Block]:
    """The section, none where nothing that it names is open. `Damaged` for an entry that is not there."""
    found: list[Entry] = []
    for position in sorted(set(pick.of)):
        entry = entries.get(position) or entries.get(-position)
        if entry is None or not pick.first <= position <= pick.last:
            raise Damaged(f"The recipe names entry {position} as open, which is not there.")
        found.append(excerpt(entry))
    pending = pending_of(found)
    lines = _lines(pending)
    if not lines:
        return []
    return [Block("user", (Text(within(wording.PENDING_HEAD, lines, pick.keep)),), PENDING, named(pending))]


def _lines(pending: Pending) -> list[Line]:
    lines = [_call(each) for each in open_calls(pending)]
    for position, entry in pending.words.items():
        words = quoted(entry_text(entry), WORDS_CHARS)
        lines.append(Line(wording.words_open(position, stamp(entry.at_ms), words), position))
    return sorted(lines, key=lambda line: line.last)


def _call(each: OpenCall) -> Line:
    since = each.since
    asked = f"{quoted_name(each.call.id)} of {quoted_name(each.call.tool)}"
    if told := arguments_told(plain_arguments(each.call)):
        asked += f" ({told})"
    position = abs(since.position)
    text = wording.call_open(asked, position, stamp(since.at_ms), is_unknown=each.answer is not None)
    return Line(text, position)
