"""Anthropic Messages: the paths of a reply onto the wire, whole or as a stream, and its errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shiftbook.messages import Call, Reasoning, StopReason, Text
from shiftbook.testing.server.events import Event, Place, in_pieces
from shiftbook.testing.server.making import Made, Making
from shiftbook.testing.server.pieces import anthropic_piece, chain
from shiftbook.testing.server.rule import Refusal
from shiftbook.testing.server.script import REDACTED, arguments_text
from shiftbook.testing.server.signatures import Stale

REQUEST_ID = "request-id"
KINDS: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
STOPS: Mapping[StopReason, str] = {
    "end": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "refusal": "refusal",
    "pause": "pause_turn",
    "other": "model_context_window_exceeded",
}


def error_body(refusal: Refusal, request_id: str) -> dict[str, Any]:
    """The vendor's error body."""
    return {
        "type": "error",
        "error": {"type": refusal.kind, "message": refusal.message},
        "request_id": request_id,
    }


def error_event(refusal: Refusal, request_id: str, _number: int) -> Event:
    """The vendor's error in the middle of a stream."""
    return Event("between", "error", error_body(refusal, request_id))


def stale_refusal(found: Stale) -> Refusal:
    """What the vendor says of a reasoning block that may not stand where it stands."""
    block = found.reasoned.block
    text = f"{found.reasoned.path}: Invalid `signature` in `{block}` block"
    if block == "redacted_thinking":
        text = f"{found.reasoned.path}: Invalid `data` in `{block}` block"
    if found.why == "other prefix":
        text += (
            ". The block is bound to a different conversation. Remove the block, or set "
            '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
        )
    if found.why == "other model":
        text += ". The block was produced by a different model."
    return Refusal(text, rule=f"reasoning of {found.why}" if found.why != "edited" else "reasoning edited")


def whole(making: Making, _asked: Mapping[str, Any], _withheld: Sequence[Stale]) -> Made:
    """The reply as one body."""
    content: list[dict[str, Any]] = []
    arguments: dict[str, str] = {}
    before = making.before
    for part in making.reply.parts:
        block = _block(making, part, before, len(content))
        if isinstance(part, Call):
            arguments[block["id"]] = arguments_text(part)
        content.append(block)
        before = chain([anthropic_piece("assistant", block)], before)[-1]
    body: dict[str, Any] = {
        "id": f"msg_{making.id('message')}",
        "type": "message",
        "role": "assistant",
        "model": making.model,
        "content": content,
        "stop_reason": STOPS[making.stop],
        "stop_sequence": None,
        "usage": usage(making),
    }
    if making.stop == "refusal":
        body["stop_details"] = {"type": "refusal", "category": None, "explanation": None}
    return Made(body, before, arguments)


def _block(making: Making, part: object, before: bytes, index: int) -> dict[str, Any]:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Call(id=given, tool=tool, arguments=arguments):
            name = given or f"toolu_{making.id(f'call {index}')}"
            return {"type": "tool_use", "id": name, "name": tool, "input": dict(arguments or {})}
        case Reasoning(opaque=Mapping() as block):
            return dict(block)
        case Reasoning(opaque=opaque) if opaque == REDACTED:
            return {"type": "redacted_thinking", "data": making.signature(before, "")}
        case Reasoning(text=words):
            return {"type": "thinking", "thinking": words, "signature": making.signature(before, words)}
        case _:
            return {"type": "text", "text": str(part)}


def usage(making: Making) -> dict[str, Any]:
    """The reply's usage: what was read from the cache and written to it stands outside `input_tokens`."""
    count = making.count
    return {
        "input_tokens": count.uncached,
        "cache_read_input_tokens": count.read,
        "cache_creation_input_tokens": count.write_5m + count.write_1h,
        "cache_creation": {
            "ephemeral_5m_input_tokens": count.write_5m,
            "ephemeral_1h_input_tokens": count.write_1h,
        },
        "output_tokens": making.output.total,
        "output_tokens_details": {"thinking_tokens": making.output.reasoning},
        "service_tier": "standard",
    }


def streamed(made: Made, _body: Mapping[str, Any]) -> list[Event]:
    """The same reply as a stream."""
    return list(_events(made))


def _events(made: Made) -> Iterator[Event]:
    body = made.body
    early = {**body["usage"], "output_tokens": 1}
    early.pop("output_tokens_details")
    opened = {**body, "content": [], "stop_reason": None, "usage": early}
    opened.pop("stop_details", None)
    yield _event("start", "message_start", message=opened)
    yield _event("between", "ping")
    for index, block in enumerate(body["content"]):
        yield from _block_events(index, block, made.arguments)
    ended = {key: body[key] for key in ("stop_reason", "stop_sequence", "stop_details") if key in body}
    late = {
        key: value for key, value in body["usage"].items() if key not in ("cache_creation", "service_tier")
    }
    yield _event("end", "message_delta", delta=ended, usage=late)
    yield _event("end", "message_stop")


def _block_events(index: int, block: dict[str, Any], arguments: Mapping[str, str]) -> Iterator[Event]:
    empty: dict[str, Any] = {}
    deltas: list[tuple[Place, dict[str, Any]]] = []
    match block["type"]:
        case "text":
            empty = {"text": ""}
            deltas = [("text", {"type": "text_delta", "text": each}) for each in in_pieces(block["text"])]
        case "tool_use":
            empty = {"input": {}}
            texts = in_pieces(arguments[block["id"]])
            deltas = [("call", {"type": "input_json_delta", "partial_json": each}) for each in texts]
        case "thinking":
            empty = {"thinking": "", "signature": ""}
            texts = in_pieces(block["thinking"])
            deltas = [("reasoning", {"type": "thinking_delta", "thinking": each}) for each in texts]
            deltas.append(("between", {"type": "signature_delta", "signature": block["signature"]}))
    yield _event("between", "content_block_start", index=index, content_block={**block, **empty})
    for place, delta in deltas:
        yield _event(place, "content_block_delta", index=index, delta=delta)
    yield _event("between", "content_block_stop", index=index)


def _event(place: Place, name: str, **data: Any) -> Event:
    return Event(place, name, {"type": name, **data})
