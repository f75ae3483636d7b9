"""Agents by reference: "agent.py:shop" or "pkg.module:shop", and what a person overrode of them.

The reference is written into the journal, so that any later process can find the agent again. What was
overridden on the command line is written behind it ("agent.py:shop?policy=window&cap=8000"): a resume, in
whatever process, then makes prompts as the run began with them. Loading an agent runs its author's code;
reading verbs never do.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl, urlencode

from shiftbook.errors import AgentUnusable, BadInput, ShiftbookError
from shiftbook.run.agent import Agent

_NUMBERS = ("cap", "mark", "fixed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What takes the place of the agent's own; None leaves it. `cap`, `mark`, `fixed` are tokens."""

    policy: str | None = None
    cap: int | None = None
    mark: int | None = None
    fixed: int | None = None

    def given(self) -> Mapping[str, Any]:
        """Those that are not None."""
        names = ("policy", *_NUMBERS)
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def load_agent(reference: str, overrides: Overrides = Overrides()) -> Agent:
    """The agent that a reference names, with the overrides of the reference and then `overrides` in force.

    Raises `AgentUnusable` when it cannot be imported or is no agent, and lets the errors through that its
    author's declarations raise (`AgentMistake`).
    """
    bare, known = _split(reference)
    found = _named(bare)
    if not isinstance(found, Agent):
        raise AgentUnusable(
            f"{bare} is {_article(type(found).__name__)}, not an Agent: name the variable that holds "
            "`shiftbook.Agent(...)`."
        )
    merged = {**known.given(), **overrides.given()}
    if not merged:
        return replace(found, reference=bare)
    # The agent is made first: it refuses what cannot even be written into a reference.
    return replace(replace(found, **merged), reference=f"{bare}?{urlencode(merged)}")


def _split(reference: str) -> tuple[str, Overrides]:
    bare, _, query = reference.partition("?")
    place, colon, name = bare.rpartition(":")
    if place.endswith(".py"):
        # However a person writes it: a queue, a limit and a journal know an agent by this text.
        bare = f"{os.path.normpath(place)}{colon}{name}"
    values: dict[str, Any] = {}
    for name, value in parse_qsl(query):
        if name == "policy":
            values[name] = value
        elif name in _NUMBERS and value.isdecimal():
            values[name] = int(value)
        else:
            raise BadInput(
                f"{reference}: behind the ? may stand policy=NAME and cap, mark, fixed=TOKENS only."
            )
    return bare, Overrides(**values)


def _named(reference: str) -> object:
    """The object that "place:name" names."""
    place, colon, name = reference.rpartition(":")
    if not colon or not place or not name.isidentifier():
        raise AgentUnusable(
            f"{reference!r} does not name an agent: write it as agent.py:NAME or as package.module:NAME."
        )
    try:
        module = _file(Path(place)) if place.endswith(".py") else _module(place)
    except ShiftbookError:
        raise
    except SyntaxError as fault:
        where = f"{fault.filename}, line {fault.lineno}"
        raise AgentUnusable(f"The agent {reference} cannot be imported: {where}: {fault.msg}.") from fault
    except (Exception, SystemExit) as fault:  # an author's module may raise anything at all
        told = f"{type(fault).__name__}: {fault}".rstrip(": ").rstrip(".")
        raise AgentUnusable(
            f"The agent {reference} cannot be imported: {told}. Mend it, or name another."
        ) from fault
    if not hasattr(module, name):
        raise AgentUnusable(f"There is no {name!r} in {place}: name the variable that holds the agent.")
    return getattr(module, name)


def _file(path: Path) -> ModuleType:
    """A module from a file; its own folder can be imported from, as when Python runs a script."""
    if not path.is_file():
        raise AgentUnusable(
            f"There is no file {path} here: go to the folder where the agent is, or write the path to it "
            "(`resume` takes that by --agent)."
        )
    file = path.resolve()
    if (loaded := sys.modules.get(file.stem)) is not None and getattr(loaded, "__file__", None) == str(file):
        return loaded
    name = file.stem if file.stem.isidentifier() and file.stem not in sys.modules else f"agent file {file}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    _importable(str(file.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _module(name: str) -> ModuleType:
    _importable(str(Path.cwd()))
    return importlib.import_module(name)


def _importable(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _article(noun: str) -> str:
    return f"an {noun}" if noun[:1] in "AEIOUaeiou" else f"a {noun}"
