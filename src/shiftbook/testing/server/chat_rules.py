"""What OpenAI Chat Completions refuses, one small function a rule.

Sources: developers.openai.com/api (Chat, function calling, prompt caching), the types of the official SDK
(openai 3.57), and error texts in public reports, read 2026-11. Several choices (`n`), audio, the older
`functions` and tools that are no functions are refused: this server does not play them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from shiftbook.testing.server.openai_shapes import (
    BREAKPOINT,
    SAY,
    TEXT_CHARS_MAX,
    bracketed,
    cache_settings,
    image_faults,
    name_faults,
    only_with_tools,
    schema_faults,
    too_long,
    twice,
)
from shiftbook.testing.server.rule import Body, Check, Known, Path, Refusal, Shape, listed, misshapen, shape

CALL_ID_CHARS_MAX = 40
_REASONS = re.compile(r"^(o\d|gpt-([5-9]|\d\d))")
"""Models that reason: they take `max_completion_tokens` alone."""

_TOP = shape(
    "model messages:list",
    "frequency_penalty:number logit_bias:object logprobs:boolean max_completion_tokens:integer "
    "max_tokens:integer metadata:object modalities:list moderation:object parallel_tool_calls:boolean "
    "prediction:object presence_penalty:number prompt_cache_key prompt_cache_options:object "
    "prompt_cache_retention reasoning_effort response_format:object safety_identifier seed:integer "
    "service_tier stop:string|list store:boolean stream:boolean stream_options:object temperature:number "
    "tool_choice:string|object tools:list top_logprobs:integer top_p:number user verbosity "
    "web_search_options:object n:integer",
)
_MESSAGES: Mapping[str, Shape] = {
    "system": shape("role content:string|list", "name"),
    "developer": shape("role content:string|list", "name"),
    "user": shape("role content:string|list", "name"),
    "assistant": shape("role", "content:string|list refusal name tool_calls:list annotations:list"),
    "tool": shape("role content:string|list tool_call_id"),
}
_PARTS: Mapping[str, Shape] = {
    "text": shape("type text", "prompt_cache_breakpoint:object"),
    "refusal": shape("type refusal"),
    "image_url": shape("type image_url:object", "prompt_cache_breakpoint:object"),
    "file": shape("type file:object", "prompt_cache_breakpoint:object"),
}
_PARTS_OF: Mapping[str, tuple[str, ...]] = {
    "user": ("text", "image_url", "file"),
    "assistant": ("text", "refusal"),
}
_CALL = shape("id type function:object")
_FUNCTION = shape("name arguments")
_TOOL = shape("type function:object")
_DECLARED = shape("name", "description parameters:object strict:boolean")


def top_fields(body: Body, _: Known) -> Iterator[Refusal]:
    yield from misshapen(SAY, body, (), _TOP)
    if body.get("n") not in (None, 1):
        yield Refusal("This server gives one choice a request; leave out 'n'.", "n", "unsupported_value")


def message_fields(body: Body, _: Known) -> Iterator[Refusal]:
    """The fields of every message and part, and which parts each role may have."""
    if not body["messages"]:
        yield Refusal(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty "
            "array instead.",
            "messages",
            "empty_array",
        )
    for number, message in enumerate(body["messages"]):
        path: Path = ("messages", number)
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str) or role not in _MESSAGES:
            yield SAY.value((*path, "role"), role, _MESSAGES)
            return
        yield from misshapen(SAY, message, path, _MESSAGES[role])
        for index, part in enumerate(listed(message.get("content"))):
            here = (*path, "content", index)
            kind = part.get("type") if isinstance(part, dict) else None
            allowed = _PARTS_OF.get(role, ("text",))
            if not isinstance(kind, str) or kind not in allowed:
                yield SAY.value((*here, "type"), kind, allowed)
                return
            yield from misshapen(SAY, part, here, _PARTS[kind])
            if part.get("prompt_cache_breakpoint") is not None:
                at = (*here, "prompt_cache_breakpoint")
                yield from misshapen(SAY, part["prompt_cache_breakpoint"], at, BREAKPOINT)
        yield from _call_fields(message, path)


def _call_fields(message: Mapping[str, Any], path: Path) -> Iterator[Refusal]:
    for index, call in enumerate(listed(message.get("tool_calls"))):
        here = (*path, "tool_calls", index)
        yield from misshapen(SAY, call, here, _CALL)
        if call["type"] != "function":
            yield SAY.value((*here, "type"), call["type"], ("function",))
        yield from misshapen(SAY, call["function"], (*here, "function"), _FUNCTION)


def tool_fields(body: Body, _: Known) -> Iterator[Refusal]:
    if body.get("tools") == []:
        yield Refusal(
            "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array "
            "instead.",
            "tools",
            "empty_array",
        )
    for number, tool in enumerate(listed(body.get("tools"))):
        path: Path = ("tools", number)
        yield from misshapen(SAY, tool, path, _TOOL)
        if tool["type"] != "function":
            yield SAY.value((*path, "type"), tool["type"], ("function",))
        yield from misshapen(SAY, tool["function"], (*path, "function"), _DECLARED)


def said_nothing(body: Body, _: Known) -> Iterator[Refusal]:
    """An assistant's message holds words, a refusal or calls; an empty list of calls is none of these."""
    for number, message in enumerate(body["messages"]):
        if message["role"] == "assistant":
            where = f"messages[{number}]"
            if message.get("tool_calls") == []:
                yield Refusal(
                    f"Invalid '{where}.tool_calls': empty array. Expected an array with minimum length 1, "
                    "but got an empty array instead.",
                    f"{where}.tool_calls",
                    "empty_array",
                )
            if not any(message.get(each) is not None for each in ("content", "refusal", "tool_calls")):
                yield Refusal("Invalid value for 'content': expected a string, got null.", f"{where}.content")


