"""The prompt of the current epoch, as it stands: what was picked, rendered and measured so far.

Within an epoch it only grows at its end. Everything in it follows from entries and picks: a resumed process
rebuilds the same value from the journal, and `verify` does too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from shiftbook.entries import Entry, Pick, Recipe, ReportWritten
from shiftbook.messages import Block
from shiftbook.projections.knowledge import Knowledge

Measure = Callable[[Block], int]
"""Tokens of a block by the run's one meter, its overhead included."""

Warnings = tuple[tuple[str, str], ...]
"""What was not done as it would be expected: a stable name and a sentence each, for `Warned` entries."""


@dataclass(slots=True)
class EpochPrompt:
    """The growing list. `fixed` is the measure of instructions, tools and `--fixed` filler, in tokens.

    `blocks`, `sizes` run in parallel (no sizes in a prompt that was re-derived without a gauge); `shown` maps
    a position that is in the prompt to its entry, in the prompt's order; `digest` is the chain over the
    blocks, from the declaration on. All sizes are by the one meter named `meter`.
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
    declaration: str = ""
    renderer: int = 1
    meter: str = ""
    upto: int = 0
    """The last model-visible entry that was there when the prompt last grew, shown or not."""
    media: set[str] = field(default_factory=set)
    """The blobs of the images and files in it."""
    first_end: int = 0
    """Blocks of the epoch's first request."""
    last_end: int = 0
    """Blocks of the request before the last growth; 0 where the last is the epoch's first."""

    @property
    def is_paused(self) -> bool:
        """Whether it ends with a reply that paused, for its vendor to go on with."""
        return bool(self.picks) and self.picks[-1].form == "paused"


@dataclass(frozen=True, slots=True)
class RecallRoom:
    """What may be brought back for one message, in tokens: where it asks for a point, and for a set."""

    point: int = 0
    whole_set: int = 0


@dataclass(frozen=True, slots=True)
class Budget:
    """What a prompt may take, in tokens. `mark` is the low water that a rebuild goes down to.

    `tools` are the names that the request declares: a call of any other is told as a record. None: any name.
    """

    cap: int
    mark: int
    measure: Measure
    tools: frozenset[str] | None = None
    knowledge: Knowledge = field(default_factory=Knowledge)
    """What stands after the last of the fresh entries."""
    gap_ms: int | None = None
    """Time since the last request, as the entries' stamps have it; None where there was none."""
    reserve: int = 0
    """What the agent's cap is above this one, so that a report can be asked for behind the prompt."""
    spread: float | None = None
    """How many tokens read from the cache one costs that is written instead, beyond the read itself; None
    where prices are not known or nobody asks what a rebuild would spare."""
    recall: RecallRoom = RecallRoom()
    brought: Mapping[int, Entry] = field(default_factory=dict)
    """The entries that a `Recalled` among the fresh ones names."""


Made = tuple[tuple[Block, int], ...]
"""Blocks as they were rendered and measured while a policy decided, in the prompt's order."""


@dataclass(frozen=True, slots=True)
class Extend:
    """Add these picks at the end of the epoch's prompt.

    `made` are their blocks and sizes where the policy has them already, so that nothing is made twice; None
    where it has not. It says nothing that the picks do not say.
    """

    picks: Recipe
    warnings: Warnings = ()
    made: Made | None = None


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Open a new epoch: `head` is the new prompt's beginning, `picks` what the turn adds after it."""

    reason: str
    head: Recipe
    picks: Recipe
    numbers: dict[str, int]
    warnings: Warnings = ()


@dataclass(frozen=True, slots=True)
class Full:
    """Nothing can be added and the policy drops nothing: the run stops at the cap, nothing is lost."""

    tokens: int


@dataclass(frozen=True, slots=True)
class WantReport:
    """Before a new epoch: an account of `entries`, which leave the prompt, in `room` tokens.

    It stands for everything from `first` to `last` that the new epoch does not show. `before` is the report
    that stood until now. Once it is written, as a `ReportWritten` among the fresh entries, the policy is
    asked again. With `rewrite` a model that writes it has `before` among its entries, and what it does not
    write again is gone; else, and by rule, lines are carried word for word or dropped.
    """

    first: int
    last: int
    entries: tuple[Entry, ...]
    before: ReportWritten | None
    room: int
    rewrite: bool = False


@dataclass(frozen=True, slots=True)
class WantRecall:
    """Before the prompt grows: older entries about `query`, in `room` tokens.

    `beside` is what stands around the query and counts for less; `shown` are positions that do not have to
    come back. Once a `Recalled` of `asked_by` is among the fresh entries, with whatever was found, the policy
    is asked again.
    """

    query: str
    beside: tuple[str, ...]
    shown: frozenset[int]
    room: int
    asked_by: str


Choice = Extend | Rebuild | Full | WantReport | WantRecall
Decided = Extend | Rebuild | Full
"""A choice with nothing left to write or to look for first."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What a choice makes of the prompt, rendered and measured, before it is committed and adopted.

    `fresh_epoch` says that the blocks replace everything; else they come at the end. `seen` are the visible
    entries that it took account of, shown or not; of a new epoch only the last.
    """

    blocks: tuple[Block, ...]
    sizes: tuple[int, ...]
    picks: Recipe
    shown: tuple[Entry, ...]
    digest: str
    tokens: int
    fresh_epoch: int | None = None
    declaration: str = ""
    renderer: int = 1
    fixed: int = 0
    meter: str = ""
    seen: tuple[int, ...] = ()
