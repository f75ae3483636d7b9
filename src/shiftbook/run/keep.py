"""Keeping the book for a model: a call of a book tool, its entries and its answer, all in one commit.

Nothing is announced, since nothing outside can notice: a call that a crash cut off was never made, and is
made again with the same result. What was paid for is committed before the journal is read.
"""

from __future__ import annotations

from shiftbook.entries import (
    MODEL_VISIBLE,
    ActionFinished,
    Entry,
    Outcome,
    PlanChanged,
    Recalled,
    StatementMade,
    TallyChanged,
    UserContent,
)
from shiftbook.messages import Media, Text
from shiftbook.prompt.cut import level
from shiftbook.prompt.told import amount_text, entry_text, record_text, tally_name
from shiftbook.run.book import read_entries
from shiftbook.run.booktools import RECALL_CHARS_MAX, Search, Slice, kept_by
from shiftbook.run.desk import Desk
from shiftbook.run.noting import put_down
from shiftbook.run.step import Keep
from shiftbook.tools.contract import BadArguments


async def keep(desk: Desk, act: Keep) -> None:
    """Do what a call of a book tool asks for, and give it its one answer. Both are only staged."""
    call = desk.view.calls[act.call]
    try:
        what = kept_by(call.tool, call.arguments or {}, desk.knowledge, desk.view.answered_at)
    except BadArguments as fault:
        _answer(desk, act, "failed", (Text(f"The arguments do not fit: {fault}. Nothing was done."),))
        return
    match what:
        case Search():
            await desk.book.commit()
            await _search(desk, act, what)
        case Slice():
            await desk.book.commit()
            await _read(desk, act, what)
        case _:
            _answer(desk, act, "done", (Text(_said(desk, put_down(desk, what))),))


def _answer(desk: Desk, act: Keep, outcome: Outcome, content: UserContent) -> None:
    desk.note(ActionFinished(act.call, outcome, content))


def _said(desk: Desk, entry: Entry) -> str:
    """What a model is told of what it has put down: no more than it did not say itself."""
    at = f"entry {entry.position}"
    match entry.what:
        case TallyChanged(key=key, place=place):
            total = desk.knowledge.tallies[key, place].total
            return f"{tally_name(key, place)}: {amount_text(total)} now ({at})"
        case PlanChanged(items=items):
            left = sum(item.state in ("open", "doing") for item in items)
            return f"The plan is on record as {at}: {len(items)} items, {left} of them not done."
        case StatementMade(supersedes=before) if before is not None:
            return f"On record as {at}, instead of entry {before}."
    return f"On record as {at}."


async def _search(desk: Desk, act: Keep, what: Search) -> None:
    positions = list(dict.fromkeys(await desk.index.search(what.query, what.limit)))[: what.limit]
    found = [entry for at in positions for entry in await _entry(desk, at)]
    found.sort(key=lambda entry: entry.position)
    height = level([len(entry_text(entry)) for entry in found], RECALL_CHARS_MAX)
    texts = tuple(Text(record_text(entry, height)) for entry in found)
    desk.note(Recalled(what.query, tuple(entry.position for entry in found), "model"))
    _answer(desk, act, "done", texts or (Text("No entry of this run holds that."),))


async def _entry(desk: Desk, position: int) -> list[Entry]:
    """The entry at a position if a model may see it, else nothing."""
    entries = await read_entries(desk.book.store, desk.book.run, position - 1, position)
    return [entry for entry in entries if type(entry.what) in MODEL_VISIBLE]


async def _read(desk: Desk, act: Keep, what: Slice) -> None:
    found = await _entry(desk, what.position) if what.position <= desk.book.position else []
    if not found:
        text = f"Entry {what.position} is not there, or holds nothing that was said: see the numbers near it."
        _answer(desk, act, "failed", (Text(text),))
        return
    (entry,) = found
    whole = entry_text(entry)
    end = min(len(whole), what.from_char + what.chars)
    if what.from_char and what.from_char >= len(whole):
        text = f"Entry {what.position} has {len(whole)} characters; there are none from {what.from_char} on."
        _answer(desk, act, "failed", (Text(text),))
        return
    head = f"[Entry {what.position}, characters {what.from_char} to {end} of {len(whole)}:]"
    content = getattr(entry.what, "content", ()) if what.from_char == 0 else ()
    media = [part for part in content if isinstance(part, Media)]
    _answer(desk, act, "done", (Text(f"{head}\n{whole[what.from_char : end]}"), *media))
