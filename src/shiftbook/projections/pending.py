"""What is open after an entry: calls without an answer, outcomes that nobody knows, words not answered yet.

A call is open from its reply until its answer. One whose answer says "outcome unknown" stays until a later
answer tells its outcome, or until somebody puts a statement on record that names that answer as a source: a
model by `note`, a person, the author; never a tool or a report. A person's words stay until a reply without
a call; a reply that pauses is none. What joins later, such as the children of a run, is folded here.

A fold keeps, of each reply with something open, its answers and what settled them, so that from these
entries alone the same comes out. Nothing is kept of a reply once all of it is settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from shiftbook import canonical
from shiftbook.entries import (
    ActionFinished,
    Entry,
    ModelAnswered,
    Origin,
    PersonSaid,
    StatementMade,
    UserContent,
    What,
)
from shiftbook.messages import Call, Json, Text

SETTLERS: frozenset[Origin] = frozenset({"model", "person", "author"})
"""Whose statement may say what became of a call. A tool's or a report's may not: those are hostile text."""

EXCERPT_CHARS = 2_001
"""Of a text, an argument or a name so much is kept: more than a brief shows of it, by a margin."""

EXCERPT_ARGUMENTS = 8
_SMALL = 2**63


@dataclass(slots=True)
class Asked:
    """A reply with something open, and what came of its calls since, in order."""

    reply: Entry
    since: list[Entry] = field(default_factory=list)


@dataclass(slots=True)
class Pending:
    """`replies` by position, `calls` of theirs with that position, and the `words` without an answer."""

    replies: dict[int, Asked] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    words: dict[int, Entry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that is open; `answer` is the entry that says that its outcome is unknown, None without one."""

    call: Call
    reply: Entry
    answer: Entry | None

    @property
    def since(self) -> Entry:
        """The entry that it is open by."""
        return self.answer or self.reply


def learn_asked(pending: Pending, entry: Entry, what: ModelAnswered) -> None:
    """Take a reply."""
    calls = [part.id for part in what.parts if isinstance(part, Call)]
    if calls:
        position = abs(entry.position)
        for earlier in {pending.calls[call] for call in calls if call in pending.calls}:
            _forget(pending, earlier)  # No engine gives an id twice; of two calls the last one counts.
        pending.replies[position] = Asked(entry)
        pending.calls.update(dict.fromkeys(calls, position))
    elif what.stop != "pause" and pending.words:
        pending.words = {}


def learn_answer(pending: Pending, entry: Entry, what: ActionFinished) -> None:
    """Take an answer; one to a call of which nothing is open says nothing here."""
    if (position := pending.calls.get(what.call)) is not None:
        asked = pending.replies[position]
        asked.since.append(entry)
        if what.outcome != "unknown" or len(asked.since) > 1:
            _close(pending, position)


def learn_settled(pending: Pending, entry: Entry, what: StatementMade) -> None:
    """Take a statement: it may say what became of calls."""
    if not (pending.replies and what.sources and what.origin in SETTLERS):
        return
    for position, asked in list(pending.replies.items()):
        unknown = {abs(each.position) for each in asked.since if _is_unknown(each)}
        if unknown.intersection(what.sources):
            asked.since.append(entry)
            _close(pending, position)


def learn_words(pending: Pending, entry: Entry, what: PersonSaid) -> None:
    """Take what was said; only a person's words wait for an answer."""
    if what.author == "person":
        pending.words[abs(entry.position)] = entry


def open_calls(pending: Pending) -> list[OpenCall]:
    """The calls that are open, in the order of their replies."""
    return [call for asked in pending.replies.values() for call in _open_of(asked)]


def unknown_at(pending: Pending) -> dict[int, OpenCall]:
    """The calls whose outcome nobody knows, by the entry that says so."""
    return {abs(each.answer.position): each for each in open_calls(pending) if each.answer is not None}


def named(pending: Pending) -> tuple[int, ...]:
    """The positions of the entries from which the same comes out, in order; none where nothing is open."""
    return tuple(sorted(abs(entry.position) for entry in _kept(pending)))


