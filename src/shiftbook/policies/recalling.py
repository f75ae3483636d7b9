"""What the journal policy brings back: when, about what, in how much room, and where it stands.

A message of a person brings back what it asks about, once something is hidden from the prompt; so does every
rebuild, for what the run is at. The looking is done by whoever asked the policy; here is only what to look
for, and how what was found is shown: a line that says what it is, then each entry, before the words that it
was looked for by. Nothing comes back that stands in the prompt, and nothing passes the room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shiftbook.entries import (
    MODEL_VISIBLE,
    ActionFinished,
    Entry,
    ModelAnswered,
    ModelInterrupted,
    PersonSaid,
    Pick,
    Recalled,
)
from shiftbook.policies.units import Unit, is_by_code
from shiftbook.projections.knowledge import Knowledge, plan_items
from shiftbook.projections.pending import unknown_at
from shiftbook.prompt.epoch import Budget, EpochPrompt, Measure, RecallRoom
from shiftbook.prompt.recall_question import question
from shiftbook.prompt.render import render_entry
from shiftbook.prompt.told import entry_text

WIDEST_PART = 0.97
"""Of the cap's room what is brought back may take so much at the most; the rest is for what must stand."""

REBUILD_PART = 0.4
"""Of the room below the mark, at a rebuild that no message made."""

TOKENS_MIN = 150
"""With less room nothing is brought back."""

LAST_TURNS = 3
LAST_CHARS = 600
"""So many of the newest replies and words are asked with, up to so many characters of each."""

PLAN_CHARS = 600


@dataclass(frozen=True, slots=True)
class Brought:
    """What was found, as the prompt shows it: picks, and their tokens together."""

    picks: tuple[Pick, ...] = ()
    tokens: int = 0


def message_of(fresh: Iterable[Entry]) -> str:
    """What people said since the last request, "" when nobody did. An author's note is no message."""
    return "\n".join(entry_text(entry) for entry in fresh if _is_message(entry))


def last_message(prompt: EpochPrompt) -> str:
    """The newest words of a person in the prompt."""
    said = [entry for entry in prompt.shown.values() if _is_message(entry)]
    return entry_text(max(said, key=lambda entry: entry.position)) if said else ""


def _is_message(entry: Entry) -> bool:
    return isinstance(entry.what, PersonSaid) and entry.what.author != "author"


def room_for(message: str, rooms: RecallRoom, span: int) -> int:
    """Tokens that may be brought back for a message, its line included, where `span` are cap less fixed."""
    wished = rooms.whole_set if question(message).wants_set else rooms.point
    return min(wished, int(span * WIDEST_PART))


def standing_recall(fresh: Sequence[Entry]) -> Entry | None:
    """What was brought back for the words that are fresh; None where that is still to be done."""
    said = max((entry.position for entry in fresh if _is_message(entry)), default=0)
    found = [entry for entry in fresh if is_by_code(entry) and entry.position > said]
    return found[-1] if found else None


def query_at_rebuild(prompt: EpochPrompt, fresh: Sequence[Entry]) -> str:
    """What the run is at: its newest replies with their calls, and the words that it works on."""
    return "\n".join([*_last(prompt, fresh, replies_only=True), last_message(prompt)[:LAST_CHARS]])


def beside(prompt: EpochPrompt, fresh: Sequence[Entry], knowledge: Knowledge) -> tuple[str, ...]:
    """What stands around a message: what is planned and not done, and the newest turns."""
    plan = "\n".join(item.text for item in plan_items(knowledge) if item.state in ("open", "doing"))
    texts = [plan[:PLAN_CHARS], *_last(prompt, [e for e in fresh if not _is_message(e)])]
    return tuple(text for text in texts if text)


def _last(prompt: EpochPrompt, fresh: Sequence[Entry], *, replies_only: bool = False) -> list[str]:
    kinds = (ModelAnswered, ModelInterrupted) if replies_only else (ModelAnswered, PersonSaid)
    said: Mapping[int, Entry] = {
        entry.position: entry for entry in (*prompt.shown.values(), *fresh) if isinstance(entry.what, kinds)
    }
    return [entry_text(said[at])[:LAST_CHARS] for at in sorted(said)[-LAST_TURNS:]]


def told_as_open(knowledge: Knowledge) -> frozenset[int]:
    """The answers that say no more than that an outcome is unknown: the brief tells it, or their turn."""
    return frozenset(unknown_at(knowledge.pending))


def line_tokens(measure: Measure) -> int:
    """What the line before the entries takes."""
    return _tokens(Entry(10**9, 0, 1, Recalled("", (), "message")), "whole", None, measure)


def brought_back(recall: Entry | None, budget: Budget, shown: frozenset[int], room: int) -> Brought:
    """The entries that a recall names within `room` tokens; where that has become less, the oldest go."""
    if recall is None or not isinstance(what := recall.what, Recalled):
        return Brought()
    picks: list[tuple[Pick, int]] = []
    for position in sorted(set(what.found) - shown):
        entry = budget.brought.get(position)
        if entry is not None and type(entry.what) in MODEL_VISIBLE:
            keep = what.keep if position in what.cut else None
            size = _tokens(entry, "recalled", keep, budget.measure)
            picks.append((Pick(position, position, "recalled", keep), size))
    line = _tokens(recall, "whole", None, budget.measure)
    tokens = line + sum(size for _, size in picks)
    while picks and tokens > room:
        tokens -= picks.pop(0)[1]
    if not picks:
        return Brought()
    at = recall.position
    return Brought((Pick(at, at, "whole"), *(pick for pick, _ in picks)), tokens)


def _tokens(entry: Entry, form: str, keep: int | None, measure: Measure) -> int:
    return sum(measure(block) for block in render_entry(entry, form, keep))


def parted(units: Sequence[Unit]) -> tuple[list[Unit], list[Unit]]:
    """The units before and after what is brought back: this stands before the words that came last."""
    at = len(units)
    while at and not any(_is_replys(piece.entry) for piece in units[at - 1]):
        at -= 1
    return (list(units[:at]), list(units[at:])) if at < len(units) else ([], list(units))


def _is_replys(entry: Entry) -> bool:
    return isinstance(entry.what, ModelAnswered | ModelInterrupted | ActionFinished)
