"""Kinds of what a run knows: statements, the plan, tallies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shiftbook.messages import Json

Origin = Literal["model", "tool", "observer", "report", "person", "author"]
Sort = Literal["fact", "decision"]
PlanState = Literal["open", "doing", "done", "dropped"]
TallyOperation = Literal["set", "add"]


@dataclass(frozen=True, slots=True)
class StatementMade:
    """A fact or a decision, standing under its key until superseded; `sources` are its entries."""

    key: str
    value: Json
    sort: Sort
    origin: Origin
    sources: tuple[int, ...] = ()
    about: str | None = None
    supersedes: int | None = None


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One item of a plan."""

    id: str
    text: str
    state: PlanState


@dataclass(frozen=True, slots=True)
class PlanChanged:
    """The plan as it stands now, whole."""

    items: tuple[PlanItem, ...]
    origin: Origin
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TallyChanged:
    """An exact running number was set or added to; `amount` is an int or a Decimal, never a float."""

    key: str
    operation: TallyOperation
    amount: Json
    origin: Origin
    place: str = ""
    sources: tuple[int, ...] = ()
