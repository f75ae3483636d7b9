"""The head of a rebuilt prompt: rules, statements, plan, tallies and the working set, a block for each form.

A pick names a range and folds the entries of its form's kind that are in it. The fold is the projection that
the run itself uses, so that the brief says what the run knows. Only the entries that stand are needed for
it: with the superseded ones beside them the same text comes out. No block comes of a form that has nothing
to say.

`keep` bounds a block in characters: what is newest comes first, and what is left out is counted and named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from shiftbook.entries import (
    Entry,
    ModelAnswered,
    Pick,
    PlanChanged,
    RuleSet,
    StatementMade,
    TallyChanged,
    What,
)
from shiftbook.messages import Block, Text
from shiftbook.projections.knowledge import Knowledge, learn_all, needed
from shiftbook.projections.working_set import used_last
from shiftbook.prompt import wording
from shiftbook.prompt.cut import cut_text, plain_text
from shiftbook.prompt.told import amount_text, plan_lines, quoted_name, statement_line, tally_name

BRIEF_KINDS: Mapping[str, type[What]] = {
    "rules": RuleSet,
    "statements": StatementMade,
    "plan": PlanChanged,
    "tallies": TallyChanged,
    "working": ModelAnswered,
}
"""The forms of the brief that fold a kind, in the order of a brief."""

PENDING = "pending"
"""The form of what is open (`prompt.pending`): it names its entries, since a range does not tell them."""

BRIEF_FORMS = (*BRIEF_KINDS, PENDING)
"""All forms of a brief. In a brief, what is open stands behind the tallies."""

APART = frozenset({"dropped", "recalled", *BRIEF_FORMS})
"""Forms that stand beside the turns: they show no turn, and a rebuild makes them anew."""

NAMING = frozenset({"dropped", "working", PENDING})
"""Kinds of blocks that name entries, or words out of them, and do not show them."""

PATH_NAMES_SHOWN = 3
"""Of a path in the working set so many names are told, from its end."""

LINE_SHARE = 4
"""One part in so many of `keep` is what a single line may take before it is cut."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a block and the entry that it comes of; of several the last."""

    text: str
    last: int


def render_brief(pick: Pick, entries: Mapping[int, Entry]) -> list[Block]:
    """The block of one form over a range, none when nothing stands. `entries` has at least what stands."""
    kind = BRIEF_KINDS[pick.form]
    positions = sorted(
        position
        for position, entry in entries.items()
        if pick.first <= abs(position) <= pick.last and type(entry.what) is kind
        # An excerpt of a reply has the negative of its position. Other excerpts are of what is open.
        if position > 0 or pick.form == "working"
    )
    knowledge = learn_all(entries[position] for position in sorted(positions, key=abs))
    if pick.form == "working":
        return _working(knowledge, pick.keep)
    made_of = tuple(entry.position for entry in needed(knowledge, (kind,)))
    if not made_of:
        return []
    head, lines = _LINES[pick.form](knowledge)
    return [Block("user", (Text(within(head, lines, pick.keep)),), pick.form, made_of)]


def _working(knowledge: Knowledge, keep: int | None) -> list[Block]:
    """The names in use, the newest lines that fit. What is older is not counted: it is known no more."""
    left = None if keep is None else keep - len(wording.WORKING_HEAD)
    shown: list[Line] = []
    for last, names in reversed(used_last(knowledge.working).items()):
        told = ", ".join(quoted_name(_short(name) if sort == "path" else name) for sort, name in names)
        line = Line(wording.used(last, told), last)
        if left is not None:
            left -= len(line.text) + 1
            if left < 0:
                break
        shown.insert(0, line)
    if not shown:
        return []
    text = "\n".join([wording.WORKING_HEAD, *(line.text for line in shown)])
    return [Block("user", (Text(text),), "working", tuple(line.last for line in shown))]


def _short(path: str) -> str:
    """The end of a path: a run's paths share their beginnings, and the entry has the whole."""
    names = path.split("/")
    return path if len(names) <= PATH_NAMES_SHOWN else "/".join(["...", *names[-PATH_NAMES_SHOWN:]])


def within(head: str, lines: list[Line], keep: int | None) -> str:
    """Head and lines within `keep` characters: the newest lines, and a line that counts the others."""
    if keep is None or len(head) + sum(len(line.text) + 1 for line in lines) <= keep:
        return "\n".join([head, *(line.text for line in lines)])
    widest = max(line.last for line in lines)
    left = keep - len(head) - len(wording.brief_left_out(len(lines), widest, widest)) - 1
    shown: dict[int, str] = {}
    for number in sorted(range(len(lines)), key=lambda each: -lines[each].last):
        line = lines[number]
        text = cut_text(line.text, keep // LINE_SHARE, line.last)
        text = text if len(text) < len(line.text) else line.text
        if len(text) + 1 > left:
            break
        left -= len(text) + 1
        shown[number] = text
    out = [line.last for number, line in enumerate(lines) if number not in shown]
    told = [shown[number] for number in sorted(shown)]
    if out:
        told.insert(0, wording.brief_left_out(len(out), min(out), max(out)))
    return "\n".join([head, *told])


Lines = tuple[str, list[Line]]


def _rules(knowledge: Knowledge) -> Lines:
    lines = []
    for entry in knowledge.rules.standing.values():
        if isinstance(what := entry.what, RuleSet):
            head = wording.rule_note(quoted_name(what.key), what.author, entry.position)
            lines.append(Line(f"- {head} {plain_text(what.text)}", entry.position))
    # Rules that were all withdrawn are told as well: a block names the entries that it was made from.
    none = [Line(wording.RULES_NONE, max(entry.position for entry in knowledge.rules.words.values()))]
    return wording.RULES_HEAD, lines or none


def _statements(knowledge: Knowledge) -> Lines:
    lines = [
        Line(f"- {statement_line(entry, entry.what)}", entry.position)
        for entry in knowledge.statements.standing.values()
        if isinstance(entry.what, StatementMade)
    ]
    return wording.STATEMENTS_HEAD, lines


def _plan(knowledge: Knowledge) -> Lines:
    entry = knowledge.plan
    if entry is None or not isinstance(entry.what, PlanChanged):
        return "", []
    lines = plan_lines(entry.what) or [wording.PLAN_EMPTY]
    head = wording.plan_head(entry.position, entry.what.origin)
    return head, [Line(line, entry.position) for line in lines]


def _tallies(knowledge: Knowledge) -> Lines:
    lines = []
    for (key, place), tally in sorted(knowledge.tallies.items()):
        last = tally.operands[-1]
        origin = wording.ORIGINS[last.what.origin] if isinstance(last.what, TallyChanged) else ""
        name = tally_name(key, place)
        text = f"- {name}: {amount_text(tally.total)} ({origin}, last entry {last.position})"
        lines.append(Line(text, last.position))
    return wording.TALLIES_HEAD, lines


_LINES: Mapping[str, Callable[[Knowledge], Lines]] = {
    "rules": _rules,
    "statements": _statements,
    "plan": _plan,
    "tallies": _tallies,
}
