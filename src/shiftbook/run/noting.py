"""Writing down what is known: from a model's book tools, from observers, from the agent's author.

Whatever it is, it is staged and folded at once and committed with what it came of. A tally whose page is
full is carried forward right behind the change that filled it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from shiftbook.codec import draft
from shiftbook.entries import (
    ActionFinished,
    Entry,
    PlanChanged,
    RuleSet,
    StatementMade,
    TallyChanged,
    Warned,
    What,
)
from shiftbook.observers.promise import Noticed, Observed, Observer
from shiftbook.projections.keys import key_fault
from shiftbook.projections.knowledge import Knowledge, plan_items
from shiftbook.projections.plan import ITEM_CHARS_MAX, PLAN_ITEMS_MAX
from shiftbook.projections.rules import author_changes
from shiftbook.projections.statements import standing_at
from shiftbook.projections.tallies import carry_due, is_exact
from shiftbook.projections.view import OpenCall
from shiftbook.run.booktools import value_fault
from shiftbook.run.desk import Desk

NOTICED_MAX = 200
"""Entries that one observer may make of one result; the rest is left out with a warning."""

DETAIL_CHARS_MAX = 300


def put_down(desk: Desk, what: What) -> Entry:
    """Stage one statement, plan or change of a tally; the carrying forward of a full tally goes with it."""
    entry = desk.note(what)
    if isinstance(entry.what, TallyChanged):
        carried = carry_due(desk.knowledge.tallies, (entry.what.key, entry.what.place))
        if carried is not None:
            desk.note(carried)
    return entry


def observe(desk: Desk, call: OpenCall, finished: Entry) -> None:
    """Let every observer of the agent see a call that is done, and stage what it notices.

    An observer that raises, or says what it may not, is warned of; nothing that it does ends the run.
    """
    what = finished.what
    if not isinstance(what, ActionFinished) or what.outcome != "done":
        return
    seen = Observed(call.tool, call.call, call.arguments or {}, what.content, finished.position)
    for observer in desk.agent.observers:
        try:
            noticed = list(islice(observer(seen, desk.knowledge), NOTICED_MAX + 1))
        except Exception as error:  # noqa: BLE001 - whatever an observer raises is no fault of the run
            _warn(desk, "observer failed", observer, call, f"it raised {type(error).__name__}: {error}")
            continue
        if len(noticed) > NOTICED_MAX:
            _warn(desk, "notice refused", observer, call, f"it says more than {NOTICED_MAX} things")
        for each in noticed[:NOTICED_MAX]:
            fault = _notice_fault(each)
            if fault is not None:
                _warn(desk, "notice refused", observer, call, fault)
            elif not _is_known(each, desk.knowledge):
                put_down(desk, _as_observed(each, desk.knowledge, finished.position))


def _warn(desk: Desk, name: str, observer: Observer, call: OpenCall, why: str) -> None:
    of = getattr(observer, "__qualname__", type(observer).__qualname__)
    detail = f"Observer {of}, call {call.call} of {call.tool}: {why}"
    desk.note(Warned(name, detail[:DETAIL_CHARS_MAX]))


def _notice_fault(what: object) -> str | None:
    """Why this may not be written down, None when it may."""
    match what:
        case StatementMade():
            fault = value_fault(what.value)
            return (
                key_fault(what.key)
                or (None if what.about is None else key_fault(what.about, "what it is about"))
                or (None if fault is None else f"the value {fault}")
            )
        case TallyChanged():
            if what.place and (fault := key_fault(what.place, "the place")) is not None:
                return fault
            return key_fault(what.key) or (None if is_exact(what.amount) else "the amount is not exact")
        case PlanChanged():
            fits = len(what.items) <= PLAN_ITEMS_MAX and all(
                key_fault(item.id) is None and len(item.text) <= ITEM_CHARS_MAX for item in what.items
            )
            return None if fits else "the plan has too many items, too long ones, or an id that is none"
    return f"an observer may not say a {type(what).__name__}"


def _is_known(what: Noticed, known: Knowledge) -> bool:
    """Whether it is what the run knows already: the same list or the same reading again is no news."""
    match what:
        case PlanChanged():
            return known.plan is not None and plan_items(known) == what.items
        case StatementMade():
            standing = known.statements.standing.get(what.key)
            made = None if standing is None else standing.what
            return isinstance(made, StatementMade) and (made.value, made.sort, made.about) == (
                what.value,
                what.sort,
                what.about,
            )
    return False


def _as_observed(what: Noticed, known: Knowledge, position: int) -> Noticed:
    """With the observer's origin and the result as its source, whatever the observer says of these."""
    if isinstance(what, StatementMade):
        before = standing_at(known.statements, what.key)
        return replace(what, origin="observer", sources=(position,), supersedes=before)
    return replace(what, origin="observer", sources=(position,))


def set_rules(desk: Desk) -> bool:
    """Stage what the agent's author has to say of rules since the last time; whether there was anything."""
    if not desk.agent.rules and not desk.knowledge.rules.by_author:
        return False
    # Compared as they are written: what is redacted is not there to be compared.
    wanted: dict[str, str] = {}
    for key, text in desk.agent.rules.items():
        written = draft(RuleSet(key, text, "author"), desk.agent.redact).what
        assert isinstance(written, RuleSet)
        wanted[written.key] = written.text
    changes = author_changes(desk.knowledge.rules, wanted)
    for change in changes:
        desk.note(change)
    return bool(changes)
