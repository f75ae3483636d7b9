"""Does a run do what a run does? Each entry against those before it: turns, calls, keys, epochs.

`Conduct` takes the entries in order and says of each what no engine would have written. It keeps the open
turn, the open calls and counters, not the run. A call id of the form `turn.number` cannot come twice, since
turns only go up; ids of another form, which no release gives, are remembered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shiftbook.entries import (
    ActionFinished,
    ActionStarted,
    AgentDeclared,
    Entry,
    EpochOpened,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    ModelInterrupted,
    ReportAnswered,
    ReportAsked,
    ReportFailed,
    RunEnded,
    RunOpened,
    What,
)
from shiftbook.messages import Call
from shiftbook.projections.view import action_key
from shiftbook.tools.contract import BOOK_CONTRACT
from shiftbook.verify.verdict import named

_NOT_OPEN = "is not open: it was answered before, or nobody asked for it."
_OWN_ID = re.compile(r"[1-9][0-9]*\.[1-9][0-9]*")


@dataclass(slots=True)
class _Asked:
    """A call without its answer; `attempt` counts its starts."""

    tool: str
    attempt: int = 0
    is_book: bool = False
    """The engine keeps the tool itself, so that a call is answered and never started."""


@dataclass(slots=True)
class Conduct:
    """What is open in `run` after the entries taken so far."""

    run: str
    position: int = 0
    lease: int = 0
    epoch: int = 0
    turn: int = 0
    failures: int | None = None
    """Failed attempts at the open request; None when no request is open."""
    reporting: int | None = None
    """Failed attempts at the open request for a report; None when none is open."""
    declared: bool = False
    ended: bool = False
    _book: frozenset[str] = frozenset()
    """The book tools of the declared agent."""
    _open: dict[str, _Asked] = field(default_factory=dict)
    _odd: set[str] = field(default_factory=set)

    def take(self, entry: Entry) -> Iterator[str]:
        """What is wrong with the next entry, one sentence each."""
        if entry.epoch < self.lease:
            yield f"Its lease epoch is {entry.epoch}, after one of {self.lease}: lease epochs never fall."
        self.lease = max(self.lease, entry.epoch)
        is_opening = isinstance(entry.what, RunOpened)
        if is_opening != (self.position == 0):
            yield "A run begins with one RunOpened, and with nothing else."
        if self.ended:
            yield "It comes after the RunEnded, after which a run has no entries."
        self.position = entry.position
        rule = _RULES.get(type(entry.what))
        if rule is not None:
            yield from rule(self, entry.what)


def _opened(state: Conduct, what: RunOpened) -> Iterator[str]:
    if what.run != state.run:
        yield f"It opens run {named(what.run)}, but stands in run {named(state.run)}."


def _declared(state: Conduct, what: AgentDeclared) -> Iterator[str]:
    state.declared = True
    state._book = frozenset(
        name for name, contract in what.contracts.items() if contract.startswith(BOOK_CONTRACT)
    )
    yield from ()


def _epoch(state: Conduct, what: EpochOpened) -> Iterator[str]:
    if what.epoch != state.epoch + 1:
        yield f"It opens prompt epoch {what.epoch} after epoch {state.epoch}: they count up by one."
    state.epoch = max(state.epoch, what.epoch)


def _asked(state: Conduct, what: ModelAsked) -> Iterator[str]:
    if not state.declared:
        yield "The model is asked before any AgentDeclared says what the agent is."
    if what.turn != state.turn + 1:
        yield f"It begins turn {what.turn} after turn {state.turn}: turns count up by one."
    if state.reporting is not None:
        yield f"It begins turn {what.turn} while the request for a report has no outcome."
    if state.failures is not None:
        yield f"It begins turn {what.turn} while the request of turn {state.turn} has no reply."
    state.turn, state.failures = max(state.turn, what.turn), 0


def _failed(state: Conduct, what: ModelFailed) -> Iterator[str]:
    yield from _in_turn(state, what.turn, "A failed attempt")
    failures = state.failures or 0
    if what.attempt <= failures:
        yield f"Attempt {what.attempt} at turn {what.turn} fails after attempt {failures}: they count up."
    if state.failures is not None:
        state.failures = max(failures, what.attempt)


def _answered(state: Conduct, what: ModelAnswered) -> Iterator[str]:
    yield from _in_turn(state, what.turn, "A reply")
    state.failures = None
    for part in what.parts:
        if isinstance(part, Call):
            yield from _new_call(state, part)


def _interrupted(state: Conduct, what: ModelInterrupted) -> Iterator[str]:
    yield from _in_turn(state, what.turn, "An interrupted reply")
    state.failures = None


def _report_asked(state: Conduct, what: ReportAsked) -> Iterator[str]:
    if not state.declared:
        yield "A report is asked for before any AgentDeclared says what the agent is."
    if state.failures is not None or state.reporting is not None:
        yield "A report is asked for while another request has no reply."
    if state._open:
        yield f"A report is asked for while call {named(min(state._open))} has no answer."
    state.reporting = 0


def _report_failed(state: Conduct, what: ReportFailed) -> Iterator[str]:
    if state.reporting is None:
        yield "An attempt at a report failed, but none is asked for."
        return
    if what.attempt <= state.reporting:
        yield f"Attempt {what.attempt} at a report fails after attempt {state.reporting}: they count up."
    state.reporting = None if what.retry_at_ms is None else max(state.reporting, what.attempt)


def _report_answered(state: Conduct, what: ReportAnswered) -> Iterator[str]:
    if state.reporting is None:
        yield "A report's reply came, but none is asked for: each request has one reply."
    state.reporting = None


def _in_turn(state: Conduct, turn: int, what: str) -> Iterator[str]:
    if state.failures is None:
        yield f"{what} to turn {turn}, but no request is open: each request has one reply."
    elif turn != state.turn:
        yield f"{what} to turn {turn} while turn {state.turn} is open."


def _new_call(state: Conduct, call: Call) -> Iterator[str]:
    is_own = call.id.startswith(f"{state.turn}.") and _OWN_ID.fullmatch(call.id)
    is_known = call.id in state._open or call.id in state._odd
    if is_known or (not is_own and _OWN_ID.fullmatch(call.id)):
        yield f"Call {named(call.id)} has the id of another call: ids, and so keys, are unique in a run."
    if not is_own:
        state._odd.add(call.id)
    state._open[call.id] = _Asked(call.tool, is_book=call.tool in state._book)


def _started(state: Conduct, what: ActionStarted) -> Iterator[str]:
    call = state._open.get(what.call)
    if what.key != action_key(state.run, what.call):
        yield f"The key of call {named(what.call)} is not the one that is made from run and call."
    if call is None:
        yield f"Call {named(what.call)} is started, but {_NOT_OPEN}"
        return
    if call.is_book:
        yield f"Call {named(what.call)} is of a book tool, which the engine keeps and never starts."
    if what.tool != call.tool:
        yield f"Call {named(what.call)} asks for tool {named(call.tool)}, but {named(what.tool)} is started."
    if what.attempt != call.attempt + 1:
        yield f"Attempt {what.attempt} at call {named(what.call)} after {call.attempt}: they count up by one."
    call.attempt = max(call.attempt, what.attempt)


def _finished(state: Conduct, what: ActionFinished) -> Iterator[str]:
    call = state._open.pop(what.call, None)
    if call is None:
        yield f"Call {named(what.call)} is answered, but {_NOT_OPEN}"
    elif what.outcome == "done" and not call.attempt and not call.is_book:
        yield f"Call {named(what.call)} is done, but was never started."


def _ended(state: Conduct, what: RunEnded) -> Iterator[str]:
    state.ended = True
    yield from ()


_RULES: Mapping[type[What], Callable[[Conduct, Any], Iterator[str]]] = {
    RunOpened: _opened,
    AgentDeclared: _declared,
    EpochOpened: _epoch,
    ModelAsked: _asked,
    ModelFailed: _failed,
    ModelAnswered: _answered,
    ModelInterrupted: _interrupted,
    ActionStarted: _started,
    ActionFinished: _finished,
    RunEnded: _ended,
    ReportAsked: _report_asked,
    ReportFailed: _report_failed,
    ReportAnswered: _report_answered,
}
