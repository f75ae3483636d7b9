"""What results held that leave the prompt, as lines of a report: their telling lines, and names beside them.

Of each result's beginning every name is noted once. A name weighs by the results that show it, and once more
where an older line tells it. Where there is room, most of it is for lines of results (`seen_lines`), the rest
for names that no line tells: the heaviest first, the latest among equals, each under the result that showed
it last, so that one `read_entry` brings back what was said of it. Older lines of both sorts are carried word
for word, the newest first, but for those whose names are all told anew.

Refused: bare numbers, which are mostly those of lines; and a list of names in the calls that leave, which the
brief's names in use tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from shiftbook.entries import ActionFinished, Entry, ModelAnswered, ReportLine
from shiftbook.prompt import seen_lines, wording
from shiftbook.prompt.cut import plain_text
from shiftbook.prompt.names import names_of, whole_words
from shiftbook.prompt.told import entry_text

READ_CHARS = 4_000
"""Names are looked for in so much of a result's beginning."""

NAMES_A_RESULT_MAX = 100

FRESH_SHARE = 4
"""One part in so many of the room is what leaves now may take while older lines are there."""

LINES_PART = (7, 10)
"""Of that so much is for lines of results, the rest for names alone."""

LINES_ROOM_MIN = 1_000
"""With fewer characters than these it is all for names, of which they hold three times as many."""

HEAD = "seen in a result: "
BETWEEN = ", "


def is_seen(line: ReportLine) -> bool:
    """Whether the line tells names or lines of a result."""
    return line.text.startswith((HEAD, seen_lines.HEAD))


class Seen:
    """The names and lines of results that leave, read once, and the older lines of both.

    No line of a result that holds the key of one of the `tallies` is told.
    """

    def __init__(
        self, entries: Iterable[Entry], older: Iterable[ReportLine], tallies: Iterable[str] = ()
    ) -> None:
        self.older = tuple(older)
        unless = [key.lower() for key in tallies if key]
        self._told_by = {line: told_by(line) for line in self.older}
        last: dict[str, int] = {}
        weights = Counter(name for names in self._told_by.values() for name in names)
        calls: Counter[str] = Counter()
        self._candidates: list[seen_lines.Candidate] = []
        for entry in entries:
            if isinstance(entry.what, ActionFinished):
                text = plain_text(entry_text(entry))
                self._candidates += seen_lines.candidates(entry.position, text, unless)
                for name in names_of(whole_words(text, READ_CHARS))[:NAMES_A_RESULT_MAX]:
                    weights[name] += 1
                    last[name] = entry.position
            elif isinstance(entry.what, ModelAnswered):
                calls.update(names_of(plain_text(entry_text(entry))))
        self._worths = {
            name: seen_lines.weight(name, count, is_asked=name in calls)
            for name, count in (weights + calls).items()
        }
        heaviest = sorted(last.keys() - calls.keys(), key=lambda name: (-weights[name], -last[name], name))
        self.fresh = tuple((name, last[name]) for name in heaviest)

    def lines(self, chars: int, beside: Iterable[ReportLine] = ()) -> list[ReportLine]:
        """Lines within so many characters, what leaves now first; no name that the lines `beside` tell."""
        told: set[str] = set()
        for line in beside:
            if line not in self._told_by:
                self._told_by[line] = names_of(line.text)
            told.update(self._told_by[line])
        room = chars // FRESH_SHARE if self.older else chars
        room_of_lines = room * LINES_PART[0] // LINES_PART[1] if room >= LINES_ROOM_MIN else 0
        fresh = seen_lines.chosen(self._candidates, self._worths, told, room_of_lines)
        told.update(name for line in fresh for name in told_by(line))
        fresh += self._names(room - sum(map(size_of, fresh)), told)
        told.update(name for line in fresh for name in told_by(line))
        left = chars - sum(map(size_of, fresh))
        carried: list[ReportLine] = []
        for line in self.older:
            if size_of(line) <= left and not told.issuperset(self._told_by[line]):
                carried.append(line)
                left -= size_of(line)
        return [*fresh, *carried]

    def _names(self, left: int, told: Collection[str]) -> list[ReportLine]:
        """A line of names for each result, that with the heaviest name first."""
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


def told_by(line: ReportLine) -> list[str]:
    """The names of a line of either sort."""
    if line.text.startswith(HEAD):
        return line.text.removeprefix(HEAD).split(BETWEEN)
    return names_of(line.text)


def size_of(line: ReportLine) -> int:
    """The characters that a line takes in a report."""
    return len(wording.report_line(line.text, line.cites)) + 1
