"""tau-bench runs: each a chat-completions message list under "traj", with a task, a trial and a reward.

A file holds many runs: a JSON list of them or one a line. Decisions: system messages at the start are
recorded instructions, a later one is a notice; user messages are the person's (a simulated one's) words,
end marker and all; an assistant message is one reply, a tool message the answer to the call that its
`tool_call_id` names. There are no stamps, no model name and no usage, so those stay None; "line" is the
number of the message within its run. The arguments' text is kept raw beside its parse.

It refuses the few-shot files of the same project: their one display text a run ("messages_display")
leaves out which tool was called with what, and that is never invented.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from shiftbook.sessions.draft import Draft
from shiftbook.sessions.fields import Fields
from shiftbook.sessions.format import Format, Unread
from shiftbook.sessions.normal import Answer, CallPart, MissingPart, Session, TextPart
from shiftbook.sessions.source import Place, Record, Source, label, parsed_or_none

NAME = "tau-bench"


def recognise(sample: Sequence[Mapping[str, object]]) -> bool:
    """A record with a list "traj" beside its task, or a few-shot record."""
    return any(
        (isinstance(record.get("traj"), list) and ("task_id" in record or "reward" in record))
        or isinstance(record.get("messages_display"), str)
        for record in sample
    )


def sessions(source: Source) -> Iterator[Unread]:
    """One session a record."""
    for number, record in enumerate(source.records(), start=1):
        if "messages_display" in record.value and "traj" not in record.value:
            raise record.place.unreadable(
                "is a tau-bench few-shot record, whose display text leaves out which tool was called with "
                "what; use a file of trajectories"
            )
        yield partial(read_run, record, number)


def read_run(record: Record, number: int) -> Session:
    """The session of one record, the `number`-th of its file."""
    place = Place(record.place.path, record.place.line, f"run {number}: ")
    if not isinstance(record.value.get("traj"), list):
        raise Fields(place, record.value).wrong("traj", "a list of messages")
    draft = Draft(NAME, place, number)
    instructions: list[str] = []
    begun = False
    for line, message in enumerate(Fields(place, record.value).objects("traj"), start=1):
        role = message.need_text("role")
        if role == "system" and not begun:
            instructions.append(message.need_text("content"))
            continue
        begun = True
        if role == "system":
            draft.notice("system message", None, line)
        elif role == "user":
            _person(draft, message, line)
        elif role == "assistant":
            _reply(draft, message, line)
        elif role == "tool":
            answer = Answer(at_ms=None, content=tuple(_content(message)), is_error=None, line=line)
            draft.answer(message.need_text("tool_call_id"), answer)
        else:
            raise message.place.unreadable(f'message {line} has the role "{label(role)}", which is unknown')
    return draft.session(instructions="\n\n".join(instructions) if instructions else None)


def _person(draft: Draft, message: Fields, line: int) -> None:
    for part in _content(message):
        if isinstance(part, TextPart):
            draft.person(part.text, None, line)
        else:
            draft.notice(part.what, None, line)


def _reply(draft: Draft, message: Fields, line: int) -> None:
    if message.value.get("function_call") is not None:
        raise message.place.unreadable(
            f'message {line} has a "function_call", the form before "tool_calls"; its answers name no call'
        )
    reply = draft.reply(line, None, None, None, line)
    for part in _content(message):
        draft.part(reply, part)
    for call in message.objects("tool_calls"):
        function = call.need_inner("function")
        raw = function.need_text("arguments")
        parsed = parsed_or_none(raw)
        draft.part(
            reply,
            CallPart(
                id=call.need_text("id"),
                tool=function.need_text("name"),
                arguments=parsed if isinstance(parsed, dict) else None,
                raw_arguments=raw,
            ),
        )


def _content(message: Fields) -> Iterator[TextPart | MissingPart]:
    """The content of a message: a text, nothing, or a list of typed parts."""
    content = message.value.get("content")
    if isinstance(content, str):
        if content:
            yield TextPart(content)
        return
    if content is not None and not isinstance(content, list):
        raise message.wrong("content", "text or a list")
    for part in message.objects("content"):
        kind = part.need_text("type")
        if kind == "text":
            yield TextPart(part.need_text("text"))
        else:
            yield MissingPart("image" if kind == "image_url" else label(kind))


FORMAT = Format(
    name=NAME,
    title='tau-bench runs (records with "traj")',
    recognise=recognise,
    sessions=sessions,
)
