"""A rule of the house: a function from one file to its findings, its reason, and the snippets that prove it.

`Source` is a file as the rules see it: its lines, its syntax tree, what it imports and uses under which name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property

CODE = ("src/*.py", "tests/*.py", "benchmarks/*.py", "examples/*.py")
SOURCE = ("src/*.py",)
TEXT = ("*.py", "*.md", "*.toml", "*.sql", "*.txt", "*.jsonl", "Makefile", ".ci/*")


@dataclass(frozen=True)
class Source:
    """One file of the house: its path from the root, and its text."""

    path: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def imports(self) -> list[tuple[ast.stmt, str, str]]:
        """(statement, name bound here, full dotted name) of every import, wherever it stands."""
        found: list[tuple[ast.stmt, str, str]] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    found.append((node, alias.asname or top, alias.name))
            elif isinstance(node, ast.ImportFrom) and node.module:
                found += [(node, a.asname or a.name, f"{node.module}.{a.name}") for a in node.names]
        return found

    def uses(self) -> Iterator[tuple[int, str]]:
        """(line, full dotted name) of each use of an imported thing, under whatever name it was imported.

        `sleep(0)` only lets others run, and `Random(seed)` repeats: neither reads time or chance.
        """
        names = {bound: full if bound != full.partition(".")[0] else bound for _, bound, full in self.imports}
        harmless = {
            id(node.func)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call) and re.fullmatch(r".*sleep\(0\)|.*Random\(.+\)", ast.unparse(node))
        }
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute | ast.Name) and id(node) not in harmless:
                first, dot, rest = ast.unparse(node).partition(".")
                if first in names:
                    yield node.lineno, names[first] + dot + rest


Findings = Iterator[tuple[int, str]]
Check = Callable[[Source], Findings]


@dataclass(frozen=True)
class Rule:
    """A check, where it applies, why it is made, and the snippets (path, text) that prove it."""

    name: str
    where: tuple[str, ...]
    why: str
    check: Check
    bad: tuple[tuple[str, str], ...]
    good: tuple[str, str]

    def applies(self, path: str) -> bool:
        return any(fnmatch(path, pattern) for pattern in self.where)

    def findings(self, sources: Iterable[Source]) -> list[tuple[str, str]]:
        """(path, message) of everything that breaks the rule."""
        return [
            (source.path, f"{source.path}:{line}: {what}")
            for source in sources
            if self.applies(source.path)
            for line, what in self.check(source)
        ]


RULES: list[Rule] = []


def rule(
    *where: str,
    why: str,
    bad: str | list[str | tuple[str, str]],
    good: str = "x = 1\n",
    at: str = "src/shiftbook/room.py",
) -> Callable[[Check], Check]:
    """Make a check a rule: `bad` must be caught and `good` let pass when they stand in the file `at`.

    A bad snippet may be a pair that names its own file.
    """

    def register(check: Check) -> Check:
        listed = bad if isinstance(bad, list) else [bad]
        snippets = tuple((at, each) if isinstance(each, str) else each for each in listed)
        RULES.append(Rule(check.__name__, where, why, check, snippets, (at, good)))
        return check

    return register
