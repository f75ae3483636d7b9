"""What a run has its hands on: the paths, commands and ids in the calls that it has begun, with how often.

Read from the arguments of calls whose tools say plainly what they are about: a path under a name for paths,
a command under a name for commands, an id under a name that ends in "id". A call counts when it is started
first, not when it is asked for. The newest `WORKING_SET_MAX` are kept, the least recent goes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from shiftbook.entries import ActionStarted, ModelAnswered
from shiftbook.messages import Call, Json

TouchedSort = Literal["path", "command", "id"]
Touch = tuple[TouchedSort, str]

WORKING_SET_MAX = 400
NAME_CHARS_MAX = 300
COMMAND_CHARS_READ = 2_000
"""Paths in a longer command are looked for in its beginning only."""

PATH_NAMES = frozenset(
    (
        *("path", "file_path", "filepath", "filename", "file", "notebook_path", "target_file"),
        *("directory", "dir", "cwd", "workdir"),
    )
)
COMMAND_NAMES = frozenset(("command", "cmd", "script", "shell_command"))

_PATH_IN_COMMAND = re.compile(r"(?:(?<=[\s'\"=(:])|^)(?:~|\.{1,2})?/?[\w.@+-]+(?:/[\w.@+-]+)+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Touched:
    """One thing that was touched: how often, and by which entry last."""

    sort: TouchedSort
    name: str
    times: int
    last: int


@dataclass(slots=True)
class WorkingSet:
    """What was touched, the least recent first; `asked` is what the calls of the last reply are about."""

    touched: dict[Touch, tuple[int, int]] = field(default_factory=dict)
    asked: dict[str, tuple[Touch, ...]] = field(default_factory=dict)


def learn_reply(working: WorkingSet, what: ModelAnswered) -> None:
    """Note what the calls of a reply are about; costs what the reply's calls hold, nothing without one."""
    if working.asked:
        working.asked = {}
    for part in what.parts:
        if isinstance(part, Call) and part.arguments:
            touches = tuple(dict.fromkeys(touches_of(part.arguments)))
            if touches:
                working.asked[part.id] = touches


def learn_start(working: WorkingSet, position: int, what: ActionStarted) -> None:
    """Count what a call is about, once, when it is started."""
    touches = working.asked.pop(what.call, None) if working.asked else None
    for touch in touches or ():
        times, _ = working.touched.pop(touch, (0, 0))
        working.touched[touch] = (times + 1, position)
    while len(working.touched) > WORKING_SET_MAX:
        del working.touched[next(iter(working.touched))]


def recent(working: WorkingSet, sort: TouchedSort | None = None) -> list[Touched]:
    """What was touched, the most recent first; of one sort only, if named."""
    return [
        Touched(each, name, times, last)
        for (each, name), (times, last) in reversed(working.touched.items())
        if sort is None or each == sort
    ]


def touches_of(arguments: Mapping[str, Json]) -> Iterator[Touch]:
    """What these arguments are plainly about, as they come."""
    for name, value in arguments.items():
        if name in PATH_NAMES:
            yield from _named("path", value)
        elif name in COMMAND_NAMES:
            yield from _command(value)
        elif name == "id" or name.endswith("_id"):
            yield from _named("id", str(value) if type(value) is int else value)


def _named(sort: TouchedSort, value: Json) -> Iterator[Touch]:
    if isinstance(value, str) and 0 < len(value) <= NAME_CHARS_MAX and value.isprintable():
        yield sort, value


def _command(value: Json) -> Iterator[Touch]:
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        value = " ".join(value)
    if not isinstance(value, str):
        return
    line = value.strip().partition("\n")[0]
    yield from _named("command", line[:NAME_CHARS_MAX])
    for found in _PATH_IN_COMMAND.finditer(value[:COMMAND_CHARS_READ]):
        yield from _named("path", found[0])
