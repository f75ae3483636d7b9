"""SWE-agent trajectories: one JSON document with "history", most with "trajectory" and "info".

An assistant entry of the history is one reply, its answer the entry after it. With function calling the entry
holds the calls; without, the action that SWE-agent took out of the text is the call, under the name "action".
Some files write the calls as text in Python's notation: it is read as data and never run. Demonstrations are
part of the prompt and no request.

Usage is told in totals only (`info.model_stats`), so every row is estimated: our meter over the history. A
history processor may have shortened what was really sent.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from shiftbook.sessions.chat_steps import add_calls, content
from shiftbook.sessions.draft import Draft
from shiftbook.sessions.estimate import Estimate, told
from shiftbook.sessions.fields import Fields
from shiftbook.sessions.format import Format, Unread
from shiftbook.sessions.loose import inner, objects, text, whole
from shiftbook.sessions.normal import Answer, CallPart, Session, TextPart
from shiftbook.sessions.requests import RecordedRequests
from shiftbook.sessions.rows import RowDraft, Seen
from shiftbook.sessions.source import Place, Record, Source, label
from shiftbook.sessions.streaming import Faults, records

NAME = "swe-agent"

_NOTATION_MAX = 1_000_000


def recognise(sample: Sequence[Mapping[str, object]]) -> bool:
    """A history beside a trajectory, or one whose entries name an agent."""
    return any(
        isinstance(record.get("history"), list)
        and (
            isinstance(record.get("trajectory"), list)
            or any("agent" in entry and "role" in entry for entry in objects(record, "history"))
        )
        for record in sample
    )


def requests(source: Source, seen: Seen) -> Iterator[RecordedRequests]:
    """A record is one session."""
    faults = Faults()
    for record in records(source, faults):
        draft = RowDraft(NAME, source.path, text(record.value, "environment") or "", faults)
        estimate, calls = Estimate(draft), 0
        for line, entry in enumerate(objects(record.value, "history"), start=1):
            said = told({key: entry[key] for key in ("content", "tool_calls") if key in entry})
            if entry.get("role") == "assistant" and entry.get("is_demo") is not True:
                calls += 1
                branch = text(entry, "agent") or "main"
                estimate.replied(said, line, branch="" if branch in ("main", "primary") else branch)
            else:
                estimate.heard(said)
        counted = whole(inner(inner(record.value, "info"), "model_stats"), "api_calls")
        if counted and counted != calls:
            faults.add(0, f"its totals count {counted:,} requests and its history shows {calls:,}")
        yield draft.closed()
        faults = Faults()


def sessions(source: Source) -> Iterator[Unread]:
    """A record is one session."""
    for number, record in enumerate(source.records(), start=1):
        yield partial(_read, record, number)


def _read(record: Record, number: int) -> Session:
    place = Place(record.place.path, record.place.line)
    draft = Draft(NAME, place, number)
    instructions: list[str] = []
    waiting: list[str] = []
    for line, entry in enumerate(Fields(place, record.value).objects("history"), start=1):
        role = entry.need_text("role")
        if entry.flag("is_demo"):
            draft.notice("demonstration", None, line)
        elif role == "system":
            instructions.extend(part.text for part in content(entry) if isinstance(part, TextPart))
        elif role == "assistant":
            waiting = _reply(draft, entry, line)
        elif role in ("user", "tool"):
            answers = tuple(content(entry))
            for call in waiting:
                draft.answer(call, Answer(None, answers, None, line))
            if not waiting:
                for part in answers:
                    if isinstance(part, TextPart):
                        draft.person(part.text, None, line)
                    else:
                        draft.notice(part.what, None, line)
            waiting = []
        else:
            raise entry.place.unreadable(f'entry {line} has the role "{label(role)}", which is unknown')
    return draft.session(instructions="\n\n".join(instructions) if instructions else None)


def _reply(draft: Draft, entry: Fields, line: int) -> list[str]:
    """One reply, and the ids of its calls."""
    reply = draft.reply(line, None, None, None, line)
    for part in content(entry):
        draft.part(reply, part)
    calls = entry.value.get("tool_calls")
    if isinstance(calls, str):
        calls = _notation(calls)
    if isinstance(calls, list) and calls:
        add_calls(draft, reply, Fields(entry.place, {"tool_calls": calls}, entry.name))
    else:
        action = entry.text("action")
        if action and action.strip():
            draft.part(reply, CallPart(id=f"{line}", tool="action", arguments={"command": action}))
    return [part.id for part in reply.parts if isinstance(part, CallPart)]


def _notation(written: str) -> object:
    """A literal in Python's notation as data; None when it is none."""
    if len(written) > _NOTATION_MAX:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(written)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


FORMAT = Format(
    name=NAME,
    title="a SWE-agent trajectory",
    recognise=recognise,
    sessions=sessions,
    requests=requests,
)
