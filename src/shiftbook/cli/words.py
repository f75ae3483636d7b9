"""Text for a terminal: what a model, a tool or a file wrote is hostile and must not steer it.

Control characters, directional marks and lone surrogates are shown as escapes; newlines and tabs stay.
"""

from __future__ import annotations

import re
import shlex

_STEERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):[^@\s]*@")
_PASSWORD_BEHIND = re.compile(r"(?<=[?&])(?:ssl)?password=[^&]*&?", re.IGNORECASE)


def plain(text: str) -> str:
    """The text with everything that could steer a terminal shown as an escape."""
    return _STEERS.sub(lambda found: ascii(found[0])[1:-1], text)


def escaped(json: str) -> str:
    """JSON text of the same value, in which such characters stand as JSON escapes."""
    return _STEERS.sub(lambda found: f"\\u{ord(found[0]):04x}", json)


def sentence(text: str) -> str:
    """An error's message on one line, with its full stop."""
    words = " ".join(text.split())
    return words if words.endswith((".", "!", "?")) else f"{words}."


def count(number: int, noun: str, many: str | None = None) -> str:
    """ "1 turn", "2,000 turns", "3 entries"."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def without_password(address: str) -> str:
    """An address that may be shown: without what stands between user and host, or behind as a parameter."""
    shown = _PASSWORD.sub(r"\1@", address)
    return _PASSWORD_BEHIND.sub("", shown).rstrip("?&") if "://" in shown else shown


def quoted(*words: str) -> str:
    """A command line that a person can copy."""
    return shlex.join(words)
