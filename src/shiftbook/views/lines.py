"""An entry in one line for a person at a terminal.

What a model, a tool or a file wrote is hostile: control characters, escape sequences, marks that turn the
direction of writing and lone surrogates are shown as escapes and steer nothing. Long text is cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from shiftbook import canonical
from shiftbook.entries import (
    ActionFinished,
    ActionStarted,
    AgentDeclared,
    Entry,
    EpochOpened,
    LimitReached,
    LineStruck,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    ModelInterrupted,
    PersonSaid,
    PlanChanged,
    Recalled,
    ReportAnswered,
    ReportAsked,
    ReportFailed,
    ReportWritten,
    RuleSet,
    RunEnded,
    RunOpened,
    RunRested,
    StatementMade,
    TallyChanged,
    Warned,
    What,
)
from shiftbook.messages import Call, Json, Media, Missing, Part, Reasoning, Result, Text
from shiftbook.views.rows import stamp

LINE_CHARS = 120
"""Characters of an entry's words in a line, unless the caller names another number."""

_STEERS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def one_line(text: str, limit: int = LINE_CHARS) -> str:
    """The text in one line of at most `limit` characters, with nothing in it that steers a terminal."""
    # What lies far behind the cut is not looked at: a text may have megabytes.
    head = " ".join(text[: 4 * limit].split())
    shown = _STEERS.sub(lambda found: ascii(found[0])[1:-1], head)
    if len(shown) <= limit and len(text) <= 4 * limit:
        return shown
    return shown[: max(0, limit - 3)] + "..."


def summary_line(entry: Entry, limit: int = LINE_CHARS) -> str:
    """`position  time  kind  words`: the entry in one line, its words cut to `limit` characters."""
    words = one_line(words_of(entry.what), limit)
    return f"{entry.position:>6}  {stamp(entry.at_ms)[:19]}  {entry.kind:<16}  {words}".rstrip()


def words_of(what: What) -> str:
    """What happened, in a few words, as the journal has them: not yet safe, not yet cut."""
    told = _of_the_run(what)
    return _of_the_work(what) if told is None else told


def _of_the_run(what: What) -> str | None:
    match what:
        case RunOpened(agent=agent, tags=tags):
            return " ".join([agent, *(f"#{tag}" for tag in tags)])
        case AgentDeclared(model=model, policy=policy, cap=cap, contracts=contracts):
            tools = "1 tool" if len(contracts) == 1 else f"{len(contracts)} tools"
            return f"model {model}, policy {policy}, cap {cap:,}, {tools}"
        case PersonSaid(content=content, author=author):
            return content_words(content) if author == "person" else f"({author}) {content_words(content)}"
        case RuleSet(key=key, text=text, withdrawn=withdrawn):
            return f"{key} withdrawn" if withdrawn else f"{key}: {text}"
        case EpochOpened(epoch=epoch, reason=reason):
            return f"prompt epoch {epoch}: {reason}"
        case ModelAsked(turn=turn, tokens=tokens, meter=meter):
            return f"turn {turn}, {'at most ' if meter == 'bytes' else ''}{tokens:,} tokens"
        case ModelFailed(turn=turn, attempt=attempt, error=error, retry_at_ms=retry_at):
            return (
                f"turn {turn}, attempt {attempt}: {error}{'' if retry_at is None else ' (to be tried again)'}"
            )
        case ModelAnswered(turn=turn, parts=parts, stop=stop):
            end = "" if stop in ("end", "calls") else f" [{stop}]"
            return f"turn {turn}{end}: {content_words(parts)}"
        case ModelInterrupted(turn=turn, parts=parts, reason=reason):
            return f"turn {turn} cut off ({reason}): {content_words(parts)}"
        case RunRested(state=state, why=why) | RunEnded(state=state, why=why):
            return f"{state}: {why}" if why else state
        case LimitReached(limit=limit, value=value, allowed=allowed):
            return f"{limit}: {value} of {allowed}"
        case Warned(what=name, detail=detail):
            return f"{name}: {detail}"
    return None


def _of_the_work(what: What) -> str:
    match what:
        case ActionStarted(call=call, tool=tool, attempt=attempt):
            return f"{call} {tool}{'' if attempt == 1 else f', attempt {attempt}'}"
        case ActionFinished(call=call, outcome=outcome, content=content):
            return f"{call} {outcome}: {content_words(content)}"
        case StatementMade(key=key, value=value, sort=sort):
            return f"{sort} {key} = {_json(value)}"
        case PlanChanged(items=items):
            return "; ".join(f"[{item.state}] {item.text}" for item in items)
        case TallyChanged(key=key, operation=operation, amount=amount, place=place):
            return (
                f"{key}{f' at {place}' if place else ''} {'+' if operation == 'add' else ''}= {_json(amount)}"
            )
        case ReportWritten(first=first, last=last, lines=lines, writer=writer):
            return f"entries {first} to {last} by {writer}, {len(lines)} lines"
        case ReportAsked(entries=asked, model=model, tokens=tokens):
            return f"{len(asked)} entries, of {model}, {tokens} tokens"
        case ReportFailed(attempt=attempt, error=error, retry_at_ms=retry_at):
            return f"attempt {attempt}: {error}{'' if retry_at is None else ' (to be tried again)'}"
        case ReportAnswered(parts=parts, stop=stop):
            return f"{'' if stop == 'end' else f'[{stop}] '}{content_words(parts)}"
        case LineStruck(line=line, why=why):
            return f"{why}: {line.text}"
        case Recalled(query=query, found=found):
            return f"{len(found)} entries for {query}"
    return ""


def content_words(parts: Iterable[Part]) -> str:
    """What parts of a message say, in one text."""
    return " ".join(filter(None, map(_part_words, parts)))


def _part_words(part: Part) -> str:
    match part:
        case Text(text):
            return text
        case Call(_, tool, arguments, raw):
            return f"{tool}({raw or '' if arguments is None else _arguments(arguments)})"
        case Result(_, content):
            return content_words(content)
        case Media(media_type=media_type, size=size):
            return f"[{media_type}, {size} bytes]"
        case Missing(what):
            return f"[missing: {what}]"
        case Reasoning():
            return "[reasoning]"


def _arguments(arguments: Mapping[str, Json]) -> str:
    return ", ".join(f"{name}={_json(value)}" for name, value in arguments.items())


def _json(value: Json) -> str:
    return canonical.encode(value)
