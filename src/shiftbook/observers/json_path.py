"""Facts and tallies out of a tool's JSON result, by a path.

    JsonTally("count_stock", rows="$.shelves[*]", key="stock", place="{shelf}", amount="$.boxes")
    JsonFact("get_order", key="order {order_id}", value="$.status")

A path is `$`, then names and numbers behind points or in brackets; `[*]` stands for every item of a list. Key
and place may name fields in braces: of the row, else of the call's arguments. What is not there is passed
over: a result of another shape says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shiftbook.entries import StatementMade, TallyChanged, TallyOperation
from shiftbook.errors import AgentMistake
from shiftbook.messages import Json
from shiftbook.observers.promise import Noticed, Observed
from shiftbook.projections.keys import key_fault
from shiftbook.projections.knowledge import Knowledge
from shiftbook.projections.tallies import read_amount

ROWS_MAX = 100
"""Rows of one result that are looked at; more are none of an observer's business."""

_STEP = re.compile(r"\.([^.\[\]*]+)|\[(\*|-?\d+)\]|\[\"([^\"]*)\"\]|\['([^']*)'\]")
_FIELD = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class JsonFact:
    """The observer that states, for each row, the value at `value` under `key`.

    Raises `AgentMistake` for a path that cannot be read.
    """

    tool: str
    key: str
    value: str = "$"
    rows: str = "$"
    about: str | None = None

    def __post_init__(self) -> None:
        steps_of(self.rows)
        steps_of(self.value)

    def __call__(self, done: Observed, known: Knowledge, /) -> Iterator[Noticed]:
        """A fact for each row that has the value."""
        if done.tool != self.tool:
            return
        for row in found_at(done.value, self.rows)[:ROWS_MAX]:
            key = filled(self.key, row, done.arguments)
            for value in found_at(row, self.value)[:1]:
                if key is not None and value is not None:
                    yield StatementMade(key, value, "fact", "observer", (done.position,), about=self.about)


@dataclass(frozen=True, slots=True)
class JsonTally:
    """The observer that sets, or adds to, a tally for each row by the exact number at `amount`.

    Raises `AgentMistake` for a path that cannot be read.
    """

    tool: str
    key: str
    amount: str = "$"
    place: str = ""
    rows: str = "$"
    operation: TallyOperation = "set"

    def __post_init__(self) -> None:
        steps_of(self.rows)
        steps_of(self.amount)

    def __call__(self, done: Observed, known: Knowledge, /) -> Iterator[Noticed]:
        """A change for each row that has a number."""
        if done.tool != self.tool:
            return
        for row in found_at(done.value, self.rows)[:ROWS_MAX]:
            key = filled(self.key, row, done.arguments)
            place = filled(self.place, row, done.arguments)
            for value in found_at(row, self.amount)[:1]:
                if key is None or place is None:
                    continue
                try:
                    amount = read_amount(value)
                except ValueError:
                    continue
                yield TallyChanged(key, self.operation, amount, "observer", place, (done.position,))


def steps_of(path: str) -> tuple[str | int | None, ...]:
    """The steps of a path: names, numbers, None for every item. Raises `AgentMistake` for anything else."""
    if not path.startswith("$"):
        raise AgentMistake(f'The path {path!r} has to begin with $, as in "$.items[*].count".')
    steps: list[str | int | None] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise AgentMistake(
                f'The path {path!r} cannot be read from {path[at:]!r} on; see "$.items[0].name".'
            )
        name, number, quoted, single = found.groups()
        if number is not None:
            steps.append(None if number == "*" else int(number))
        else:
            steps.append(next(each for each in (name, quoted, single) if each is not None))
        at = found.end()
    return tuple(steps)


def found_at(value: Json, path: str) -> list[Json]:
    """What stands at the path, each match in order; nothing where the value has another shape."""
    matches = [value]
    for step in steps_of(path):
        if isinstance(step, int):
            matches = [m[step] for m in matches if isinstance(m, list) and -len(m) <= step < len(m)]
        elif isinstance(step, str):
            matches = [m[step] for m in matches if isinstance(m, Mapping) and step in m]
        else:
            matches = [item for m in matches if isinstance(m, list) for item in m]
    return matches


def filled(template: str, row: Json, arguments: Mapping[str, Json]) -> str | None:
    """The template with its fields filled in; None when one is not there or cannot stand in a key."""
    missing = False

    def fill(found: re.Match[str]) -> str:
        nonlocal missing
        name = found[1]
        value = row[name] if isinstance(row, Mapping) and name in row else arguments.get(name)
        if type(value) is int:
            value = str(value)
        if key_fault(value) is not None:
            missing = True
            return ""
        return str(value)

    text = _FIELD.sub(fill, template)
    if missing or (text and key_fault(text) is not None):
        return None
    return text
