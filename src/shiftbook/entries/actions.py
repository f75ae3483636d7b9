"""Kinds of actions: announced before anything outside can notice, answered once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shiftbook.entries.run import UserContent

Outcome = Literal["done", "failed", "cancelled", "unknown"]


@dataclass(frozen=True, slots=True)
class ActionStarted:
    """A call is dispatched now, under `key`: whatever comes later, it may have had its effect."""

    call: str
    tool: str
    key: str
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class ActionFinished:
    """The one answer to a call. `reconciled`: the tool was asked afterwards whether it had happened."""

    call: str
    outcome: Outcome
    content: UserContent
    traceback: str | None = None
    reconciled: bool = False
