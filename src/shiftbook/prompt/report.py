"""An account of entries that leave the prompt, written by rule: who said what when, in few words, with names.

A person's words come first, dated and in quotes; a turn is one line: the beginning of the reply, what was
called with what, the beginning of each answer, and the names in it (paths, ids, numbers) that the beginning
does not show. Lines and names of results that none of this tells stand behind it (`seen`). Every line cites
its entries. Lines of the report before it are carried word for word or dropped, never shortened or told
again; within the room, persons' words go last and the oldest turns first.

Refused: any judgement of meaning, and any word that is not in the entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shiftbook.entries import (
    ActionFinished,
    Entry,
    LineStruck,
    ModelAnswered,
    ModelInterrupted,
    PersonSaid,
    ReportLine,
    ReportWritten,
    What,
)
from shiftbook.messages import Call, Text
from shiftbook.prompt import wording
from shiftbook.prompt.cut import plain_text
from shiftbook.prompt.epoch import Measure, WantReport
from shiftbook.prompt.fidelity import fault, names_in, tally_fault
from shiftbook.prompt.overreach import is_persons, overreach
from shiftbook.prompt.quoting import ARGUMENT_CHARS, arguments_told, quoted
from shiftbook.prompt.render import calls_of, render_entry
from shiftbook.prompt.seen import Seen, is_seen, size_of
from shiftbook.prompt.told import entry_text, quoted_name, stamp

MECHANICAL = "mechanical"
"""The name of the writer by rule."""

WORDS_CHARS = 500
"""A person's words are given up to this length."""
REPLY_CHARS = 160
ANSWER_CHARS = 100
NAMES_MAX = 12
"""Names of an answer that its beginning does not show."""
CALLS_MAX = 8
"""Calls of one reply that are told one by one."""

PERSONS_SHARE = 2
"""One part in so many of the room is kept for persons' words while turns compete for it."""

SEEN_SHARE = 2
"""One part in so many of it is what lines and names of results may take."""

CHARS_PER_TOKEN = 4
ROOM_TRIES = 12


def by_rule(want: WantReport, measure: Measure, tallies: Iterable[str] = ()) -> tuple[What, ...]:
    """The report by rule within the tokens that are wanted, and an entry for each line that was struck.

    It has no lines when not one fits; its head may then still be longer than the room.
    """
    return composed(want, lines_by_rule(want.entries), measure, tallies)


def composed(
    want: WantReport,
    told: Sequence[ReportLine],
    measure: Measure,
    tallies: Iterable[str] = (),
    *,
    written: Sequence[ReportLine] = (),
    known: Iterable[Entry] = (),
    writer: str = MECHANICAL,
    is_anew: bool = False,
) -> tuple[What, ...]:
    """A report of the lines before it, of those a model has written, and of those told by rule, in its room.

    `known` are entries that written lines may cite beside those that are wanted. Where the model wrote the
    report before anew, only people's words are left of its lines. What `by_rule` says of the room holds here
    too.
    """
    before = () if want.before is None else want.before.lines
    before = tuple(line for line in before if is_persons(line)) if is_anew else before
    tallies = tuple(tallies)
    check = Check((*want.entries, *known), tallies, carried=before, written=written)
    sound, refused = check.sorted_out(written)
    lines = list(dict.fromkeys((*(line for line in before if not is_seen(line)), *sound, *told)))
    chars = want.room * CHARS_PER_TOKEN
    # A model that has written has chosen what to name.
    seen = Seen(() if sound else want.entries, filter(is_seen, before), tallies)
    for _ in range(ROOM_TRIES):
        kept, struck = check.sorted_out(_with_seen(lines, seen, chars))
        report = ReportWritten(want.first, want.last, kept, writer if sound else MECHANICAL)
        if report_tokens(report, measure) <= want.room:
            return (report, *refused, *struck)
        chars = chars * 4 // 5
    return (ReportWritten(want.first, want.last, (), writer), *refused)


Sorted = tuple[tuple[ReportLine, ...], tuple[LineStruck, ...]]


class Check:
    """Holds lines against the entries that they cite, each line once.

    Those `carried` from the report before were checked when they were written, and are held against the
    tallies that have come since; those `written` by a model are held to more than what a rule tells.
    """

    def __init__(
        self,
        known: Iterable[Entry],
        tallies: Iterable[str],
        *,
        carried: Iterable[ReportLine] = (),
        written: Iterable[ReportLine] = (),
    ) -> None:
        self._known = {entry.position: entry for entry in known}
        self._tallies = tuple(tallies)
        self._written = frozenset(written)
        self._faults: dict[ReportLine, str | None] = {
            line: None if is_persons(line) else tally_fault(line.text, self._tallies, stamped=True)
            for line in carried
        }

    def sorted_out(self, lines: Iterable[ReportLine]) -> Sorted:
        """The lines that may stand, and those that may not with the reason."""
        kept: list[ReportLine] = []
        struck: list[LineStruck] = []
        for line in lines:
            if line not in self._faults:
                self._faults[line] = self._fault(line)
            why = self._faults[line]
            if why is None:
                kept.append(line)
            else:
                struck.append(LineStruck(line, why))
        return tuple(kept), tuple(struck)

    def _fault(self, line: ReportLine) -> str | None:
        is_written = line in self._written
        why = fault(line, self._known, self._tallies, by_rule=not is_written)
        if why is None and is_written:
            why = overreach(line, [self._known[position] for position in line.cites])
        return why


