"""OpenAI Chat Completions: a reply on the wire, whole or as a stream. Reasoning is counted and not shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shiftbook.messages import Call, StopReason, Text
from shiftbook.testing.server.events import Event, Place, in_pieces
from shiftbook.testing.server.making import Made, Making
from shiftbook.testing.server.openai_errors import error_body
from shiftbook.testing.server.rule import Refusal
from shiftbook.testing.server.script import arguments_text
from shiftbook.testing.server.signatures import Stale

STOPS: Mapping[StopReason, str] = {
    "end": "stop",
    "calls": "tool_calls",
    "length": "length",
    "refusal": "stop",
    "pause": "stop",
    "other": "content_filter",
}


def whole(making: Making, _asked: Mapping[str, Any], _withheld: Sequence[Stale]) -> Made:
    """The reply as one body; the words of a refusal stand in `refusal`."""
    words = "".join(part.text for part in making.reply.parts if isinstance(part, Text))
    calls = [
        {
            "id": part.id or f"call_{making.id(f'call {index}')}",
            "type": "function",
            "function": {"name": part.tool, "arguments": arguments_text(part)},
        }
        for index, part in enumerate(making.reply.parts)
        if isinstance(part, Call)
    ]
    refused = making.stop == "refusal"
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if refused or (calls and not words) else words,
        "refusal": words if refused else None,
        "annotations": [],
    }
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": STOPS[making.stop]}
    body = {**_head(making, "chat.completion"), "choices": [choice], "usage": usage(making)}
    return Made(body, b"")


def _head(making: Making, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{making.id('message')}",
        "object": kind,
        "created": making.at_s,
        "model": making.model,
        "service_tier": "default",
        "system_fingerprint": None,
    }


def usage(making: Making) -> dict[str, Any]:
    """The reply's usage: reads and writes of the cache are inside `prompt_tokens`."""
    count = making.count
    details = {"cached_tokens": count.read, "audio_tokens": 0}
    if making.writes_told:
        details["cache_write_tokens"] = count.write_5m
    return {
        "prompt_tokens": count.prompt,
        "completion_tokens": making.output.total,
        "total_tokens": count.prompt + making.output.total,
        "prompt_tokens_details": details,
        "completion_tokens_details": {
            "reasoning_tokens": making.output.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def error_event(refusal: Refusal, request_id: str, _number: int) -> Event:
    """The vendor's error in the middle of a stream."""
    return Event("between", None, error_body(refusal, request_id))


def streamed(made: Made, asked: Mapping[str, Any]) -> list[Event]:
    """The same reply as a stream; usage comes only if the request asked for it."""
    with_usage = bool((asked.get("stream_options") or {}).get("include_usage"))
    return list(_events(made.body, with_usage))


def _events(body: Mapping[str, Any], with_usage: bool) -> Iterator[Event]:
    head = {
        **{k: v for k, v in body.items() if k not in ("choices", "usage")},
        "object": "chat.completion.chunk",
    }
    if with_usage:
        head["usage"] = None
    choice = body["choices"][0]
    message = choice["message"]

    def chunk(place: Place, delta: dict[str, Any], finish: str | None = None) -> Event:
        told = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return Event(place, None, {**head, "choices": [told]})

    opening = None if message.get("tool_calls") or message["refusal"] else ""
    yield chunk("start", {"role": "assistant", "content": opening, "refusal": None})
    for each in in_pieces(message["content"] or ""):
        yield chunk("text", {"content": each})
    for each in in_pieces(message["refusal"] or ""):
        yield chunk("text", {"refusal": each})
    for index, call in enumerate(message.get("tool_calls", ())):
        function = {"name": call["function"]["name"], "arguments": ""}
        yield chunk("between", {"tool_calls": [{**call, "index": index, "function": function}]})
        for each in in_pieces(call["function"]["arguments"]):
            yield chunk("call", {"tool_calls": [{"index": index, "function": {"arguments": each}}]})
    yield chunk("end", {}, choice["finish_reason"])
    if with_usage:
        yield Event("end", None, {**head, "choices": [], "usage": body["usage"]})
    yield Event("end", None, "[DONE]")
