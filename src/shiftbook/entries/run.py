"""A run's own kinds: how it opened, what it is declared to be, what was said to it, how it rests and ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from shiftbook.messages import Media, Missing, Text

State = Literal["running", "waiting", "paused", "limited", "finished", "failed", "cancelled"]
Author = Literal["person", "author", "recording"]
UserContent = tuple[Text | Media | Missing, ...]


@dataclass(frozen=True, slots=True)
class RunOpened:
    """A run began; `agent` is the reference it was started with ("agent.py:shop")."""

    run: str
    agent: str
    engine: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentDeclared:
    """What the agent is from here on. `declaration` is the blob of its canonical declaration.

    `contracts` maps each tool to the digest of what its author promised, so that a call left open by one
    version of an agent is never handed to another.
    """

    agent: str
    declaration: str
    model: str
    policy: str
    cap: int
    contracts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PersonSaid:
    """Somebody outside spoke to the run; `item` is the inbox item that it came in."""

    content: UserContent
    author: Author = "person"
    item: str | None = None


@dataclass(frozen=True, slots=True)
class RuleSet:
    """A standing instruction by the agent's author or by a person; never by a model or a tool."""

    key: str
    text: str
    author: Author
    withdrawn: bool = False
    item: str | None = None


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A named limit was reached: `value` against `allowed`."""

    limit: str
    value: int
    allowed: int


@dataclass(frozen=True, slots=True)
class Warned:
    """Something was not done as it would be expected; `what` is a stable name, `detail` a sentence."""

    what: str
    detail: str


@dataclass(frozen=True, slots=True)
class RunRested:
    """Nothing is left to do for now; a message, an answer or a raised limit takes the run up again."""

    state: State
    why: str = ""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run is over for good."""

    state: State
    why: str = ""
