"""What stands after an entry: rules, statements, plan, tallies, what is open, and the working set.

One fold for a run's whole life, O(1) an entry; kinds that say nothing about these cost one look-up. It keeps
the entries that stand, not the run: `needed` are those from which the brief of a prompt can be made again.
Folding them alone, or with any others of the run beside them, gives the same standing.

It can be dropped and folded again; in pieces or at once, the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shiftbook.entries import (
    ActionFinished,
    ActionStarted,
    Entry,
    ModelAnswered,
    PersonSaid,
    PlanChanged,
    PlanItem,
    RuleSet,
    StatementMade,
    TallyChanged,
    What,
)
from shiftbook.messages import Call, Json
from shiftbook.payload import from_plain, to_plain
from shiftbook.projections import pending as opened
from shiftbook.projections.pending import (
    Pending,
    learn_answer,
    learn_asked,
    learn_settled,
    learn_words,
    pending_of,
)
from shiftbook.projections.rules import Rules, learn_rule
from shiftbook.projections.statements import Statements, learn_statement
from shiftbook.projections.tallies import Tally, TallyKey, learn_tally
from shiftbook.projections.working_set import USED_SORTS, WorkingSet, excerpts, learn_reply, learn_start

KNOWLEDGE_VERSION = 3
"""Raised when the fold or its plain form changes: snapshots of other versions are ignored."""


@dataclass(slots=True)
class Knowledge:
    """What a run knows after the entry at `position`."""

    position: int = 0
    rules: Rules = field(default_factory=Rules)
    statements: Statements = field(default_factory=Statements)
    plan: Entry | None = None
    tallies: dict[TallyKey, Tally] = field(default_factory=dict)
    working: WorkingSet = field(default_factory=WorkingSet)
    pending: Pending = field(default_factory=Pending)


def learn(knowledge: Knowledge, entry: Entry) -> None:
    """Take one entry."""
    knowledge.position = entry.position
    fold = _FOLDS.get(type(entry.what))
    if fold is not None:
        fold(knowledge, entry, entry.what)


def learn_all(entries: Iterable[Entry], knowledge: Knowledge | None = None) -> Knowledge:
    """What is known after all these entries."""
    knowledge = knowledge or Knowledge()
    for entry in entries:
        learn(knowledge, entry)
    return knowledge


def plan_items(knowledge: Knowledge) -> tuple[PlanItem, ...]:
    """The items of the plan; none before there is one."""
    plan = None if knowledge.plan is None else knowledge.plan.what
    return plan.items if isinstance(plan, PlanChanged) else ()


def needed(knowledge: Knowledge, kinds: Iterable[type[What]]) -> list[Entry]:
    """The entries of these kinds that what stands is made of, in order.

    Of the four kinds RuleSet, StatementMade, PlanChanged and TallyChanged; with ModelAnswered what the
    working set knows and what is open is made of, as excerpts under negative positions; others stand for
    nothing here.
    """
    wanted = frozenset(kinds)
    found: list[Entry] = []
    if RuleSet in wanted:
        found += knowledge.rules.words.values()
    if StatementMade in wanted:
        found += knowledge.statements.standing.values()
    if PlanChanged in wanted and knowledge.plan is not None:
        found.append(knowledge.plan)
    if TallyChanged in wanted:
        for tally in knowledge.tallies.values():
            found += tally.operands
    if ModelAnswered in wanted:
        found += _excerpts(knowledge)
    return sorted(found, key=lambda entry: entry.position)


def _excerpts(knowledge: Knowledge) -> list[Entry]:
    """One excerpt for each position, though two may know of a reply: those of the working set have no id."""
    found = {entry.position: entry for entry in excerpts(knowledge.working)}
    for entry in opened.excerpts(knowledge.pending):
        other, what = found.get(entry.position), entry.what
        if other is not None and isinstance(other.what, ModelAnswered) and isinstance(what, ModelAnswered):
            entry = replace(entry, what=replace(what, parts=(*other.what.parts, *what.parts)))
        found[entry.position] = entry
    return list(found.values())


def _answered(knowledge: Knowledge, entry: Entry, what: ModelAnswered) -> None:
    if entry.position < 0:
        # An excerpt: the working set's calls are those without an id.
        named = tuple(part for part in what.parts if isinstance(part, Call) and not part.id)
        what = replace(what, parts=named)
    learn_reply(knowledge.working, abs(entry.position), what)
    if entry.position > 0:
        learn_asked(knowledge.pending, entry, what)


def _stated(knowledge: Knowledge, entry: Entry, what: StatementMade) -> None:
    learn_statement(knowledge.statements, entry, what)
    learn_settled(knowledge.pending, entry, what)


def _planned(knowledge: Knowledge, entry: Entry, what: PlanChanged) -> None:
    knowledge.plan = entry


_FOLDS: Mapping[type[What], Callable[[Knowledge, Entry, Any], None]] = {
    RuleSet: lambda knowledge, entry, what: learn_rule(knowledge.rules, entry, what),
    StatementMade: _stated,
    PlanChanged: _planned,
    TallyChanged: lambda knowledge, entry, what: learn_tally(knowledge.tallies, entry, what),
    ModelAnswered: _answered,
    ActionFinished: lambda knowledge, entry, what: learn_answer(knowledge.pending, entry, what),
    PersonSaid: lambda knowledge, entry, what: learn_words(knowledge.pending, entry, what),
    ActionStarted: lambda knowledge, entry, what: learn_start(knowledge.working, entry.position, what),
}


# --- snapshots ---------------------------------------------------------------------------------------


def knowledge_to_plain(knowledge: Knowledge) -> dict[str, Json]:
    """What is known, as plain JSON for a snapshot."""
    return {
        "version": KNOWLEDGE_VERSION,
        "used": {sort: list(map(list, names.items())) for sort, names in knowledge.working.used.items()},
        "position": knowledge.position,
        "rules": _entries_out(knowledge.rules.words.values()),
        "by_author": _entries_out(knowledge.rules.by_author.values()),
        "statements": _entries_out(knowledge.statements.standing.values()),
        "earlier": {key: list(before) for key, before in knowledge.statements.earlier.items()},
        "plan": None if knowledge.plan is None else _entry_out(knowledge.plan),
        "tallies": [[tally.total, _entries_out(tally.operands)] for tally in knowledge.tallies.values()],
        "touched": [[*touch, times, last] for touch, (times, last) in knowledge.working.touched.items()],
        "pending": _entries_out(opened.excerpts(knowledge.pending)),
        "asked": [[call, [list(each) for each in about]] for call, about in knowledge.working.asked.items()],
    }


def knowledge_from_plain(plain: Mapping[str, Json]) -> Knowledge:
    """The reverse of `knowledge_to_plain`; `ValueError` for another version, and for what is no snapshot."""
    if plain["version"] != KNOWLEDGE_VERSION:
        raise ValueError(f"the knowledge has version {plain['version']}")
    statements = Statements(
        {entry.what.key: entry for entry in _entries_in(plain["statements"])},
        {key: tuple(before) for key, before in plain["earlier"].items()},
    )
    tallies: dict[TallyKey, Tally] = {}
    for total, operands in plain["tallies"]:
        entries = _entries_in(operands)
        tallies[entries[0].what.key, entries[0].what.place] = Tally(total, entries)
    working = WorkingSet(
        {(sort, name): (times, last) for sort, name, times, last in plain["touched"]},
        {call: tuple((sort, name) for sort, name in about) for call, about in plain["asked"]},
        {sort: dict(plain["used"][sort]) for sort in USED_SORTS},
    )
    return Knowledge(
        position=plain["position"],
        rules=Rules(
            {entry.what.key: entry for entry in _entries_in(plain["rules"])},
            {entry.what.key: entry for entry in _entries_in(plain["by_author"])},
        ),
        statements=statements,
        plan=None if plain["plan"] is None else _entry_in(plain["plan"]),
        tallies=tallies,
        working=working,
        pending=pending_of(_entries_in(plain["pending"])),
    )


def _entry_out(entry: Entry) -> Json:
    return [
        entry.position,
        entry.at_ms,
        entry.epoch,
        entry.kind,
        to_plain(entry.what),
        dict(entry.redacted),
    ]


def _entry_in(plain: Json) -> Any:
    position, at_ms, epoch, kind, what, redacted = plain
    return Entry(position, at_ms, epoch, from_plain(kind, what), redacted)


def _entries_out(entries: Iterable[Entry]) -> list[Json]:
    return [_entry_out(entry) for entry in entries]


def _entries_in(plain: Json) -> list[Any]:
    return [_entry_in(each) for each in plain]
