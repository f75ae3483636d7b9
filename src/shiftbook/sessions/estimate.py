"""Requests of a conversation that records no usage: our meter over the text that can be seen.

Each reply is one request, its prompt everything said before it. The system prompt and the tools that a file
does not show are not in the figure, and no vendor's own count is claimed: such rows say "estimated". How
much came from a cache is not known and not guessed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from shiftbook.sessions.normal import RecordedUsage
from shiftbook.sessions.requests import Kind
from shiftbook.sessions.rows import RowDraft
from shiftbook.tokens import BpeMeter, Meter

_DEPTH_MAX = 20
_SAID = ("text", "content", "thinking", "reasoning", "refusal", "name", "function", "tool_calls", "parts")
_DATA = ("arguments", "input", "output", "result", "action")


def told(value: object, depth: int = 0) -> str:
    """The text of a message, of whatever vendor: contents, calls and results, without ids and roles."""
    if isinstance(value, str):
        return value
    if depth > _DEPTH_MAX:
        return ""
    if isinstance(value, list):
        return "\n".join(filter(None, (told(each, depth + 1) for each in value)))
    if not isinstance(value, dict):
        return ""
    said = [told(value[key], depth + 1) for key in _SAID if key in value]
    said += [written(value[key]) for key in _DATA if key in value]
    return "\n".join(filter(None, said))


def written(value: object) -> str:
    """A call's arguments or a result as a model is sent them."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""


class Estimate:
    """A conversation while it grows, and a row for each reply in it."""

    def __init__(self, draft: RowDraft, meter: Meter | None = None) -> None:
        self._draft, self._meter = draft, meter or BpeMeter()
        self._prompt = 0

    def heard(self, text: str) -> None:
        """Something that every later prompt holds."""
        if text:
            self._prompt += self._meter.count(text)

    def replied(
        self,
        text: str,
        line: int,
        *,
        at_ms: int | None = None,
        model: str | None = None,
        request: str | None = None,
        branch: str = "",
        kind: Kind = "main",
    ) -> None:
        """A reply: one request, and part of the prompts after it."""
        output = self._meter.count(text) if text else 0
        usage = RecordedUsage(undivided=self._prompt, output=output)
        self._draft.row(
            usage,
            line,
            at_ms=at_ms,
            model=model,
            request=request,
            branch=branch,
            kind=kind,
            source="estimated",
        )
        self._prompt += output

    def message(self, message: Mapping[str, object], line: int, *, at_ms: int | None = None) -> None:
        """A chat message: a request when it is the assistant's."""
        # The name of a tool message tells whose result it is; it is not sent as text.
        text = told({key: message[key] for key in message if key != "name"})
        if message.get("role") == "assistant":
            self.replied(text, line, at_ms=at_ms)
        else:
            self.heard(text)
