"""What an observer promises: from one result to what it says, purely and within bounds.

What comes in is a tool's word: hostile text. What goes out is data under keys that the observer's author
chose. The engine checks every piece and sets its origin and its source; it takes nothing else than the three
kinds of `Noticed`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from shiftbook.entries import PlanChanged, StatementMade, TallyChanged, UserContent
from shiftbook.messages import Json, Text
from shiftbook.projections.knowledge import Knowledge

Noticed = StatementMade | PlanChanged | TallyChanged
"""What an observer may return; origin and sources are set by the engine, whatever it says there."""

JSON_CHARS_MAX = 1_000_000
"""A longer result is not read as JSON."""


@dataclass(frozen=True, slots=True)
class Observed:
    """One call that is done. `position` is the entry of its result; the arguments are the model's."""

    tool: str
    call: str
    arguments: Mapping[str, Json]
    content: UserContent
    position: int

    @property
    def text(self) -> str:
        """The texts of the result as one."""
        return "\n".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def value(self) -> Json:
        """The result's first text read as JSON, numbers with a point as their text; None where it is none."""
        first = next((part.text for part in self.content if isinstance(part, Text)), "")
        if len(first) > JSON_CHARS_MAX:
            return None
        try:
            # A decimal in JSON text is exact as it is written; as a float it would not be.
            return json.loads(first, parse_float=str, parse_constant=lambda _name: None)
        except (ValueError, RecursionError):
            return None


class Observer(Protocol):
    """Code that notices. Any function of this shape is one."""

    def __call__(self, done: Observed, known: Knowledge, /) -> Iterable[Noticed]:
        """What the result says; nothing for a tool that it does not know. Pure; `known` stays as it is."""
        ...
