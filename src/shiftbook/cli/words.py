"""Text for a terminal: what a model, a tool or a file wrote is hostile and must not steer it.

Control characters, directional marks and lone surrogates are shown as escapes; newlines and tabs stay.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

_STEERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# One slash where an address was taken for the path of a file, which makes two into one.
_PASSWORD = re.compile(r"(:/{1,2}[^/@\s:]*):[^@\s]*@")
_PASSWORD_BEHIND = re.compile(r"(?<=[?&])(?:ssl)?password=[^&\s]*&?", re.IGNORECASE)


def plain(text: str) -> str:
    """The text with everything that could steer a terminal shown as an escape."""
    return _STEERS.sub(lambda found: ascii(found[0])[1:-1], text)


def escaped(json: str) -> str:
    """JSON text of the same value, in which such characters stand as JSON escapes."""
    return _STEERS.sub(lambda found: f"\\u{ord(found[0]):04x}", json)


WORD_CHARS = 300
"""A longer word in an error's message is shown by its beginning: it quotes what was given."""


def sentence(text: str) -> str:
    """An error's message on one line, with its full stop and no endless word."""
    words = " ".join(
        word if len(word) <= WORD_CHARS else f"{word[: WORD_CHARS // 3]}..." for word in text.split()
    )
    return words if words.endswith((".", "!", "?")) else f"{words}."


def count(number: int, noun: str, many: str | None = None) -> str:
    """ "1 turn", "2,000 turns", "3 entries"."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def lasting(duration_ms: float) -> str:
    """A duration in the unit that fits it: "31 s", "4 min", "7 h", "3 d"."""
    seconds = max(0, int(duration_ms // 1000))
    for unit, least, size in (("s", 100, 1), ("min", 100 * 60, 60), ("h", 48 * 3_600, 3_600)):
        if seconds < least:
            return f"{seconds // size:,} {unit}"
    return f"{seconds // 86_400:,} d"


def without_password(address: str) -> str:
    """An address that may be shown: without what stands between user and host, or behind as a parameter."""
    return masked(address).rstrip("?&")


def masked(text: str) -> str:
    """A text in which no address shows its password."""
    shown = _PASSWORD.sub(r"\1@", text)
    return _PASSWORD_BEHIND.sub("", shown) if ":/" in shown else shown


def ours(*words: str) -> str:
    """A command line of this program that a person can copy into the shell that it was called from."""
    return shlex.join((_called(sys.argv[0]), *words))


def _called(path: str) -> str:
    """The path that was typed, where the bare name would find nothing or another program."""
    if Path(path).name != "shiftbook" or os.sep not in path:
        return "shiftbook"
    found = shutil.which("shiftbook")
    return "shiftbook" if found is not None and Path(found).resolve() == Path(path).resolve() else path
