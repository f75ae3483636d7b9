"""A tool and its contract: what the model sees, and what may be done after a cut.

The author says what may be done when nobody knows whether a call had its effect:

    safe       repeat it: a second time changes nothing
    keyed      repeat it with the same key: the receiver honours the key
    reconcile  ask the tool's `reconcile` function whether it happened
    ask        a person decides; until then the model is told that the outcome is unknown

There is no default: a tool without a repeat policy is refused when it is declared.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from shiftbook import canonical
from shiftbook.errors import ShiftbookError
from shiftbook.messages import Json, Media, Missing, Text, ToolSchema

Repeat = Literal["safe", "keyed", "reconcile", "ask"]


class OutcomeUnknown(ShiftbookError):
    """Raise this in a tool when it cannot tell whether its effect happened; the model is told so."""


class TryAgain(ShiftbookError):
    """Raise this in a tool when nothing happened and the call may be tried again (`attempts` allowing)."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool gave back, ready for an entry: parts, and the bytes of the blobs that they name."""

    content: tuple[Text | Media | Missing, ...]
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Happened:
    """A `reconcile` function's answer: the cut-off call took effect, and this is its result."""

    result: Json


@dataclass(frozen=True, slots=True)
class DidNotHappen:
    """A `reconcile` function's answer: the cut-off call had no effect; it is run again with the same key."""


@dataclass(frozen=True, slots=True)
class CannotTell:
    """A `reconcile` function's answer: not even the receiver knows; the model is told so."""


Reconciled = Happened | DidNotHappen | CannotTell


@dataclass(frozen=True, slots=True)
class Context:
    """What a call knows about itself. Ask for it by a parameter annotated `Context`; the model never sees it.

    `key` is the idempotency key: the same on retry, time-out and resume, different for every new call, equal
    arguments or not. `attempt` counts from 1.
    """

    run: str
    call: str
    tool: str
    key: str
    attempt: int
    now_ms: Callable[[], int]
    report: Callable[[str], None]
    cancelled: threading.Event

    def progress(self, message: str) -> None:
        """Tell people who watch the run how far this call is. Not recorded, not seen by the model."""
        self.report(message)

    def headers(self) -> dict[str, str]:
        """The HTTP headers that carry the key to a receiver that honours it."""
        return {"Idempotency-Key": self.key}


class Tool(Protocol):
    """What the loop needs of a tool. `shiftbook.tool` makes one from a function."""

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> ToolSchema: ...

    @property
    def repeat(self) -> Repeat: ...

    @property
    def timeout_ms(self) -> int | None:
        """How long one attempt may take; None: as long as it takes."""
        ...

    @property
    def attempts(self) -> int:
        """How often a call is tried in all after `TryAgain` or, where repeating is allowed, a time-out."""
        ...

    @property
    def ends_when_cancelled(self) -> bool:
        """Whether nothing of it goes on after `run` was cancelled. A thread cannot be ended: False there."""
        ...

    async def run(self, arguments: Mapping[str, Json], context: Context) -> Output:
        """Do it. Raises what the function raises; `BadArguments` when the arguments do not fit the schema."""
        ...

    async def ask(self, arguments: Mapping[str, Json], context: Context) -> Reconciled:
        """Ask whether a cut-off call happened; only called where `repeat` is "reconcile"."""
        ...


class BadArguments(ShiftbookError):
    """The model's arguments do not fit the tool's schema; it is told what is wrong and nothing is run."""


class RunsTool(Protocol):
    """The shape of `Tool.run`, for wrappers."""

    def __call__(self, arguments: Mapping[str, Json], context: Context, /) -> Awaitable[Output]: ...


def stable_schema(schema: Json) -> Json:
    """A JSON schema with its keys in one order, whatever order a registry or a server gave them in.

    Keys go by name; an object's properties go as its `required` lists them, since a model writes arguments
    in the order that it reads, and then by name. Lists keep their order.
    """
    if isinstance(schema, Mapping):
        required = schema.get("required")
        first = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        return {
            name: _properties(schema[name], first) if name == "properties" else stable_schema(schema[name])
            for name in sorted(schema)
        }
    if isinstance(schema, list | tuple):
        return [stable_schema(item) for item in schema]
    return schema


def _properties(given: Json, first: list[str]) -> Json:
    if not isinstance(given, Mapping):
        return stable_schema(given)
    place = {name: number for number, name in reversed(list(enumerate(first)))}
    order = sorted(given, key=lambda name: (place.get(name, len(first)), name))
    return {name: stable_schema(given[name]) for name in order}


BOOK_CONTRACT = "book-"
"""How the contract of a tool begins that the engine keeps itself: a record tells it from any other."""


def contract_digest(tool: Tool) -> str:
    """Sixteen hex digits over everything that a pending call relies on: name, schema and repeat policy.

    Those of a book tool stand behind `BOOK_CONTRACT`.
    """
    schema = tool.schema
    promised = canonical.encode(
        [schema.name, schema.description, stable_schema(schema.parameters), tool.repeat]
    )
    digest = hashlib.sha256(promised.encode("utf-8")).hexdigest()[:16]
    return BOOK_CONTRACT + digest if getattr(tool, "is_book", False) else digest