def excerpt(entry: Entry) -> Entry:
    """As much of one of these entries as is told; the same of what is an excerpt already."""
    what: What = entry.what
    match what:
        case ModelAnswered(parts=parts):
            calls = tuple(_call(part) for part in parts if isinstance(part, Call) and part.id)
            what = ModelAnswered(what.turn, calls, "calls")
        case ActionFinished(call=call, outcome=outcome):
            what = ActionFinished(call, outcome, ())
        case StatementMade():
            what = replace(what, key="", value=None, about=None, supersedes=None)
        case PersonSaid(content=content):
            what = replace(what, content=_words(content), item=None)
    return Entry(-abs(entry.position), entry.at_ms, 1, what)


def excerpts(pending: Pending) -> list[Entry]:
    """Every entry of `named` as an excerpt, under the negative of its position: it never passes for it."""
    return [excerpt(entry) for entry in _kept(pending)]


def pending_of(entries: Iterable[Entry]) -> Pending:
    """What is open after these entries and no others."""
    pending = Pending()
    for entry in entries:
        match entry.what:
            case ModelAnswered() as what:
                learn_asked(pending, entry, what)
            case ActionFinished() as what:
                learn_answer(pending, entry, what)
            case StatementMade() as what:
                learn_settled(pending, entry, what)
            case PersonSaid() as what:
                learn_words(pending, entry, what)
    return pending


def _kept(pending: Pending) -> Iterator[Entry]:
    # A statement that settles calls of two replies is kept with both.
    found: dict[int, Entry] = {}
    for asked in pending.replies.values():
        for entry in (asked.reply, *asked.since):
            found[abs(entry.position)] = entry
    found.update(pending.words)
    yield from (found[position] for position in sorted(found))


def _open_of(asked: Asked) -> list[OpenCall]:
    answers: dict[str, Entry] = {}
    settled: set[int] = set()
    for entry in asked.since:
        if isinstance(entry.what, ActionFinished):
            answers[entry.what.call] = entry
        elif isinstance(entry.what, StatementMade):
            settled.update(entry.what.sources)
    found: list[OpenCall] = []
    for part in asked.reply.what.parts if isinstance(asked.reply.what, ModelAnswered) else ():
        if isinstance(part, Call) and part.id:
            answer = answers.get(part.id)
            if answer is None or (_is_unknown(answer) and abs(answer.position) not in settled):
                found.append(OpenCall(part, asked.reply, answer))
    return found


def _close(pending: Pending, position: int) -> None:
    """Forget the reply where nothing of it is open any more."""
    if not _open_of(pending.replies[position]):
        _forget(pending, position)


def _forget(pending: Pending, position: int) -> None:
    del pending.replies[position]
    pending.calls = {call: at for call, at in pending.calls.items() if at != position}


def _is_unknown(entry: Entry) -> bool:
    return isinstance(entry.what, ActionFinished) and entry.what.outcome == "unknown"


def _call(call: Call) -> Call:
    tool = call.tool[:EXCERPT_CHARS]
    if call.arguments is None:
        return Call(call.id, tool, None, (call.raw or "")[:EXCERPT_CHARS])
    given = list(call.arguments.items())[:EXCERPT_ARGUMENTS]
    return Call(call.id, tool, {str(name)[:EXCERPT_CHARS]: _value(value) for name, value in given})


def _value(value: Json) -> Json:
    if type(value) is str:
        return value[:EXCERPT_CHARS]
    if type(value) in (bool, float, type(None)) or (type(value) is int and abs(value) < _SMALL):
        return value
    return canonical.encode(value)[:EXCERPT_CHARS]


def _words(content: UserContent) -> UserContent:
    left, kept = EXCERPT_CHARS, []
    for part in content:
        if left <= 0:
            break
        if isinstance(part, Text):
            part = Text(part.text[:left])
            left -= len(part.text)
        left -= 1
        kept.append(part)
    return tuple(kept)
