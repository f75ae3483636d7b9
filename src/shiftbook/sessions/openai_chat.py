"""OpenAI chat completions: a list of messages, conversations one a record, or a log of requests.

Cached tokens stand inside `prompt_tokens`. A log's response tells them apart where it can; DeepSeek's pair of
hits and misses, and the names that LiteLLM passes on from Anthropic, are read as well. A bare list has no
usage: see `sessions.message_logs`.

Of a log what was said is that of its last request, the longest list of messages, with the response after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from shiftbook.economics.usage_forms import deepseek, openai_chat
from shiftbook.messages import Usage
from shiftbook.sessions import message_logs
from shiftbook.sessions.chat_steps import ChatSteps
from shiftbook.sessions.draft import Draft
from shiftbook.sessions.fields import Fields
from shiftbook.sessions.format import Format, Unread
from shiftbook.sessions.loose import inner, objects
from shiftbook.sessions.message_logs import ROLES, Vendor, messages_of, response_of
from shiftbook.sessions.normal import Session
from shiftbook.sessions.source import Place, Record, Source

NAME = "openai-chat"

_PASSED_ON = {
    "cached_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
}


def chat_usage(payload: Mapping[str, object]) -> Usage:
    """Chat usage, whoever serves that wire."""
    if "prompt_cache_hit_tokens" in payload or "prompt_cache_miss_tokens" in payload:
        return deepseek(payload)
    details = dict(inner(payload, "prompt_tokens_details"))
    for key, other in _PASSED_ON.items():
        if details.get(key) is None and payload.get(other) is not None:
            details[key] = payload[other]
    return openai_chat({**payload, "prompt_tokens_details": details})


def _is_response(record: Mapping[str, object]) -> bool:
    return record.get("object") == "chat.completion" or (
        isinstance(record.get("choices"), list) and "prompt_tokens" in inner(record, "usage")
    )


VENDOR = Vendor(NAME, _is_response, lambda usage: (chat_usage(usage),))


def recognise(sample: Sequence[Mapping[str, object]]) -> bool:
    """A response, or messages of the chat roles."""
    return any(
        response_of(VENDOR, record) is not None
        or _is_message(record)
        or any(_is_message(message) for message in messages_of(record) or ())
        for record in sample
    )


def _is_message(record: Mapping[str, object]) -> bool:
    return (
        record.get("role") in ROLES
        and "parts" not in record
        and (isinstance(record.get("content"), (str, list)) or isinstance(record.get("tool_calls"), list))
    )


def sessions(source: Source) -> Iterator[Unread]:
    """A list of messages or a log is one session; of conversations each is one."""
    first = next(source.records(), None)
    if first is not None and first.value.get("role") in ROLES:
        yield partial(_read_list, source)
    elif first is not None and response_of(VENDOR, first.value) is not None:
        yield partial(_read_log, source)
    else:
        for number, record in enumerate(source.records(), start=1):
            yield partial(_read_conversation, record, number)


def _read_list(source: Source) -> Session:
    draft = Draft(NAME, Place(source.path, 0))
    steps = ChatSteps(draft)
    for line, record in enumerate(source.records(), start=1):
        steps.add(Fields(record.place, record.value), line)
    return draft.session(instructions=steps.instructions)


def _read_conversation(record: Record, number: int) -> Session:
    place = Place(record.place.path, record.place.line, f"conversation {number}: ")
    draft = Draft(NAME, place, number)
    steps = ChatSteps(draft)
    for line, message in enumerate(Fields(place, record.value).objects("messages"), start=1):
        steps.add(message, line)
    return draft.session(instructions=steps.instructions)


def _read_log(source: Source) -> Session:
    longest: list[Mapping[str, object]] = []
    place, count = Place(source.path, 0), 0
    for record in source.records():
        response = response_of(VENDOR, record.value)
        sent = messages_of(record.value) or []
        if response is None:
            continue
        count += 1
        if len(sent) >= len(longest):
            answers = [inner(choice, "message") for choice in objects(response, "choices")][:1]
            longest, place = [*sent, *answers], record.place
    if not longest:
        raise place.unreadable("is a log of responses without what was said; it can be measured, not driven")
    draft = Draft(NAME, place)
    steps = ChatSteps(draft)
    for line, message in enumerate(longest, start=1):
        steps.add(Fields(place, message), line)
    return draft.session(instructions=steps.instructions, requests_in_file=count)


FORMAT = Format(
    name=NAME,
    title="OpenAI chat completions (messages or a request log)",
    recognise=recognise,
    sessions=sessions,
    requests=partial(message_logs.requests, VENDOR),
)
