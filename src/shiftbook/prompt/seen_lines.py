"""Lines of results for a report by rule: of all that leave, those that tell most names in the least room.

A name weighs by the results and calls that hold it, and half where a call that leaves tells it: that one is
worked with, and what its line says is not known from the call. A line is worth the names that nothing beside
it tells yet, for each of its characters; the best is taken, and the others are looked at again. Lines of one
result stand in its order in one line of the report, quoted as data, with a mark between them, and cite the
result: one `read_entry` brings back what stood around them. With a number in front, as tools that read files
put it, a line says where to read on.

Refused: numbers as a reason to take a line, since of thousands no rule knows which; any word of ours amid
the words of a result; and a line that holds a tally's key, which code tells.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from shiftbook import canonical
from shiftbook.entries import ReportLine
from shiftbook.prompt import wording
from shiftbook.prompt.fidelity import is_whole
from shiftbook.prompt.names import names_of, whole_words
from shiftbook.prompt.quoting import shortened

HEAD = "lines of a result: "
NEXT = " | "
"""Between two lines that stood one below the other."""
GAP = " ... "
"""Between two with others between them."""

READ_CHARS = 8_000
"""Lines are looked for in so much of a result's beginning."""
LINE_CHARS = 200
"""A longer line is cut to so many characters, at a word's end."""

PATH_WEIGHT = 2
"""A path weighs so much more than a symbol: a call needs it whole, where a symbol can be searched for."""

ROOM_MIN = 60
"""With fewer characters left no more lines are looked for."""

_FINE = 1_000_000
"""Worths by the character are whole numbers, so that they are the same on every machine."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line of a result: its entry, its place there, its words, what would be told, its names."""

    position: int
    place: int
    whole: str
    text: str
    names: frozenset[str]


def candidates(position: int, text: str, unless: Collection[str]) -> Iterator[Candidate]:
    """The lines of a result that hold a name, and none of these words, which are in small letters."""
    for place, line in enumerate(whole_words(text, READ_CHARS).split("\n")):
        told = shortened(line, LINE_CHARS)
        low = told.lower()
        if any(word in low for word in unless):
            continue
        names = frozenset(names_of(told))
        if names:
            yield Candidate(position, place, line, told, names)


def weight(name: str, count: int, *, is_asked: bool) -> int:
    """What a name weighs that so many entries hold: about the logarithm, and little for a single one."""
    whole = (5 * count.bit_length() - 4) * (PATH_WEIGHT if "/" in name else 1)
    return whole if is_asked else 2 * whole


def chosen(
    of: Iterable[Candidate], weights: Mapping[str, int], told: Collection[str], chars: int
) -> list[ReportLine]:
    """Lines within so many characters of a report, a line of it for each result; no name of `told` counts."""
    lines = list(of)
    covered = set(told)
    taken: dict[int, list[Candidate]] = {}

    def worth(line: Candidate) -> int:
        value = sum(weights.get(name, 0) for name in line.names if name not in covered)
        return value * _FINE // (len(line.text) + len(GAP))

    # Among equals the last, which shows how things stand now.
    heap = [(-worth(line), -number) for number, line in enumerate(lines)]
    heapq.heapify(heap)
    left = chars
    while heap and left >= ROOM_MIN:
        before, number = heapq.heappop(heap)
        line = lines[-number]
        now = -worth(line)
        if now == 0:
            continue
        if now > before:
            heapq.heappush(heap, (now, number))
            continue
        cost = _cost(line, is_first=line.position not in taken)
        # What is ASCII is parted there as names are; elsewhere a letter beside a name makes it another word.
        if cost <= left and (line.whole.isascii() or is_whole(line.text, line.whole)):
            left -= cost
            taken.setdefault(line.position, []).append(line)
            covered |= line.names
    return [ReportLine(HEAD + canonical.encode(_joined(found)), (at,)) for at, found in taken.items()]


def _cost(line: Candidate, *, is_first: bool) -> int:
    """The characters that a line takes, and at the first of its result what stands around them all."""
    size = len(canonical.encode(line.text)) - 2 + len(GAP)
    return size + len(wording.report_line(f'{HEAD}""', (line.position,))) + 1 if is_first else size


def _joined(found: Iterable[Candidate]) -> str:
    """The lines in their order, with a mark between them, and one in front where others lay before."""
    text, last = "", -1
    for line in sorted(found, key=lambda each: each.place):
        between = NEXT if line.place == last + 1 else GAP
        text += (between if text else "" if line.place == 0 else GAP.lstrip()) + line.text
        last = line.place
    return text
