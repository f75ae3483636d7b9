"""Streamed OpenAI replies put together: chunks or events in, our events out, the whole at the end. Pure.

What comes of it is what an unstreamed answer would have been. Endpoints that speak Chat differ in small
things, which are taken as they come: a call's number may be missing, its id repeated, its arguments whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from shiftbook.messages import CallDelta, ReasoningDelta, ReplyEvent, TextDelta
from shiftbook.providers.openai_chat_wire import REASONING_FIELDS

ENDED = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


class CompletionAssembly:
    """The part of a Chat completion that has come so far."""

    def __init__(self) -> None:
        self._top: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}
        self._calls: list[dict[str, Any]] = []
        self._places: dict[int, int] = {}
        self._finish: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the reply came to an end."""
        return self._finish is not None

    def take(self, chunk: Mapping[str, Any]) -> Iterator[ReplyEvent]:
        """Take the next chunk; give what a reader should see of it."""
        for name in ("id", "model", "usage"):
            if chunk.get(name):
                self._top[name] = chunk[name]
        for choice in chunk.get("choices") or ():
            if choice.get("index") not in (0, None):
                continue
            self._finish = choice.get("finish_reason") or self._finish
            yield from self._add(choice.get("delta") or {})

    def completion(self) -> dict[str, Any]:
        """The completion as far as it has come."""
        message: dict[str, Any] = {"role": "assistant", "content": None}
        message.update({name: "".join(pieces) for name, pieces in self._texts.items()})
        if self._calls:
            message["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": "".join(call["arguments"])},
                }
                for call in self._calls
            ]
        return {**self._top, "choices": [{"index": 0, "message": message, "finish_reason": self._finish}]}

    def _add(self, delta: Mapping[str, Any]) -> Iterator[ReplyEvent]:
        seen = [name for name in REASONING_FIELDS if isinstance(delta.get(name), str) and delta[name]]
        if seen:
            # Some endpoints give the same words under both names.
            self._texts.setdefault(seen[0], []).append(delta[seen[0]])
            yield ReasoningDelta(delta[seen[0]])
        for name in ("content", "refusal"):
            if delta.get(name):
                self._texts.setdefault(name, []).append(delta[name])
                yield TextDelta(delta[name])
        for piece in delta.get("tool_calls") or ():
            yield from self._call(piece)

    def _call(self, piece: Mapping[str, Any]) -> Iterator[ReplyEvent]:
        function = piece.get("function") or {}
        call = self._call_of(piece, function.get("name"))
        if call is None:
            self._calls.append(
                {"id": piece.get("id") or "", "name": function.get("name") or "", "arguments": []}
            )
            call = self._calls[-1]
            if isinstance(piece.get("index"), int):
                self._places[piece["index"]] = len(self._calls) - 1
            yield CallDelta(call["name"])
        given = function.get("arguments")
        if given:
            text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
            call["arguments"].append(text)
            yield CallDelta(call["name"], text)

    def _call_of(self, piece: Mapping[str, Any], name: str | None) -> dict[str, Any] | None:
        """The call that a piece goes on with, None where it begins one."""
        index = piece.get("index")
        if isinstance(index, int):
            return self._calls[self._places[index]] if index in self._places else None
        if self._calls and not name and piece.get("id") in (None, "", self._calls[-1]["id"]):
            return self._calls[-1]
        return None


class ResponseAssembly:
    """The part of a response that has come so far. `failure` is the vendor's word for why there is none."""

    def __init__(self) -> None:
        self._items: dict[int, dict[str, Any]] = {}
        self._names: dict[int, str] = {}
        self._response: dict[str, Any] | None = None
        self.failure: Mapping[str, Any] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the reply came to an end."""
        return self._response is not None

    def take(self, event: Mapping[str, Any]) -> ReplyEvent | None:
        """Take the next event; give what a reader should see of it."""
        kind = event["type"]
        if kind in ENDED:
            self._response = dict(event["response"])
            if kind in ("response.failed", "response.cancelled"):
                self.failure = self._response.get("error") or {"code": "server_error", "message": kind}
            return None
        match kind:
            case "error":
                self.failure = event
            case "response.output_text.delta" | "response.refusal.delta":
                return TextDelta(event["delta"])
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return ReasoningDelta(event["delta"])
            case "response.function_call_arguments.delta":
                return CallDelta(self._names.get(event["output_index"], ""), event["delta"])
            case "response.output_item.added" if event["item"]["type"] == "function_call":
                self._names[event["output_index"]] = event["item"]["name"]
                return CallDelta(event["item"]["name"])
            case "response.output_item.done":
                self._items[event["output_index"]] = dict(event["item"])
        return None

    def response(self) -> dict[str, Any]:
        """The whole response; its items as each was last reported whole."""
        whole = dict(self._response or {})
        listed = dict(enumerate(whole.get("output") or ()))
        items = {**listed, **self._items}
        return {**whole, "output": [items[index] for index in sorted(items)]}
