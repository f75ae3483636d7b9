"""OpenAI Responses: a reply on the wire, whole or as a stream.

Ids of a reply that reasoned are made from its reasoning item (`responses_rules.owner`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shiftbook.messages import Call, Reasoning, Text
from shiftbook.testing.server.events import Event, Place, in_pieces
from shiftbook.testing.server.making import Made, Making
from shiftbook.testing.server.pieces import chain, responses_item_pieces
from shiftbook.testing.server.rule import Refusal
from shiftbook.testing.server.script import REDACTED, arguments_text
from shiftbook.testing.server.signatures import Stale

_REASONS = {"edited": "prefix_mismatch", "other prefix": "prefix_mismatch", "other model": "model_mismatch"}
_ECHOED = ("instructions", "metadata", "temperature", "top_p", "tool_choice", "tools", "reasoning", "text")


def whole(making: Making, asked: Mapping[str, Any], withheld: Sequence[Stale]) -> Made:
    """The reply as one body; `withheld` lists reasoning of the input that the model was not shown."""
    output: list[dict[str, Any]] = []
    before, owner = making.before, ""
    for index, part in enumerate(making.reply.parts):
        item = _item(making, part, before, index, owner)
        if item["type"] == "reasoning" and item["id"].startswith("rs_"):
            owner = item["id"].removeprefix("rs_")
        output.append(item)
        before = chain(responses_item_pieces(item), before)[-1]
    reason = {"length": "max_output_tokens", "other": "content_filter"}.get(making.stop)
    body: dict[str, Any] = {
        "id": f"resp_{making.id('response')}",
        "object": "response",
        "created_at": making.at_s,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": making.model,
        "output": output,
        "parallel_tool_calls": asked.get("parallel_tool_calls", True),
        "previous_response_id": None,
        "store": False,
        **{key: asked.get(key) for key in _ECHOED},
        "tool_choice": asked.get("tool_choice") or "auto",
        "tools": asked.get("tools") or [],
        "usage": usage(making),
    }
    if withheld:
        body["input_transformations"] = [
            {"id": each.reasoned.id, "action": "removed", "reason": _REASONS[each.why], "type": "reasoning"}
            for each in withheld
        ]
    return Made(body, before)


def _item(making: Making, part: object, before: bytes, index: int, owner: str) -> dict[str, Any]:
    named = f"r{owner}_{index}" if owner else making.id(f"item {index}")
    match part:
        case Reasoning(opaque=Mapping() as item):
            return dict(item)
        case Reasoning(text=words, opaque=opaque):
            shown = "" if opaque == REDACTED else words
            return {
                "id": f"rs_{making.id(f'item {index}')}",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": shown}] if shown else [],
                "encrypted_content": making.signature(before, shown),
            }
        case Call(id=given, tool=tool):
            return {
                "id": f"fc_{named}",
                "type": "function_call",
                "call_id": given or f"call_{making.id(f'call {index}')}",
                "name": tool,
                "arguments": arguments_text(part),
                "status": "completed",
            }
    words = part.text if isinstance(part, Text) else str(part)
    content: dict[str, Any] = {"type": "output_text", "text": words, "annotations": [], "logprobs": []}
    if making.stop == "refusal":
        content = {"type": "refusal", "refusal": words}
    return {
        "id": f"msg_{named}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [content],
    }


def usage(making: Making) -> dict[str, Any]:
    """The reply's usage: reads and writes of the cache are inside `input_tokens`."""
    count = making.count
    return {
        "input_tokens": count.prompt,
        "input_tokens_details": {"cached_tokens": count.read, "cache_write_tokens": count.write_5m},
        "output_tokens": making.output.total,
        "output_tokens_details": {"reasoning_tokens": making.output.reasoning},
        "total_tokens": count.prompt + making.output.total,
    }


def error_event(refusal: Refusal, _request_id: str, number: int) -> Event:
    """The vendor's error in the middle of a stream."""
    told = {"type": "error", "code": refusal.code or refusal.kind, "message": refusal.message, "param": None}
    return Event("between", "error", {**told, "sequence_number": number})


def streamed(made: Made, _asked: Mapping[str, Any]) -> list[Event]:
    """The same reply as a stream, its events numbered."""
    return [
        Event(event.place, event.name, {**event.data, "sequence_number": number})
        for number, event in enumerate(_events(made.body))
        if isinstance(event.data, Mapping)
    ]


def _events(body: Mapping[str, Any]) -> Iterator[Event]:
    begun = {**body, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield _event("start", "response.created", response=begun)
    yield _event("between", "response.in_progress", response=begun)
    for index, item in enumerate(body["output"]):
        yield from _item_events(index, item)
    yield _event("end", f"response.{body['status']}", response=dict(body))


def _item_events(index: int, item: Mapping[str, Any]) -> Iterator[Event]:
    at = {"output_index": index, "item_id": item.get("id", "")}
    empty: dict[str, Any] = {}
    inner: Iterator[Event] = iter(())
    match item["type"]:
        case "message":
            empty, inner = {"content": [], "status": "in_progress"}, _part_events(at, item["content"][0])
        case "function_call":
            empty, inner = {"arguments": "", "status": "in_progress"}, _call_events(at, item["arguments"])
        case "reasoning":
            empty = {"summary": [], "encrypted_content": ""}
            inner = _summary_events(at, [part["text"] for part in item["summary"]])
    yield _event("between", "response.output_item.added", output_index=index, item={**item, **empty})
    yield from inner
    yield _event("between", "response.output_item.done", output_index=index, item=dict(item))


def _part_events(at: Mapping[str, Any], part: Mapping[str, Any]) -> Iterator[Event]:
    at = {**at, "content_index": 0}
    field, name = ("text", "output_text") if part["type"] == "output_text" else ("refusal", "refusal")
    logprobs: dict[str, Any] = {"logprobs": []} if field == "text" else {}
    yield _event("between", "response.content_part.added", **at, part={**part, field: ""})
    for each in in_pieces(part[field]):
        yield _event("text", f"response.{name}.delta", **at, delta=each, **logprobs)
    yield _event("between", f"response.{name}.done", **at, **{field: part[field]}, **logprobs)
    yield _event("between", "response.content_part.done", **at, part=dict(part))


def _call_events(at: Mapping[str, Any], arguments: str) -> Iterator[Event]:
    for each in in_pieces(arguments):
        yield _event("call", "response.function_call_arguments.delta", **at, delta=each)
    yield _event("between", "response.function_call_arguments.done", **at, arguments=arguments)


def _summary_events(at: Mapping[str, Any], texts: list[str]) -> Iterator[Event]:
    for index, text in enumerate(texts):
        here = {**at, "summary_index": index}
        part = {"type": "summary_text", "text": text}
        yield _event("between", "response.reasoning_summary_part.added", **here, part={**part, "text": ""})
        for each in in_pieces(text):
            yield _event("reasoning", "response.reasoning_summary_text.delta", **here, delta=each)
        yield _event("between", "response.reasoning_summary_text.done", **here, text=text)
        yield _event("between", "response.reasoning_summary_part.done", **here, part=part)


def _event(place: Place, name: str, **data: Any) -> Event:
    return Event(place, name, {"type": name, **data})
