"""Where a run stands, as the catalogue lists it.

A run is opened, its agent is declared and may later be another, it rests and is taken up again, and ends for
good. Only four kinds say so; any other entry after a rest means that the run goes on. So most commits leave
the standing as it is, and the catalogue costs them nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from shiftbook.codec import Row, open_row
from shiftbook.entries import AgentDeclared, RunEnded, RunOpened, RunRested, State

STANDING_KINDS = frozenset({"RunOpened", "AgentDeclared", "RunRested", "RunEnded"})
"""The kinds that say where a run stands."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What the catalogue keeps of a run; `ended` when no later entry can take it up again."""

    agent: str
    state: State
    tags: tuple[str, ...]
    opened_ms: int
    ended: bool = False


def is_unmoved(standing: Standing, kinds: frozenset[str] | set[str]) -> bool:
    """Whether entries of these kinds leave a run of this standing where it is, without reading them."""
    if not STANDING_KINDS.isdisjoint(kinds):
        return False
    return standing.state == "running" or standing.ended


def after(before: Standing | None, row: Row, blob: Callable[[str], bytes] | None = None) -> Standing:
    """The standing once `row` has happened; `before` is None for a run's first row.

    `blob` fetches an outsourced payload by its hash. Raises what `codec.open_row` raises for a row of one
    of `STANDING_KINDS` that cannot be read; other rows are not opened.
    """
    standing = before or Standing("", "running", (), row.at_ms)
    if standing.ended:
        return standing
    if row.kind not in STANDING_KINDS:
        return standing if standing.state == "running" else replace(standing, state="running")
    what = open_row(row, blob).what
    match what:
        case RunOpened():
            return Standing(what.agent, "running", what.tags, row.at_ms)
        case AgentDeclared():
            return replace(standing, agent=what.agent, state="running")
        case RunRested():
            return replace(standing, state=what.state)
        case RunEnded():
            return replace(standing, state=what.state, ended=True)
    raise TypeError(f"{row.kind} says nothing about where a run stands")
