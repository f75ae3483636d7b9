"""Lines of a report that tell the names which results held that leave: paths, symbols and hexadecimal ids.

Of each result's beginning every name is noted once. A name weighs as much as the results that show it, and
once more where an older line tells it; the heaviest fit first, the latest among equals. Each stands under the
result that showed it last, so that one `read_entry` brings back what was said of it. Older lines are carried
word for word, the newest first, but for those whose names are all told anew.

Refused: bare numbers, which are mostly those of lines; and names in the calls that leave, which the brief's
names in use tell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

from shiftbook.entries import ActionFinished, Entry, ModelAnswered, ReportLine
from shiftbook.prompt import wording
from shiftbook.prompt.cut import plain_text
from shiftbook.prompt.told import entry_text

READ_CHARS = 4_000
"""Names are looked for in so much of a result's beginning."""

NAMES_A_RESULT_MAX = 100
NAME_CHARS_MAX = 120

PATH_NAMES = 3
"""Of a path so many names are told, from its end, as the names in use have it."""

FRESH_SHARE = 4
"""One part in so many of the room is what names that leave now may take while older lines are there."""

HEAD = "seen in a result: "
BETWEEN = ", "

# Letters of a name are ASCII; its neighbours may be any, and then it is a part of another word.
_PATH = re.compile(r"(?<![\w.@+~/-])(?:[A-Za-z0-9_.@+~-]+|[.~]*)(?:/[A-Za-z0-9_.@+-]*[A-Za-z0-9_])+(?!\w)")
_WORD = re.compile(r"(?<!\\)\b\w+")
_SYMBOL = re.compile(
    r"(?=\w{6})(?:_*[A-Za-z][A-Za-z0-9]*_\w+|(?=\w*[a-z])_*[A-Za-z][a-z0-9]*[A-Z]\w*)", re.ASCII
)
# As tools that search files put it between a file's name and a line beside a hit: yard.py-12-.
_LINE_BEHIND = re.compile(r"(\.[A-Za-z]\w{0,5})-\d+(?:-.*)?\Z", re.ASCII)
_HEX = re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{7,40}", re.ASCII)


def is_seen(line: ReportLine) -> bool:
    """Whether the line tells names of a result."""
    return line.text.startswith(HEAD)


class SeenNames:
    """The names of results that leave, read once, and the older lines of such names."""

    def __init__(self, entries: Iterable[Entry], older: Iterable[ReportLine]) -> None:
        self.older = tuple(older)
        asked: set[str] = set()
        last: dict[str, int] = {}
        weights = Counter(name for line in self.older for name in told_by(line))
        for entry in entries:
            if isinstance(entry.what, ActionFinished):
                for name in names_of(_beginning(plain_text(entry_text(entry))))[:NAMES_A_RESULT_MAX]:
                    weights[name] += 1
                    last[name] = entry.position
            elif isinstance(entry.what, ModelAnswered):
                asked.update(names_of(plain_text(entry_text(entry))))
        heaviest = sorted(last.keys() - asked, key=lambda name: (-weights[name], -last[name], name))
        self._beside: dict[ReportLine, list[str]] = {}
        self.fresh = tuple((name, last[name]) for name in heaviest)

    def lines(self, chars: int, beside: Iterable[ReportLine] = ()) -> list[ReportLine]:
        """Lines within so many characters, what leaves now first; no name that the lines `beside` tell."""
        told: set[str] = set()
        for line in beside:
            if line not in self._beside:
                self._beside[line] = names_of(line.text)
            told.update(self._beside[line])
        fresh = self._fresh(chars // FRESH_SHARE if self.older else chars, told)
        told.update(name for line in fresh for name in told_by(line))
        left = chars - sum(map(size_of, fresh))
        carried: list[ReportLine] = []
        for line in self.older:
            if size_of(line) <= left and not told.issuperset(told_by(line)):
                carried.append(line)
                left -= size_of(line)
        return [*fresh, *carried]

    def _fresh(self, left: int, told: Collection[str]) -> list[ReportLine]:
        """A line for each result, that with the heaviest name first."""
        chosen: dict[int, list[str]] = {}
        for name, place in self.fresh:
            if name in told:
                continue
            size = len(name) + (len(BETWEEN) if place in chosen else size_of(ReportLine(HEAD, (place,))))
            if size > left:
                break
            left -= size
            chosen.setdefault(place, []).append(name)
        return [ReportLine(HEAD + BETWEEN.join(names), (place,)) for place, names in chosen.items()]


def _beginning(text: str) -> str:
    """What is read of a text: no word of it is half."""
    if len(text) <= READ_CHARS:
        return text
    return text[: READ_CHARS + 1].rsplit(maxsplit=1)[0]


def told_by(line: ReportLine) -> list[str]:
    """The names of a line of names."""
    return line.text.removeprefix(HEAD).split(BETWEEN)


def size_of(line: ReportLine) -> int:
    """The characters that a line takes in a report."""
    return len(wording.report_line(line.text, line.cites)) + 1


def names_of(text: str) -> list[str]:
    """The names in a text, each once: paths by their ends, then symbols and hexadecimal ids."""
    found: dict[str, None] = {}
    for path in _PATH.finditer(text):
        name = "/".join(_LINE_BEHIND.sub(r"\1", path[0]).split("/")[-PATH_NAMES:]).lstrip("/")
        if "/" in name:
            found.setdefault(name)
    for word in _WORD.finditer(_PATH.sub(" ", text)):
        if _SYMBOL.fullmatch(word[0]) or _HEX.fullmatch(word[0]):
            found.setdefault(word[0])
    return [name for name in found if len(name) <= NAME_CHARS_MAX]
