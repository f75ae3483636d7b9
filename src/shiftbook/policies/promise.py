"""What a policy promises: to decide, purely, what the next prompt is made of.

`choose` sees the epoch's prompt so far, the model-visible entries that came since, and the budget. It
returns a `Choice`; it renders nothing, writes nothing and reads no clock. Its decisions are journaled, so
they are made once and never again: a later version of the policy may decide otherwise for later turns.
Where it needs an account of what leaves the prompt, or older entries brought back, it says so by `WantReport`
or `WantRecall`, and is asked again once that is among the fresh entries. Whatever it chooses stays within
`budget.cap` by `budget.measure`, whatever the entries hold, and keeps every call beside exactly one answer.

A policy that wants reports has `report_room(cap, mark, fixed)` too: the tokens that one may take, 0 where
there is no room for any. While a model writes them, so much and the request itself stay free below the cap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shiftbook.entries import Entry
from shiftbook.prompt.epoch import Budget, Choice, EpochPrompt


class Policy(Protocol):
    """How a prompt is made from a journal."""

    @property
    def name(self) -> str: ...

    def choose(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget) -> Choice:
        """What the next prompt is made of. `fresh` is in journal order and may be empty."""
        ...

    def reopen(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget, reason: str) -> Choice:
        """As `choose`, but the epoch has to end now (the agent changed): a `Rebuild`, or `Full`."""
        ...
