"""The prompt of the current epoch, as it stands: what was picked, rendered and measured so far.

Within an epoch it only grows at its end. Everything in it follows from entries and picks: a resumed process
rebuilds the same value from the journal, and `verify` does too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shiftbook.entries import Entry, Pick, Recipe
from shiftbook.messages import Block

Measure = Callable[[Block], int]
"""Tokens of a block by the run's one meter, its overhead included."""


@dataclass(slots=True)
class EpochPrompt:
    """The growing list. `fixed` is the measure of instructions, tools and `--fixed` filler, in tokens.

    `blocks`, `sizes` run in parallel; `shown` maps a position that is in the prompt to its entry; `digest`
    is the chain over the blocks, from the declaration on.
    """

    epoch: int
    fixed: int
    digest: str
    blocks: list[Block] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    picks: list[Pick] = field(default_factory=list)
    shown: dict[int, Entry] = field(default_factory=dict)
    tokens: int = 0
    """Tokens of all blocks together, the fixed part included."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a prompt may take, in tokens. `mark` is the low water that a rebuild goes down to."""

    cap: int
    mark: int
    measure: Measure


@dataclass(frozen=True, slots=True)
class Extend:
    """Add these picks at the end of the epoch's prompt."""

    picks: Recipe


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Open a new epoch: `head` is the new prompt's beginning, `picks` what the turn adds after it."""

    reason: str
    head: Recipe
    picks: Recipe
    numbers: dict[str, int]


@dataclass(frozen=True, slots=True)
class Full:
    """Nothing can be added and the policy drops nothing: the run stops at the cap, nothing is lost."""

    tokens: int


Choice = Extend | Rebuild | Full


def fresh_entries(entries: Sequence[Entry], prompt: EpochPrompt) -> list[Entry]:
    """The model-visible entries that the prompt does not hold yet."""
    return [entry for entry in entries if entry.position not in prompt.shown]


@dataclass(frozen=True, slots=True)
class Growth:
    """What a choice makes of the prompt, rendered and measured, before it is committed and adopted.

    `fresh_epoch` says that the blocks replace everything; else they come at the end.
    """

    blocks: tuple[Block, ...]
    sizes: tuple[int, ...]
    picks: Recipe
    shown: tuple[Entry, ...]
    digest: str
    tokens: int
    fresh_epoch: int | None = None
    declaration: str = ""