def long_text(body: Body, _: Known) -> Iterator[Refusal]:
    for number, message in enumerate(body["messages"]):
        if isinstance(message.get("content"), str):
            yield from too_long(("messages", number, "content"), message["content"], TEXT_CHARS_MAX)


def call_id(body: Body, _: Known) -> Iterator[Refusal]:
    for number, message in enumerate(body["messages"]):
        for index, call in enumerate(listed(message.get("tool_calls"))):
            path: Path = ("messages", number, "tool_calls", index, "id")
            yield from too_long(path, call["id"], CALL_ID_CHARS_MAX)
            if not call["id"]:
                yield Refusal(f"Invalid '{bracketed(path)}': empty string.", bracketed(path), "empty_string")


def call_id_twice(body: Body, _: Known) -> Iterator[Refusal]:
    for number, message in enumerate(body["messages"]):
        ids = [call["id"] for call in listed(message.get("tool_calls"))]
        for index, each in enumerate(ids):
            if each in ids[:index]:
                yield Refusal(
                    f"Duplicate value for 'tool_call_id' of '{each}' in messages[{number}].tool_calls.",
                    f"messages[{number}].tool_calls",
                    "invalid_value",
                )


def call_name(body: Body, _: Known) -> Iterator[Refusal]:
    for number, message in enumerate(body["messages"]):
        for index, call in enumerate(listed(message.get("tool_calls"))):
            path: Path = ("messages", number, "tool_calls", index, "function", "name")
            yield from name_faults(path, call["function"]["name"])


def answer_without_call(body: Body, _: Known) -> Iterator[Refusal]:
    """A tool message stands behind the calls of an assistant, with nothing but tool messages in between."""
    for number, open_calls, message in _followed(body):
        if message["role"] == "tool" and message["tool_call_id"] not in open_calls:
            yield Refusal(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
                "with 'tool_calls'.",
                f"messages.[{number}].role",
            )


def second_answer(body: Body, _: Known) -> Iterator[Refusal]:
    seen: set[str] = set()
    for number, _calls, message in _followed(body):
        if message["role"] != "tool":
            seen = set()
        elif message["tool_call_id"] in seen:
            yield Refusal(
                f"Duplicate value for 'tool_call_id' of '{message['tool_call_id']}' in messages[{number}].",
                f"messages[{number}].tool_call_id",
                "invalid_value",
            )
        else:
            seen.add(message["tool_call_id"])


