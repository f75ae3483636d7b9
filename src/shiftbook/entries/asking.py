"""Kinds of the journal prompt: an epoch, a request and what came of it, and the recipe they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shiftbook.messages import AssistantPart, StopReason, Usage


@dataclass(frozen=True, slots=True)
class Pick:
    """One piece of a recipe: the model-visible entries from `first` to `last`, each in `form`.

    `keep` is what the form needs to know, for "cut" the characters kept; `of` are those it is made of alone.
    """

    first: int
    last: int
    form: str = "whole"
    keep: int | None = None
    of: tuple[int, ...] = ()


Recipe = tuple[Pick, ...]


@dataclass(frozen=True, slots=True)
class EpochOpened:
    """The prompt was rebuilt: `blocks` is its new head; `numbers` are the figures behind `reason`."""

    epoch: int
    reason: str
    blocks: Recipe = ()
    numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelAsked:
    """A turn began: `blocks` were added to the prompt of the epoch, whose chained digest is `digest`.

    `tokens` is the prompt by the meter named in `meter`; a bound when that already fitted the cap.
    """

    turn: int
    blocks: Recipe
    digest: str
    tokens: int
    meter: str
    renderer: int = 1


@dataclass(frozen=True, slots=True)
class ModelFailed:
    """An attempt at a turn's request failed; `retry_at_ms` is None when it is not tried again."""

    turn: int
    attempt: int
    error: str
    retry_at_ms: int | None = None
    status: int | None = None
    part: str | None = None


@dataclass(frozen=True, slots=True)
class ModelAnswered:
    """The reply to a turn's request, whole."""

    turn: int
    parts: tuple[AssistantPart, ...]
    stop: StopReason
    usage: Usage = Usage()
    model: str | None = None
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class ModelInterrupted:
    """A reply was cut half-way: the part that came, and why no more did. Calls in it were never run."""

    turn: int
    parts: tuple[AssistantPart, ...]
    reason: str
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Recalled:
    """Older entries were brought back: for the `model`, a `message` or a `rebuild`. By code, `cut` are those
    shown within `keep` characters, `room` the tokens all might take, and the query is only its beginning."""

    query: str
    found: tuple[int, ...]
    asked_by: str
    cut: tuple[int, ...] = ()
    keep: int = 0
    room: int = 0
