"""The names in a text: paths by their ends, symbols and hexadecimal ids, by forms that any code has.

A name is a part of the text, whole words of it, so that it can be looked for. Refused: bare numbers; words of
capitals alone; and a word behind a backslash, which is mostly half an escape.
"""

from __future__ import annotations

import re

NAME_CHARS_MAX = 120

PATH_NAMES = 3
"""Of a path so many names are told, from its end, as the names in use have it."""

# Letters of a name are ASCII; its neighbours may be any, and then it is a part of another word.
_PATH = re.compile(r"(?<![\w.@+~/-])(?:[A-Za-z0-9_.@+~-]+|[.~]*)(?:/[A-Za-z0-9_.@+-]*[A-Za-z0-9_])+(?!\w)")
_WORD = re.compile(r"(?<!\\)\b\w+")
_SYMBOL = re.compile(
    r"(?=\w{6})(?:_*[A-Za-z][A-Za-z0-9]*_\w+|(?=\w*[a-z])_*[A-Za-z][a-z0-9]*[A-Z]\w*)", re.ASCII
)
# As tools that search files put it between a file's name and a line beside a hit: yard.py-12-.
_LINE_BEHIND = re.compile(r"(\.[A-Za-z]\w{0,5})-\d+(?:-.*)?\Z", re.ASCII)
_HEX = re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{7,40}", re.ASCII)


def names_of(text: str) -> list[str]:
    """The names in a text, each once: paths by their ends, then symbols and hexadecimal ids."""
    found: dict[str, None] = {}
    has_paths = "/" in text
    for path in _PATH.finditer(text) if has_paths else ():
        name = "/".join(_LINE_BEHIND.sub(r"\1", path[0]).split("/")[-PATH_NAMES:]).lstrip("/")
        if "/" in name:
            found.setdefault(name)
    for word in _WORD.finditer(_PATH.sub(" ", text) if has_paths else text):
        if _SYMBOL.fullmatch(word[0]) or _HEX.fullmatch(word[0]):
            found.setdefault(word[0])
    return [name for name in found if len(name) <= NAME_CHARS_MAX]


def whole_words(text: str, chars: int) -> str:
    """The beginning of a text within so many characters; of a word or path that does not fit, nothing."""
    if len(text) <= chars:
        return text
    end = chars
    if _is_of_name(text[end]):
        while end and _is_of_name(text[end - 1]):
            end -= 1
    return text[:end]


def _is_of_name(letter: str) -> bool:
    return letter.isalnum() or letter in "_.@+~/-"
