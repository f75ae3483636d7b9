"""A function's docstring as a tool's words: the first paragraph describes the tool, a section its parameters.

Three habits are read, by their outward form alone:

    Google    Args: / Arguments: / Parameters:  with indented `name (type): words`
    NumPy     Parameters, underlined            with `name : type` and indented words below it
    Sphinx    :param name: words                or `:param type name: words`

Anything else is prose and is left out of the schema: a docstring can be badly formed, it cannot be refused.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

_GOOGLE_HEAD = re.compile(r"(?:Args|Arguments|Parameters|Params):\s*")
_GOOGLE_ITEM = re.compile(r"(\s+)\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")
_NUMPY_ITEM = re.compile(r"(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?")
_SPHINX_ITEM = re.compile(r":param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)")
_SECTION = re.compile(
    r"(?:Args|Arguments|Parameters|Params|Returns?|Yields|Raises|Examples?|Notes?|Warnings?|See Also):\s*"
)


@dataclass(frozen=True, slots=True)
class Described:
    """What a docstring says: `summary` in one line, and the words for each parameter that has some."""

    summary: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


def describe(docstring: str | None) -> Described:
    """Read a docstring; None or an empty one describes nothing."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    return Described(_summary(lines), _google(lines) | _numpy(lines) | _sphinx(lines))


def _summary(lines: list[str]) -> str:
    words: list[str] = []
    for number, line in enumerate(lines):
        if not line.strip() or _starts_section(lines, number):
            break
        words.append(line.strip())
    return " ".join(words)


def _starts_section(lines: list[str], number: int) -> bool:
    line = lines[number]
    below = lines[number + 1] if number + 1 < len(lines) else ""
    underlined = len(below) >= 3 and set(below.rstrip()) == {"-"}
    return bool(_SECTION.fullmatch(line)) or underlined or line.startswith(":")


def _google(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    words: list[str] = []
    margin = ""
    for line in _after(lines, lambda number: bool(_GOOGLE_HEAD.fullmatch(lines[number])), skip=1):
        if line.strip() and not line[0].isspace():
            break
        item = _GOOGLE_ITEM.fullmatch(line)
        if item and len(item[1]) <= len(margin or item[1]):
            margin = item[1]
            words = found.setdefault(item[2], [item[3]])
        else:
            words.append(line.strip())
    return _joined(found)


def _numpy(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    words: list[list[str]] = []

    def is_head(number: int) -> bool:
        return lines[number].strip() in ("Parameters", "Other Parameters") and _starts_section(lines, number)

    body = _after(lines, is_head, skip=2)
    for number, line in enumerate(body):
        if line and not line[0].isspace():
            if _starts_section(body, number):
                break
            item = _NUMPY_ITEM.fullmatch(line.strip())
            names = re.split(r"\s*,\s*", item[1]) if item else []
            words = [found.setdefault(name, []) for name in names]
        else:
            for each in words:
                each.append(line.strip())
    return _joined(found)


def _sphinx(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    words: list[str] = []
    for line in lines:
        item = _SPHINX_ITEM.fullmatch(line)
        if item:
            words = found.setdefault(item[1], [item[2]])
        elif line.startswith(":") or not line.strip():
            words = []
        else:
            words.append(line.strip())
    return _joined(found)


def _after(lines: list[str], is_head: Callable[[int], bool], *, skip: int) -> list[str]:
    return next((lines[number + skip :] for number in range(len(lines)) if is_head(number)), [])


def _joined(found: Mapping[str, Iterable[str]]) -> dict[str, str]:
    joined = {name: " ".join(word for word in words if word) for name, words in found.items()}
    return {name: words for name, words in joined.items() if words}
