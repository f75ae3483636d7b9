"""A stream as a list of events before it is sent, so that a place in it can be found and spoilt."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from shiftbook.errors import BadInput
from shiftbook.testing.server.script import Where

PIECE_CHARS_MIN = 24
PIECES_MAX = 8

Place = Literal["start", "reasoning", "text", "call", "end", "between"]


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event: its name if the vendor gives one, its data, and what part of the reply it is."""

    place: Place
    name: str | None
    data: Mapping[str, Any] | str

    def encoded(self) -> bytes:
        """The event on the wire."""
        text = self.data if isinstance(self.data, str) else json.dumps(self.data, separators=(",", ":"))
        name = f"event: {self.name}\n" if self.name else ""
        return f"{name}data: {text}\n\n".encode()


def in_pieces(text: str) -> list[str]:
    """The text in at most `PIECES_MAX` pieces, two at least if it has two characters: a cut has a middle."""
    if len(text) < 2:
        return [text] if text else []
    count = min(PIECES_MAX, max(2, -(-len(text) // PIECE_CHARS_MIN)))
    size = -(-len(text) // count)
    return [text[start : start + size] for start in range(0, len(text), size)]


def behind(events: Sequence[Event], where: Where) -> int:
    """How many events come before that place; refuses a place that this stream does not have."""
    if where == "end":
        return next(n for n, event in enumerate(events) if event.place == "end")
    for number, event in enumerate(events):
        if event.place == where:
            return number + 1
    raise BadInput(f"The script spoils a stream at its {where}, and this reply has no {where}; give it one.")


def garbled(event: Event) -> bytes:
    """The event with the end of its JSON missing."""
    whole = event.encoded().rstrip(b"\n")
    return whole[: -(len(whole) // 4)] + b"\n\n"
