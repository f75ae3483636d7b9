"""Text that is safe to stand in a page, and the way there.

`Markup` marks what was escaped, so that nothing is escaped twice and nothing enters a page unescaped. Control
characters, marks that turn the direction of writing, and halves of characters are told as their escape: a
name out of a session cannot change how the page around it reads.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Iterable
from typing import NewType

Markup = NewType("Markup", str)
"""HTML in which everything that came from outside is escaped."""

MISSING = "not known"
"""What stands for a figure that is not there: never 0, never an empty place."""

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories of characters that show nothing or change what stands beside them."""


def escaped(text: str) -> Markup:
    """The text as it may stand in an element or a quoted attribute."""
    return Markup(html.escape("".join(_seen(each) for each in text), quote=True))


def joined(parts: Iterable[Markup], between: str = "") -> Markup:
    """The parts one after another."""
    return Markup(between.join(parts))


def figure(value: float | None, *, digits: int = 0, unit: str = "") -> str:
    """A number for people, with thousands told apart; `MISSING` for None and for what is no number."""
    if value is None or not math.isfinite(value):
        return MISSING
    text = f"{value:,.{digits}f}"
    return f"{text} {unit}" if unit else text


def place(value: float) -> str:
    """A coordinate, short and the same everywhere."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _seen(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
