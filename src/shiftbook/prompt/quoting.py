"""The beginning of a text as quoted data: on one line, in quotes, never in the middle of a word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

from shiftbook import canonical
from shiftbook.messages import Json
from shiftbook.prompt.cut import plain_text
from shiftbook.prompt.told import quoted_name

ARGUMENT_CHARS = 160
ARGUMENTS_MAX = 8
"""So many arguments of a call are told."""

_BLANKS = re.compile(r"\s+")
_TAIL = re.compile(r"\S*\Z")


def argument_text(value: Json) -> str:
    """An argument as text: a text as it is, anything else canonically."""
    return value if type(value) is str else canonical.encode(value)


def arguments_told(arguments: Mapping[str, Json]) -> str:
    """The beginnings of a call's first arguments, each under its name; "" where there is none."""
    given = [
        f"{quoted_name(str(name))} {quoted(argument_text(value), ARGUMENT_CHARS)}"
        for name, value in islice(arguments.items(), ARGUMENTS_MAX)
    ]
    return shortened(", ".join(given), 2 * ARGUMENT_CHARS) if given else ""


def quoted(text: str, chars: int) -> str:
    """The beginning of a text, in quotes on one line."""
    return canonical.encode(plain_text(shortened(text, chars)))


def shortened(text: str, chars: int) -> str:
    """The beginning of a text on one line, never in the middle of a word: half a number is another number."""
    line = _BLANKS.sub(" ", text[: 8 * chars]).strip()
    if len(line) <= chars and len(text) <= 8 * chars:
        return line
    head = line[: chars + 1]
    return f"{_TAIL.sub('', head).rstrip()} ..."
