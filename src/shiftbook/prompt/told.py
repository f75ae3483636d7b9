"""Rules, statements, plan, tallies, recalls and reports as labelled text; and any entry told word for word.

What a model, a tool or a report brought stands here as quoted data on one line, whatever it holds: it cannot
end its quotes, begin a line, or look like a label of ours. Only a rule's text and a person's words are given
as they are. Stamps are in UTC to the minute.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from shiftbook import canonical
from shiftbook.entries import (
    ActionFinished,
    Entry,
    ModelAnswered,
    ModelInterrupted,
    PersonSaid,
    PlanChanged,
    Recalled,
    ReportLine,
    ReportWritten,
    RuleSet,
    StatementMade,
    TallyChanged,
    UserContent,
)
from shiftbook.messages import AssistantPart, Call, Json, Media, Missing, Reasoning, Text
from shiftbook.prompt import wording
from shiftbook.prompt.cut import SPACES, arguments_text, cut_text, plain_arguments, plain_text

QUERY_CHARS_MAX = 200

_SIMPLE = re.compile(r"[\w./@#+-]+(?: [\w./@#+-]+)*", re.ASCII)
_ONE_LINE = dict.fromkeys(map(ord, SPACES), " ")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def told(entry: Entry) -> str | None:
    """The live text of an entry of the six kinds that are told as labels; None for any other."""
    match entry.what:
        case RuleSet() as what:
            return _rule(entry, what)
        case StatementMade() as what:
            return f"[{wording.STATEMENT_LABEL} {statement_line(entry, what)}]"
        case PlanChanged() as what:
            lines = plan_lines(what) or [wording.PLAN_EMPTY]
            return "\n".join([wording.plan_head(entry.position, what.origin), *lines])
        case TallyChanged() as what:
            return f"[{wording.TALLY_LABEL} {_change(entry, what)}]"
        case Recalled(asked_by=by) if by in wording.RECALLED_BY_CODE:
            return wording.RECALLED_HEAD
        case Recalled() as what:
            query = canonical.encode(what.query[:QUERY_CHARS_MAX])
            return wording.recalled(query, spans(what.found), quoted_name(what.asked_by))
        case ReportWritten() as what:
            head = wording.report_head(what.first, what.last, quoted_name(what.writer))
            return "\n".join([head, *(_report_line(line) for line in what.lines)])
    return None


def _report_line(line: ReportLine) -> str:
    return wording.report_line(plain_text(line.text).translate(_ONE_LINE), line.cites)


def _rule(entry: Entry, what: RuleSet) -> str:
    name = quoted_name(what.key)
    if what.withdrawn:
        return wording.rule_withdrawn(name, what.author, entry.position)
    return f"{wording.rule_head(name, what.author, entry.position)}\n{plain_text(what.text)}"


def statement_line(entry: Entry, what: StatementMade) -> str:
    """A statement on one line: sort, key, value, whose word it is, when, about what, instead of what."""
    notes = [wording.ORIGINS[what.origin], f"entry {entry.position}", stamp(entry.at_ms)]
    if what.about is not None:
        notes.append(f"about {quoted_name(what.about)}")
    if what.supersedes is not None:
        notes.append(f"instead of entry {what.supersedes}")
    return f"{what.sort} {quoted_name(what.key)} = {quoted_value(what.value)} ({', '.join(notes)})"


def plan_lines(what: PlanChanged) -> list[str]:
    """A line for each item of a plan."""
    return [
        f"- [{item.state}] {quoted_name(item.id)}: {canonical.encode(plain_text(item.text))}"
        for item in what.items
    ]


def _change(entry: Entry, what: TallyChanged) -> str:
    done = "set to" if what.operation == "set" else "add"
    name = tally_name(what.key, what.place)
    return (
        f"{name}: {done} {amount_text(what.amount)} ({wording.ORIGINS[what.origin]}, entry {entry.position})"
    )


def tally_name(key: str, place: str) -> str:
    """How a tally is named: its key, and its place where it has one."""
    return f"{quoted_name(key)} at {quoted_name(place)}" if place else quoted_name(key)


def amount_text(amount: Json) -> str:
    """An exact number as it is written; what is none, which no release writes, as quoted data."""
    return str(amount) if type(amount) is int else _decimal(amount)


def _decimal(amount: Json) -> str:
    text = quoted_value(amount)
    if text.startswith('{"$decimal":"'):
        return text[13:-2]
    return text[9:-2] if text.startswith('{"$int":"') else text


def quoted_name(name: str) -> str:
    """A key, a place or an id: bare where it is plain ASCII, else in quotes as canonical text."""
    return name if _SIMPLE.fullmatch(name) else canonical.encode(plain_text(name))


def quoted_value(value: Json) -> str:
    """A value as data: its canonical text, one line, in which nothing can pass for a label."""
    return canonical.encode(value)


def stamp(at_ms: int) -> str:
    """A moment in UTC to the minute; a number that is no moment as it stands."""
    moment = _moment(at_ms)
    if moment is None:
        return f"{at_ms} ms"
    return f"{moment.date().isoformat()} {moment.hour:02}:{moment.minute:02} UTC"


def day(at_ms: int) -> str:
    """The day of a moment in UTC; a number that is no moment as it stands."""
    moment = _moment(at_ms)
    return f"{at_ms} ms" if moment is None else moment.date().isoformat()


def _moment(at_ms: int) -> datetime | None:
    try:
        return _EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        return None


def spans(positions: Sequence[int]) -> str:
    """Positions as text, neighbours drawn together: "entries 3, 5 to 7"; "nothing" for none."""
    if not positions:
        return "nothing"
    runs: list[list[int]] = []
    for position in sorted(set(positions)):
        if runs and runs[-1][1] == position - 1:
            runs[-1][1] = position
        else:
            runs.append([position, position])
    said = ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in runs)
    return f"entry {said}" if len(set(positions)) == 1 else f"entries {said}"


# --- word for word -------------------------------------------------------------------------------------


def record_text(entry: Entry, keep: int | None = None) -> str:
    """An older entry as a record: position, stamp and side, then its words, within `keep` characters."""
    head = wording.record_head(entry.position, stamp(entry.at_ms), side_of(entry))
    return f"{head}\n{_words_of(entry, keep)}"


def recalled_text(entry: Entry, keep: int | None = None) -> str:
    """The same among many others: position, day and speaker, then its words."""
    head = wording.recalled_head(entry.position, day(entry.at_ms), _speaker(entry))
    return f"{head}\n{_words_of(entry, keep)}"


def _words_of(entry: Entry, keep: int | None) -> str:
    text = entry_text(entry)
    if keep is not None:
        text = cut_text(text, keep, entry.position)
    if isinstance(entry.what, ActionFinished):
        # A tool's lines are marked one by one, so that none of them can pass for another record.
        text = "\n".join(f"> {line}" for line in text.split("\n"))
    return text


def _speaker(entry: Entry) -> str:
    match entry.what:
        case PersonSaid(author=author):
            return wording.SPEAKERS[author]
        case ModelAnswered():
            return "model"
        case ModelInterrupted():
            return "model, in part"
    return side_of(entry)


def side_of(entry: Entry) -> str:
    """Whose words an entry holds."""
    match entry.what:
        case PersonSaid(author=author):
            return wording.SAID_BY[author]
        case ModelAnswered():
            return "the model replied"
        case ModelInterrupted():
            return "the model replied in part"
        case ActionFinished(call=call, outcome=outcome):
            return f"answer to call {call}, {wording.OUTCOMES[outcome]}"
    return "on record"


def entry_text(entry: Entry) -> str:
    """All the words of an entry, calls and media named; reasoning is not among them."""
    match entry.what:
        case PersonSaid(content=content) | ActionFinished(content=content):
            return _joined(content)
        case ModelAnswered(parts=parts) | ModelInterrupted(parts=parts):
            return _joined(parts)
    return told(entry) or ""


def _joined(parts: UserContent | tuple[AssistantPart, ...]) -> str:
    lines: list[str] = []
    for part in parts:
        match part:
            case Text(text):
                lines.append(plain_text(text))
            case Missing(what):
                lines.append(wording.missing(plain_text(what)))
            case Media(media_type=media_type, size=size):
                lines.append(wording.media(plain_text(media_type), size))
            case Call(id=name, tool=tool):
                lines.append(wording.call(name, quoted_name(tool), arguments_text(plain_arguments(part))))
            case Reasoning():
                continue
    return "\n".join(lines)
