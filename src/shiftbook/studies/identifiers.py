"""Identifiers in a text: paths, numbers, symbols and hex, as the boundary study counts them.

A path is at least two names with a slash between and matches by its last two; a number is a word of three
digits or more; a symbol is a word of eight characters or more in camelCase or snake_case; hex is a word of 7
to 40 hexadecimal digits with letters and digits both. A word counts as one kind only, and what stands in a
path is no word. These are plain forms of any code and prose; none was made for one data set.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from typing import Literal

Kind = Literal["paths", "numbers", "symbols", "hex"]
KINDS: tuple[Kind, ...] = ("paths", "numbers", "symbols", "hex")
Identifier = tuple[Kind, str]

_PATH = re.compile(r"[\w.@~+-]*(?:/+[\w.@+-]+)+", re.ASCII)
_WORD = re.compile(r"\w+", re.ASCII)
_NUMBER = re.compile(r"\d{3,}")
_HEX = re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{7,40}", re.IGNORECASE)
_SYMBOL = re.compile(r"(?=.{8})(?:_*[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]+|_*[A-Za-z][a-z0-9]*[A-Z][A-Za-z0-9]*)")
_LINE_NUMBER = re.compile(r"^[ \t]*\d+(?=[\t\u2192])", re.ASCII | re.MULTILINE)
_LOWER = re.compile(r"[a-z]")
_PROSE = re.compile(r"[^\W\d_]{2,}")


def identifiers(text: str) -> set[Identifier]:
    """Every identifier of a text, each once."""
    return {found for found, _ in _found(text)}


def outside_bare_lines(text: str) -> set[Identifier]:
    """The identifiers that stand in at least one line which is more than a list of them."""
    return {
        each
        for line in text.splitlines()
        for found in [list(_found(line))]
        if not _is_bare(line, found)
        for each, _ in found
    }


def taken_out(text: str, gone: Container[Identifier]) -> str:
    """The text without these identifiers."""
    kept: list[str] = []
    start = 0
    for each, (first, end) in _found(text):
        if each in gone:
            kept.append(text[start:first])
            start = end
    return "".join([*kept, text[start:]])


def without_line_numbers(text: str) -> str:
    """The text without the numbers before lines, as tools that read files put them: 12, a tab or an arrow."""
    return _LINE_NUMBER.sub("", text)


def texts_in(value: object) -> Iterator[str]:
    """Every text in a tool's input, names of its fields aside; numbers as they are written."""
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield str(value)
        case Mapping():
            for inner in value.values():
                yield from texts_in(inner)
        case list() | tuple():
            for inner in value:
                yield from texts_in(inner)


def _is_bare(line: str, found: list[tuple[Identifier, tuple[int, int]]]) -> bool:
    """Whether a line has two identifiers or more, and fewer words of prose than identifiers."""
    if len(found) < 2:
        return False
    rest = list(line)
    for _, (start, end) in found:
        rest[start:end] = " " * (end - start)
    return len(_PROSE.findall("".join(rest))) < len(found)


def _found(text: str) -> Iterator[tuple[Identifier, tuple[int, int]]]:
    """Each identifier where it stands."""
    start = 0
    for path in _PATH.finditer(text):
        names = [name for name in path[0].rstrip(".").split("/") if name not in ("", ".", "..", "~")]
        if len(names) >= 2:
            yield from _words(text, start, path.start())
            yield ("paths", "/".join(names[-2:])), path.span()
            start = path.end()
    yield from _words(text, start, len(text))


def _words(text: str, start: int, end: int) -> Iterator[tuple[Identifier, tuple[int, int]]]:
    for word in _WORD.finditer(text, start, end):
        kind = _kind(word[0])
        if kind is not None:
            yield (kind, word[0]), word.span()


def _kind(word: str) -> Kind | None:
    if _NUMBER.fullmatch(word):
        return "numbers"
    if _HEX.fullmatch(word):
        return "hex"
    if _SYMBOL.fullmatch(word) and (_LOWER.search(word) or "_" in word):
        return "symbols"
    return None
