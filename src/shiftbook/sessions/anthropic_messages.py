"""Anthropic Messages: a list of messages with typed blocks, conversations, or a log of requests.

Cached tokens stand outside `input_tokens`. A compaction that the vendor ran inside a request is billed
besides and listed only in `usage.iterations`: each such pass is a row of its own, of the kind "compaction".
A bare list has no usage: see `sessions.message_logs`.

A user message's results are answers and its texts a person's words. Blocks of other types, reasoning too,
become missing parts under their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from shiftbook.economics.usage_forms import anthropic_passes
from shiftbook.sessions import message_logs
from shiftbook.sessions.draft import Draft
from shiftbook.sessions.fields import Fields
from shiftbook.sessions.format import Format, Unread
from shiftbook.sessions.loose import inner, objects
from shiftbook.sessions.message_logs import Vendor, messages_of, response_of, told_system
from shiftbook.sessions.normal import Answer, CallPart, MissingPart, Session, TextPart
from shiftbook.sessions.source import Place, Record, Source, label

NAME = "anthropic-messages"

_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "compaction")


def _is_response(record: Mapping[str, object]) -> bool:
    return record.get("type") == "message" and "input_tokens" in inner(record, "usage")


VENDOR = Vendor(NAME, _is_response, anthropic_passes)


def recognise(sample: Sequence[Mapping[str, object]]) -> bool:
    """A response, or messages with a block of Anthropic's own types."""
    return any(
        response_of(VENDOR, record) is not None
        or _has_blocks(record)
        or any(_has_blocks(message) for message in messages_of(record) or ())
        for record in sample
    )


def _has_blocks(message: Mapping[str, object]) -> bool:
    return message.get("role") in ("user", "assistant") and any(
        block.get("type") in _BLOCKS for block in objects(message, "content")
    )


def sessions(source: Source) -> Iterator[Unread]:
    """A list of messages or a log is one session; of conversations each is one."""
    first = next(source.records(), None)
    if first is not None and response_of(VENDOR, first.value) is not None:
        yield partial(_read_log, source)
    elif first is not None and first.value.get("role") is not None:
        yield partial(_read_list, source)
    else:
        for number, record in enumerate(source.records(), start=1):
            yield partial(_read_conversation, record, number)


def _read_list(source: Source) -> Session:
    draft = Draft(NAME, Place(source.path, 0))
    for line, record in enumerate(source.records(), start=1):
        add_message(draft, Fields(record.place, record.value), line)
    return draft.session()


def _read_conversation(record: Record, number: int) -> Session:
    place = Place(record.place.path, record.place.line, f"conversation {number}: ")
    draft = Draft(NAME, place, number)
    for line, message in enumerate(Fields(place, record.value).objects("messages"), start=1):
        add_message(draft, message, line)
    return draft.session(instructions=told_system(record.value) or None)


def _read_log(source: Source) -> Session:
    longest: list[Mapping[str, object]] = []
    place, count, instructions = Place(source.path, 0), 0, ""
    for record in source.records():
        response = response_of(VENDOR, record.value)
        sent = messages_of(record.value) or []
        if response is None:
            continue
        count += 1
        if len(sent) >= len(longest) and sent:
            longest, place = [*sent, response], record.place
            instructions = told_system(record.value) or told_system(inner(record.value, "request"))
    if not longest:
        raise place.unreadable("is a log of responses without what was said; it can be measured, not driven")
    draft = Draft(NAME, place)
    for line, message in enumerate(longest, start=1):
        add_message(draft, Fields(place, message), line)
    return draft.session(instructions=instructions or None, requests_in_file=count)


def add_message(draft: Draft, message: Fields, line: int) -> None:
    """One message of the list."""
    role = message.need_text("role")
    if role == "assistant":
        reply = draft.reply(line, None, message.text("model"), message.text("id"), line)
        for block, kind in _blocks(message):
            if kind == "tool_use":
                call = CallPart(
                    id=block.need_text("id"),
                    tool=block.need_text("name"),
                    arguments=block.need_inner("input").value,
                )
                draft.part(reply, call)
            else:
                draft.part(reply, _plain(block, kind))
    elif role == "user":
        for block, kind in _blocks(message):
            if kind == "tool_result":
                answer = Answer(None, tuple(_result(block)), block.flag("is_error"), line)
                draft.answer(block.need_text("tool_use_id"), answer)
                continue
            part = _plain(block, kind)
            if isinstance(part, TextPart):
                draft.person(part.text, None, line)
            else:
                draft.notice(part.what, None, line)
    elif role == "system":
        draft.notice("system message", None, line)
    else:
        raise message.place.unreadable(f'message {line} has the role "{label(role)}", which is unknown')


def _blocks(message: Fields) -> Iterator[tuple[Fields, str]]:
    """The blocks of a message and their types; a bare text is one block."""
    content = message.value.get("content")
    if isinstance(content, str):
        yield Fields(message.place, {"text": content}, message.name), "text"
        return
    if not isinstance(content, list):
        raise message.wrong("content", "text or a list of blocks")
    for block in message.objects("content"):
        yield block, block.need_text("type")


def _result(block: Fields) -> Iterator[TextPart | MissingPart]:
    if block.value.get("content") is None:
        return
    for part, kind in _blocks(block):
        yield _plain(part, kind)


def _plain(block: Fields, kind: str) -> TextPart | MissingPart:
    if kind == "text":
        return TextPart(block.need_text("text"))
    return MissingPart("reasoning" if kind in ("thinking", "redacted_thinking") else label(kind))


FORMAT = Format(
    name=NAME,
    title="Anthropic messages (messages or a request log)",
    recognise=recognise,
    sessions=sessions,
    requests=partial(message_logs.requests, VENDOR),
)
