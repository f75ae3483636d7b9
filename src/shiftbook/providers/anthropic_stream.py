"""A streamed Anthropic message put together: events in, ours out, the whole message at the end. Pure.

What comes of it is the message as an unstreamed answer would have been, except that the input of a call
which is not the text of one JSON object stays as the text that came.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from shiftbook.messages import CallDelta, ReasoningDelta, ReplyEvent, TextDelta


class MessageAssembly:
    """The part of a message that has come so far."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, list[str]] = {}
        self.is_whole = False

    def take(self, event: Mapping[str, Any]) -> ReplyEvent | None:
        """Take the next event; give what a reader should see of it."""
        match event["type"]:
            case "message_start":
                self._message = {**event["message"], "usage": dict(event["message"].get("usage") or {})}
            case "content_block_start":
                return self._begin(event["index"], dict(event["content_block"]))
            case "content_block_delta":
                return self._add(event["index"], event["delta"])
            case "message_delta":
                self._message.update(event["delta"])
                usage = event.get("usage") or {}
                # Counts here are cumulative; what is null here stands as it stood at the start.
                self._message["usage"].update({k: v for k, v in usage.items() if v is not None})
            case "message_stop":
                self.is_whole = True
        return None

    def message(self) -> dict[str, Any]:
        """The message as far as it has come."""
        blocks = {**self._blocks}
        for index, pieces in self._inputs.items():
            if text := "".join(pieces):
                given = _input(text)
                if isinstance(given, dict) or blocks[index]["type"] == "tool_use":
                    blocks[index] = {**blocks[index], "input": given}
        return {**self._message, "content": [blocks[index] for index in sorted(blocks)]}

    def _begin(self, index: int, block: dict[str, Any]) -> ReplyEvent | None:
        self._blocks[index] = block
        if block["type"] in ("tool_use", "server_tool_use"):
            self._inputs[index] = []
        if block["type"] == "tool_use":
            return CallDelta(block["name"])
        if block["type"] == "text" and block["text"]:
            return TextDelta(block["text"])
        return None

    def _add(self, index: int, delta: Mapping[str, Any]) -> ReplyEvent | None:
        block = self._blocks[index]
        match delta["type"]:
            case "text_delta":
                block["text"] += delta["text"]
                return TextDelta(delta["text"])
            case "thinking_delta":
                block["thinking"] = (block.get("thinking") or "") + delta["thinking"]
                return ReasoningDelta(delta["thinking"])
            case "signature_delta":
                block["signature"] = (block.get("signature") or "") + delta["signature"]
            case "input_json_delta":
                self._inputs[index].append(delta["partial_json"])
                if block["type"] == "tool_use":
                    return CallDelta(block["name"], delta["partial_json"])
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        return None


def _input(text: str) -> Any:
    """The input that the text is, or the text where writing the input again would not give it."""
    try:
        parsed = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    if type(parsed) is dict:
        for separators in ((", ", ": "), (",", ":")):
            if text == json.dumps(parsed, ensure_ascii=False, separators=separators):
                return parsed
    return text


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
