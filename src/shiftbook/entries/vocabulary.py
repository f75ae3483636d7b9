"""Every kind there is, its number, which a model may see, and the entry around what happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

from shiftbook.entries.actions import ActionFinished, ActionStarted
from shiftbook.entries.asking import (
    EpochOpened,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    ModelInterrupted,
    Recalled,
)
from shiftbook.entries.knowledge import PlanChanged, StatementMade, TallyChanged
from shiftbook.entries.reports import LineStruck, ReportAnswered, ReportAsked, ReportFailed, ReportWritten
from shiftbook.entries.run import (
    AgentDeclared,
    LimitReached,
    PersonSaid,
    RuleSet,
    RunEnded,
    RunOpened,
    RunRested,
    Warned,
)

FORMAT = 1
"""Version of the entry format that this release writes; newer ones are refused on reading."""

What = (
    RunOpened
    | AgentDeclared
    | PersonSaid
    | RuleSet
    | EpochOpened
    | ModelAsked
    | ModelFailed
    | ModelAnswered
    | ModelInterrupted
    | ActionStarted
    | ActionFinished
    | StatementMade
    | PlanChanged
    | TallyChanged
    | ReportWritten
    | LineStruck
    | Recalled
    | LimitReached
    | Warned
    | RunRested
    | RunEnded
    | ReportAsked
    | ReportFailed
    | ReportAnswered
)

KINDS: Mapping[str, type[What]] = {kind.__name__: kind for kind in get_args(What)}
"""Every kind by its name; the order is the order of the numbers that a store keeps for them, from 1."""

KIND_NUMBERS: Mapping[str, int] = {name: number for number, name in enumerate(KINDS, start=1)}
"""The number of each kind: part of the format, never reused, only added to."""

MODEL_VISIBLE: frozenset[type[What]] = frozenset(
    {
        PersonSaid,
        RuleSet,
        ModelAnswered,
        ModelInterrupted,
        ActionFinished,
        StatementMade,
        PlanChanged,
        TallyChanged,
        ReportWritten,
        Recalled,
    }
)
"""The only kinds that may enter a prompt."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened, at its position in the run, which is its order; `at_ms` is the writer's clock,
    for people. `redacted` counts what was taken out before writing, by pattern name."""

    position: int
    at_ms: int
    epoch: int
    what: What
    redacted: Mapping[str, int] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The name of what happened."""
        return type(self.what).__name__