def report_tokens(report: What, measure: Measure) -> int:
    """What the report takes in a prompt."""
    widest = Entry(10**9, 0, 1, report)
    return sum(measure(block) for block in render_entry(widest, "kept"))


# --- lines ---------------------------------------------------------------------------------------------


def lines_by_rule(entries: Sequence[Entry]) -> list[ReportLine]:
    """A line for each thing that a person said, and for each turn."""
    answers = {entry.what.call: entry for entry in entries if isinstance(entry.what, ActionFinished)}
    lines: list[ReportLine] = []
    for entry in entries:
        match entry.what:
            case PersonSaid():
                lines.append(_persons(entry, entry.what))
            case ModelAnswered():
                lines.append(_turn(entry, entry.what, answers))
            case ModelInterrupted():
                words = quoted(_words_of(entry.what), REPLY_CHARS)
                text = f"{stamp(entry.at_ms)}, the model began {words} and was cut off"
                lines.append(ReportLine(text, (entry.position,)))
    return lines


def _persons(entry: Entry, what: PersonSaid) -> ReportLine:
    words = quoted(entry_text(entry), WORDS_CHARS)
    text = f"{stamp(entry.at_ms)}, {wording.SAID_BY[what.author]}: {words}"
    return ReportLine(text, (entry.position,))


def _turn(entry: Entry, what: ModelAnswered, answers: Mapping[str, Entry]) -> ReportLine:
    calls = calls_of(entry)
    said = _words_of(what)
    pieces = [f"the model said {quoted(said, REPLY_CHARS)}"] if said.strip() else []
    cites = [entry.position]
    for call in calls[:CALLS_MAX]:
        answer = answers.get(call.id)
        pieces.append(_called(call, answer))
        if answer is not None:
            cites.append(answer.position)
    if len(calls) > CALLS_MAX:
        pieces.append("and further calls")
    return ReportLine(f"{stamp(entry.at_ms)}, {'; '.join(pieces) or 'the model said nothing'}", tuple(cites))


def _words_of(what: ModelAnswered | ModelInterrupted) -> str:
    """What the reply says, without its calls and without what a recording lacks of it."""
    return "\n".join(plain_text(part.text) for part in what.parts if isinstance(part, Text))


def _called(call: Call, answer: Entry | None) -> str:
    asked = f"called {quoted_name(call.tool)}"
    if given := arguments_told(call.arguments or {}):
        asked += f" ({given})"
    if answer is None or not isinstance(answer.what, ActionFinished):
        return asked
    text = entry_text(answer)
    told = f"{asked}: {wording.OUTCOMES[answer.what.outcome]} {quoted(text, ANSWER_CHARS)}"
    more = [name for name in names_in(text) if name not in told and len(name) <= ARGUMENT_CHARS][:NAMES_MAX]
    return f"{told} with {quoted(' '.join(more), 4 * ARGUMENT_CHARS)}" if more else told


# --- room ----------------------------------------------------------------------------------------------


def _with_seen(lines: Sequence[ReportLine], seen: Seen, chars: int) -> list[ReportLine]:
    """The lines that fit beside what results held, and behind them what of it they do not tell."""
    share = chars // SEEN_SHARE
    shown = _within(lines, chars - sum(map(size_of, seen.lines(share))))
    return [*shown, *seen.lines(share, beside=shown)]


def _within(lines: Sequence[ReportLine], chars: int) -> list[ReportLine]:
    """The lines that fit: persons' words up to their share, then turns, the newest first of each."""
    sizes = [size_of(line) for line in lines]
    chosen: set[int] = set()
    left = chars

    def take(numbers: Iterable[int], room: int) -> int:
        spent = 0
        for number in numbers:
            if number not in chosen and spent + sizes[number] <= room:
                chosen.add(number)
                spent += sizes[number]
        return spent

    newest = sorted(range(len(lines)), key=lambda number: -max(lines[number].cites, default=0))
    persons = [number for number in newest if is_persons(lines[number])]
    left -= take(persons, chars // PERSONS_SHARE)
    left -= take((number for number in newest if number not in persons), left)
    take(persons, left)
    return sorted((lines[number] for number in chosen), key=lambda line: min(line.cites, default=0))
