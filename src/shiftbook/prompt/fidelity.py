"""Whether a report's line says no number, path, id or date that the entries it cites do not hold.

Both sides are normalised first: letters to small ones; a number without thousands separators, leading zeros
and zeros behind the point (1,234.50 is 1234.5); a date in words or with points or slashes to year-month-day.
The stamps of the cited entries count as their words, and so does the text as canonical JSON writes it, since
lines quote in that form.

A line that puts a number beside a tally's key is refused as well: tallies are kept by code and shown in the
brief. A person's own words, quoted and dated by rule, are history and exempt from that alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from shiftbook import canonical
from shiftbook.entries import Entry, PersonSaid, ReportLine
from shiftbook.prompt.cut import plain_text
from shiftbook.prompt.told import entry_text, stamp

BESIDE_CHARS = 40
"""How near to a tally's key a number counts as said of it."""

CITES_MAX = 200

READ_CHARS = 20_000
"""Names are looked for in so many characters at each end of a text."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_NUMBER = re.compile(
    r"(?<![\w.])[+-]?\d+(?:,\d{3})*(?:\.\d+)?(?!\w)|\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?", re.ASCII
)
_PLAIN_NUMBER = re.compile(r"[+-]?[\d.]+")
# Each begins where a word does, so that a text of one long word is not tried from every letter.
_PATH = re.compile(
    r"(?<![\w.@+~-])(?:[\w.@+~-]*(?:/[\w.@+-]+)+|[\w@+-]+(?:\.[\w@+-]+)*\.[a-z]\w{0,5}\b)", re.ASCII
)
_ID = re.compile(
    r"\b[A-Za-z]+[-_#]\d[\w-]*|\b(?=\w*\d)(?=\w*[a-zA-Z])\w{4,}\b|\b\w*[a-z0-9]_\w+\b|\b[a-z]+[A-Z]\w+\b",
    re.ASCII,
)
_STAMP = re.compile(r"\A\d{4,}-\d\d-\d\d \d\d:\d\d UTC, ")
_YMD = re.compile(r"\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\b", re.ASCII)
_DMY = re.compile(
    rf"\b(\d{{1,2}})\.?(?:st|nd|rd|th)? (?:of )?{_MONTH},? (\d{{4}})\b", re.ASCII | re.IGNORECASE
)
_MDY = re.compile(rf"\b{_MONTH} (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})\b", re.ASCII | re.IGNORECASE)


def fault(
    line: ReportLine, known: Mapping[int, Entry], tallies: Iterable[str] = (), *, by_rule: bool = False
) -> str | None:
    """Why the line may not stand, None if it may. `known` holds the entries that may be cited.

    `by_rule`: the line was written by code, so that its form says truly whose words it quotes.
    """
    cited = [known[position] for position in line.cites if position in known]
    if not line.cites or len(cited) != len(line.cites) or len(cited) > CITES_MAX:
        return "it does not cite entries that it was written from"
    held = Held(cited)
    for name in claims(line.text):
        if not held.holds(name):
            return f"{name} is in none of the entries that it cites"
    quotes = by_rule and len(cited) == 1 and isinstance(cited[0].what, PersonSaid)
    return None if quotes else tally_fault(line.text, tallies, stamped=by_rule)


def tally_fault(text: str, tallies: Iterable[str], *, stamped: bool) -> str | None:
    """Why a line may not stand beside these tallies; `stamped`: it begins with its time."""
    said = _STAMP.sub("", text) if stamped else text
    for key in tallies:
        if _pairs(said, key):
            return f"it puts a number beside the tally {key}, which is kept by code"
    return None


def claims(text: str) -> Iterator[str]:
    """The dates, paths, ids and numbers of a text, normalised; each piece of text is read once."""
    rest = _dated(text)
    for pattern in (_YMD, _PATH, _ID, _NUMBER):
        for found in pattern.finditer(rest):
            yield _normal(found[0])
        rest = pattern.sub(" ", rest)


def is_whole(piece: str, text: str) -> bool:
    """Whether a line that quotes a piece of a text may stand: no name in it is part of another word there."""
    held = Held.of_text(text)
    return all(held.holds(name) for name in claims(canonical.encode(piece)))


def names_in(text: str) -> list[str]:
    """Paths, ids and numbers of a text as they stand in it, each once, paths first, then ids."""
    if len(text) > 2 * READ_CHARS:
        text = f"{text[:READ_CHARS]}\n{text[-READ_CHARS:]}"
    found: dict[str, None] = {}
    for pattern in (_PATH, _ID, _NUMBER):
        for each in pattern.finditer(text):
            if len(each[0]) > 1:
                found.setdefault(each[0])
    return list(found)


class Held:
    """What the cited entries hold, read once."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._read([(plain_text(entry_text(entry)), stamp(entry.at_ms)) for entry in entries])

    @classmethod
    def of_text(cls, text: str) -> Held:
        """What a text holds by itself."""
        held = cls(())
        held._read([(text, "")])
        return held

    def _read(self, told: Iterable[tuple[str, str]]) -> None:
        texts = [each for words, at in told for each in (words, canonical.encode(words), at)]
        self._text = _dated("\n".join(texts)).lower()

    def holds(self, name: str) -> bool:
        """Whether a normalised name is there, as a whole word where it is no number."""
        if _PLAIN_NUMBER.fullmatch(name):
            return name in self._numbers
        # A pattern for each name would cost more to make than to look for.
        at = self._text.find(name)
        while at >= 0:
            before, behind = self._text[at - 1 : at], self._text[at + len(name) : at + len(name) + 1]
            if not _is_of_word(before) and not _is_of_word(behind):
                return True
            at = self._text.find(name, at + 1)
        return False

    @cached_property
    def _numbers(self) -> frozenset[str]:
        return frozenset(_normal(found[0]) for found in _NUMBER.finditer(self._text))


def _is_of_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _normal(name: str) -> str:
    if _NUMBER.fullmatch(name):
        plain = name.replace(",", "").lstrip("+")
        sign = "-" if plain.startswith("-") else ""
        whole, _, part = plain.lstrip("-").partition(".")
        part = part.rstrip("0")
        return f"{sign}{whole.lstrip('0') or '0'}" + (f".{part}" if part else "")
    if found := _YMD.fullmatch(name):
        return f"{found[1]}-{int(found[2]):02}-{int(found[3]):02}"
    return name.lower()


def _dated(text: str) -> str:
    """The text with every date as year-month-day."""
    text = _DMY.sub(lambda m: f"{m[3]}-{_month(m[2])}-{int(m[1]):02}", text)
    text = _MDY.sub(lambda m: f"{m[3]}-{_month(m[1])}-{int(m[2]):02}", text)
    return _YMD.sub(lambda m: f"{m[1]}-{int(m[2]):02}-{int(m[3]):02}", text)


def _month(name: str) -> str:
    return f"{_MONTHS.index(name[:3].lower()) + 1:02}"


def _pairs(text: str, key: str) -> bool:
    low, key = text.lower(), key.lower()
    if not key or key not in low:
        return False
    for found in re.finditer(rf"(?<!\w){re.escape(key)}(?!\w)", low):
        before = low[max(0, found.start() - BESIDE_CHARS) : found.start()]
        if re.search(r"(?<![\w-])\d", f"{before} {low[found.end() : found.end() + BESIDE_CHARS]}"):
            return True
    return False