def call_without_answer(body: Body, _: Known) -> Iterator[Refusal]:
    waiting: list[str] = []
    asked = 0
    for number, message in enumerate([*body["messages"], {"role": "end"}]):
        if message["role"] == "tool":
            waiting = [each for each in waiting if each != message["tool_call_id"]]
            continue
        if waiting:
            yield Refusal(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                "'tool_call_id'. The following tool_call_ids did not have response messages: "
                f"{', '.join(waiting)}",
                f"messages.[{asked}].role",
            )
        waiting, asked = [call["id"] for call in listed(message.get("tool_calls"))], number


def _followed(body: Body) -> Iterator[tuple[int, frozenset[str], Mapping[str, Any]]]:
    """Each message with the calls of the assistant's message that it directly follows."""
    calls: frozenset[str] = frozenset()
    for number, message in enumerate(body["messages"]):
        yield number, calls, message
        if message["role"] != "tool":
            calls = frozenset(call["id"] for call in listed(message.get("tool_calls")))


def tool_name(body: Body, _: Known) -> Iterator[Refusal]:
    for number, tool in enumerate(listed(body.get("tools"))):
        yield from name_faults(("tools", number, "function", "name"), tool["function"]["name"])


def tool_twice(body: Body, _: Known) -> Iterator[Refusal]:
    yield from twice(("tools",), (tool["function"]["name"] for tool in listed(body.get("tools"))))


def tool_schema(body: Body, _: Known) -> Iterator[Refusal]:
    for number, tool in enumerate(listed(body.get("tools"))):
        function, path = tool["function"], ("tools", number, "function", "parameters")
        yield from schema_faults(path, function["name"], function.get("parameters"))


def tool_choice(body: Body, _: Known) -> Iterator[Refusal]:
    yield from only_with_tools(body, "tool_choice", "parallel_tool_calls")
    choice = body.get("tool_choice")
    if isinstance(choice, str) and choice not in ("none", "auto", "required"):
        yield SAY.value(("tool_choice",), choice, ("none", "auto", "required"))
    if isinstance(choice, dict) and choice.get("type") == "function":
        name = (choice.get("function") or {}).get("name")
        if name not in {tool["function"]["name"] for tool in listed(body.get("tools"))}:
            yield Refusal(
                f"Tool choice '{name}' not found in 'tools' parameter.", "tool_choice", "invalid_value"
            )


def output_limit(body: Body, _: Known) -> Iterator[Refusal]:
    if body.get("max_tokens") is not None and _REASONS.match(body["model"]):
        yield Refusal(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "max_tokens",
            "unsupported_parameter",
        )
    for name in ("max_tokens", "max_completion_tokens"):
        if body.get(name) is not None and body[name] < 1:
            yield Refusal(
                f"Invalid '{name}': integer below minimum value. Expected a value >= 1, but got {body[name]} "
                "instead.",
                name,
                "integer_below_min_value",
            )


def stream_settings(body: Body, _: Known) -> Iterator[Refusal]:
    if body.get("stream_options") is not None and not body.get("stream"):
        yield Refusal(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options"
        )


def media(body: Body, _: Known) -> Iterator[Refusal]:
    for number, message in enumerate(body["messages"]):
        for index, part in enumerate(listed(message.get("content"))):
            if part["type"] == "image_url":
                path: Path = ("messages", number, "content", index, "image_url", "url")
                yield from image_faults(path, part["image_url"].get("url"))


def cache(body: Body, known: Known) -> Iterator[Refusal]:
    marked = [
        (("messages", number, "content", index, "prompt_cache_breakpoint"), part["prompt_cache_breakpoint"])
        for number, message in enumerate(body["messages"])
        for index, part in enumerate(listed(message.get("content")))
        if part.get("prompt_cache_breakpoint")
    ]
    yield from cache_settings(body, known, marked, ("30m",))


CHAT_RULES: Mapping[str, Check] = {
    "field": top_fields,
    "message field": message_fields,
    "tool field": tool_fields,
    "empty message": said_nothing,
    "text too long": long_text,
    "call id unusable": call_id,
    "call id not unique": call_id_twice,
    "call name unusable": call_name,
    "answer without call": answer_without_call,
    "second answer": second_answer,
    "call without answer": call_without_answer,
    "tool name unusable": tool_name,
    "tool declared twice": tool_twice,
    "tool schema": tool_schema,
    "tool choice": tool_choice,
    "output limit": output_limit,
    "stream settings": stream_settings,
    "media": media,
    "cache settings": cache,
}
"""Every rule by its stable name, in the order in which they are asked."""
