"""What a run has its hands on: the paths, commands and ids in the calls that it has begun, with how often.

Read from the arguments of calls whose tools say plainly what they are about: a path under a name for paths,
a command under a name for commands, an id under a name that ends in "id". A call counts when it is started
first, not when it is asked for. The newest `WORKING_SET_MAX` are kept, the least recent goes first.

Beside it, by the reply that used it last, every path, id, symbol and number in the calls of replies: what a
brief tells, and what follows from the replies alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from shiftbook.entries import ActionStarted, Entry, ModelAnswered
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

USED_SHOWN_MAX = 200
"""Of each sort of names so many are told, the last used."""

USED_A_REPLY_MAX = 20
"""Of each sort so many names of one reply are noted."""

USED_KEPT_MAX = USED_SHOWN_MAX + USED_A_REPLY_MAX
"""What is kept is more than what is told by the names of one reply, so that which of those that a reply used
at once is forgotten first makes no difference to what is told."""

VALUES_READ_MAX = 12
VALUE_CHARS_READ = 2_000

UsedSort = Literal["path", "id", "name"]
USED_SORTS: tuple[UsedSort, ...] = ("path", "id", "name")

_NAME = re.compile(
    r"(?<![\w/])(?:\d{3,}|(?=\w{6})(?:_*[A-Za-z][A-Za-z0-9]*_\w+|_*[A-Za-z][a-z0-9]*[A-Z]\w*))(?![\w/])",
    re.ASCII,
)
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
    used: dict[UsedSort, dict[str, int]] = field(default_factory=lambda: {sort: {} for sort in USED_SORTS})
    """Names that the calls of replies hold, started or not, with the reply that used them last."""


def learn_reply(working: WorkingSet, position: int, what: ModelAnswered) -> None:
    """Note what the calls of a reply are about; costs what the reply's calls hold, nothing without one."""
    if working.asked:
        working.asked = {}
    noted = dict.fromkeys(USED_SORTS, 0)
    for part in what.parts:
        if isinstance(part, Call) and part.arguments:
            touches = tuple(dict.fromkeys(touches_of(part.arguments)))
            if touches:
                working.asked[part.id] = touches
            plain = ((sort, name) for sort, name in touches if sort != "command")
            for sort, name in dict.fromkeys([*plain, *_names_of(part.arguments)]):
                if noted[sort] < USED_A_REPLY_MAX:
                    noted[sort] += 1
                    working.used[sort].pop(name, None)
                    working.used[sort][name] = position
    for sort in USED_SORTS:
        while len(working.used[sort]) > USED_KEPT_MAX:
            del working.used[sort][next(iter(working.used[sort]))]


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


def used_last(working: WorkingSet) -> dict[int, list[tuple[UsedSort, str]]]:
    """The names that are told, by the reply that used them last, replies and names in order."""
    told: dict[int, list[tuple[UsedSort, str]]] = {}
    for sort in USED_SORTS:
        newest = sorted(working.used[sort].items(), key=lambda each: (-each[1], each[0]))
        for name, last in newest[:USED_SHOWN_MAX]:
            told.setdefault(last, []).append((sort, name))
    return {last: told[last] for last in sorted(told)}


def excerpts(working: WorkingSet) -> list[Entry]:
    """What the working set knows of each reply, as an entry from which the same names are learnt again.

    Such an entry has the negative of the reply's position, so that it never passes for the reply itself.
    """
    calls: dict[int, list[Call]] = {}
    for sort in USED_SORTS:
        for name, last in working.used[sort].items():
            calls.setdefault(last, []).append(Call("", "", {sort: name}))
    return [
        Entry(-last, 0, 1, ModelAnswered(0, tuple(calls[last]), "calls"))
        for last in sorted(calls, reverse=True)
    ]


def _names_of(arguments: Mapping[str, Json]) -> Iterator[tuple[UsedSort, str]]:
    """Paths, symbols and numbers in these arguments, but for those that are paths or ids as a whole."""
    read = 0
    waiting = [v for n, v in arguments.items() if not (n in PATH_NAMES or n == "id" or n.endswith("_id"))]
    while waiting and read < VALUES_READ_MAX:
        value = waiting.pop(0)
        if isinstance(value, dict):
            waiting[:0] = value.values()
        elif isinstance(value, list | tuple):
            waiting[:0] = value[:VALUES_READ_MAX]
        elif isinstance(value, str) or type(value) is int:
            read += 1
            text = value[:VALUE_CHARS_READ] if isinstance(value, str) else str(value)[:NAME_CHARS_MAX]
            for found in _PATH_IN_COMMAND.finditer(text):
                yield from (("path", name) for _, name in _named("path", found[0]))
            for found in _NAME.finditer(text):
                yield from (("name", name) for _, name in _named("id", found[0]))


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
