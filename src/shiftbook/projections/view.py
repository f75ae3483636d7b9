"""Where a run stands: what is open, what is owed, what was used. The one projection that `step` decides on.

Everything in it follows from the entries; it can be dropped and folded again, and folding in pieces gives
the same value as folding at once. A call is open from the reply that asked for it until its one answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from shiftbook.entries import (
    ActionFinished,
    ActionStarted,
    AgentDeclared,
    Entry,
    EpochOpened,
    LimitReached,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    ModelInterrupted,
    PersonSaid,
    ReportAnswered,
    ReportAsked,
    ReportFailed,
    ReportWritten,
    RuleSet,
    RunEnded,
    RunOpened,
    RunRested,
    State,
    What,
)
from shiftbook.messages import Call, Json, Usage

VIEW_VERSION = 4
"""Raised when the fold changes its meaning: snapshots of other versions are ignored."""


@dataclass(slots=True)
class OpenCall:
    """A call without its answer yet. `attempt` is 0 until it was started; `epoch` is the starter's lease."""

    call: str
    tool: str
    arguments: Mapping[str, Json] | None
    contract: str
    withheld: bool = False
    """Text of the reply was redacted before it was written, so the arguments may not be what was meant."""
    attempt: int = 0
    key: str = ""
    epoch: int = 0
    started_ms: int = 0


@dataclass(slots=True)
class OpenAsk:
    """A model request without its reply yet; `failures` are the attempts so far."""

    turn: int
    failures: int = 0
    retry_at_ms: int | None = None
    gave_up: bool = False
    tried: int = 0
    """Failures since the run last rested: what the retry limit counts."""
    wait_ms: int = 0
    """How long the wait before the next attempt was meant to be when it was decided."""
    status: int | None = None
    """The HTTP status of the last failure, where it had one."""


@dataclass(slots=True)
class OpenReport:
    """What was asked of a model for a report that is not written yet.

    `asked` is the position of the request without an outcome, 0 when there is none; `done` are those before
    it, each with the position of its reply, 0 where there is none. The rest is as in `OpenAsk`.
    """

    asked: int = 0
    done: list[list[int]] = field(default_factory=list)
    failures: int = 0
    tried: int = 0
    retry_at_ms: int | None = None
    wait_ms: int = 0


@dataclass(slots=True)
class RunView:
    """A run's standing after the entry at `position`."""

    run: str = ""
    position: int = 0
    at_ms: int = 0
    opened_ms: int = 0
    agent: str = ""
    declaration: str = ""
    model: str = ""
    policy: str = ""
    cap: int = 0
    contracts: Mapping[str, str] = field(default_factory=dict)
    state: State = "running"
    why: str = ""
    ended: bool = False
    turn: int = 0
    prompt_epoch: int = 0
    ask: OpenAsk | None = None
    report: OpenReport | None = None
    calls: dict[str, OpenCall] = field(default_factory=dict)
    owed: bool = False
    """Something was said that the model has not answered yet."""
    repairs: int = 0
    """Times in a row that the author's word was that a reply does not fit; a message begins a new count."""
    interruptions: int = 0
    """Replies cut off one after another, without a whole one or a rest between."""
    answers: int = 0
    answered_at: int = 0
    """Position of the last whole reply, 0 before the first."""
    started: int = 0
    finished: int = 0
    cut_off: int = 0
    """Attempts whose outcome nobody recorded: they were repeated, reconciled or told as unknown."""
    repeated: int = 0
    """Starts of a call that was finished already. Always 0, or the journal is at fault."""
    used: Usage = Usage()


def fold(view: RunView, entry: Entry) -> None:
    """Take one entry into the view."""
    view.position = entry.position
    view.at_ms = entry.at_ms
    _FOLDS.get(type(entry.what), _wakes)(view, entry, entry.what)


def fold_all(entries: Iterable[Entry], view: RunView | None = None) -> RunView:
    """The view after all these entries."""
    view = view or RunView()
    for entry in entries:
        fold(view, entry)
    return view


def action_key(run: str, call: str) -> str:
    """The idempotency key of a call: made from run and call, never from arguments."""
    return f"{run}-{call}"


def add_usage(one: Usage, other: Usage) -> Usage:
    """The sum, where what was not reported on both sides stays "not reported"."""
    return Usage(
        _sum(one.uncached, other.uncached),
        _sum(one.cache_read, other.cache_read),
        _sum(one.cache_write_5m, other.cache_write_5m),
        _sum(one.cache_write_1h, other.cache_write_1h),
        _sum(one.output, other.output),
        _sum(one.reasoning, other.reasoning),
    )


def _sum(one: int | None, other: int | None) -> int | None:
    if one is None:
        return other
    return one if other is None else one + other


def _wakes(view: RunView, entry: Entry, what: Any) -> None:
    """Any ordinary entry after a rest means that the run was taken up again."""
    if not view.ended:
        view.state, view.why = "running", ""


def _opened(view: RunView, entry: Entry, what: RunOpened) -> None:
    view.run, view.agent, view.opened_ms = what.run, what.agent, entry.at_ms


def _declared(view: RunView, entry: Entry, what: AgentDeclared) -> None:
    _wakes(view, entry, what)
    view.agent, view.declaration = what.agent, what.declaration
    view.model, view.policy = what.model, what.policy
    view.cap, view.contracts = what.cap, what.contracts
    view.interruptions = 0  # Replies of another agent say nothing of this one.


def _said(view: RunView, entry: Entry, what: PersonSaid | RuleSet) -> None:
    _wakes(view, entry, what)
    if isinstance(what, RuleSet):
        # A person who sets a rule is owed a word on it; an author's rules come with the agent.
        view.owed = view.owed or what.author == "person"
        return
    view.owed = True
    if isinstance(what, PersonSaid):
        view.repairs = view.repairs + 1 if what.author == "author" and what.item is None else 0


def _epoch(view: RunView, entry: Entry, what: EpochOpened) -> None:
    _wakes(view, entry, what)
    view.prompt_epoch, view.report = what.epoch, None


def _asked(view: RunView, entry: Entry, what: ModelAsked) -> None:
    _wakes(view, entry, what)
    view.turn, view.ask, view.owed = what.turn, OpenAsk(what.turn), False


def _failed(view: RunView, entry: Entry, what: ModelFailed) -> None:
    _wakes(view, entry, what)
    ask = view.ask
    if ask is None or ask.turn != what.turn:
        return
    ask.failures = max(ask.failures + 1, what.attempt)
    ask.tried += 1
    ask.retry_at_ms = what.retry_at_ms
    ask.wait_ms = max(0, (what.retry_at_ms or 0) - entry.at_ms)
    ask.gave_up = what.retry_at_ms is None
    ask.status = what.status


def _answered(view: RunView, entry: Entry, what: ModelAnswered) -> None:
    _wakes(view, entry, what)
    view.ask, view.interruptions = None, 0
    view.answers += 1
    view.answered_at = entry.position
    view.used = add_usage(view.used, what.usage)
    view.calls = {
        part.id: OpenCall(
            part.id,
            part.tool,
            part.arguments,
            view.contracts.get(part.tool, ""),
            withheld=bool(entry.redacted) and "[redacted: " in f"{part.arguments}{part.raw}",
        )
        for part in what.parts
        if isinstance(part, Call)
    }
    view.owed = bool(view.calls) or what.stop == "pause"


def _report_asked(view: RunView, entry: Entry, what: ReportAsked) -> None:
    _wakes(view, entry, what)
    before = [] if view.report is None else view.report.done
    view.report = OpenReport(entry.position, before)


def _report_failed(view: RunView, entry: Entry, what: ReportFailed) -> None:
    _wakes(view, entry, what)
    report = view.report
    if report is None or not report.asked:
        return
    report.failures = max(report.failures + 1, what.attempt)
    report.tried += 1
    report.retry_at_ms = what.retry_at_ms
    report.wait_ms = max(0, (what.retry_at_ms or 0) - entry.at_ms)
    if what.retry_at_ms is None:
        report.done.append([report.asked, 0])
        report.asked = 0


def _report_answered(view: RunView, entry: Entry, what: ReportAnswered) -> None:
    _wakes(view, entry, what)
    view.used = add_usage(view.used, what.usage)
    if view.report is not None and view.report.asked:
        view.report.done.append([view.report.asked, entry.position])
        view.report.asked = 0


def _report_written(view: RunView, entry: Entry, what: ReportWritten) -> None:
    _wakes(view, entry, what)
    view.report = None


def _interrupted(view: RunView, entry: Entry, what: ModelInterrupted) -> None:
    _wakes(view, entry, what)
    view.ask, view.owed = None, True
    view.interruptions += 1


def _started(view: RunView, entry: Entry, what: ActionStarted) -> None:
    _wakes(view, entry, what)
    view.started += 1
    call = view.calls.get(what.call)
    if call is None:
        view.repeated += 1
        return
    if call.attempt:
        view.cut_off += 1
    call.attempt, call.key = what.attempt, what.key
    call.epoch, call.started_ms = entry.epoch, entry.at_ms


def _finished(view: RunView, entry: Entry, what: ActionFinished) -> None:
    _wakes(view, entry, what)
    call = view.calls.pop(what.call, None)
    view.finished += 1
    if call is not None and call.attempt and (what.outcome == "unknown" or what.reconciled):
        view.cut_off += 1


def _limited(view: RunView, entry: Entry, what: LimitReached) -> None:
    _wakes(view, entry, what)


def _rested(view: RunView, entry: Entry, what: RunRested) -> None:
    view.state, view.why, view.interruptions = what.state, what.why, 0
    if view.ask is not None:
        view.ask.tried, view.ask.gave_up, view.ask.retry_at_ms = 0, False, None
    if view.report is not None:
        view.report.tried, view.report.retry_at_ms = 0, None


def _ended(view: RunView, entry: Entry, what: RunEnded) -> None:
    view.state, view.why, view.ended = what.state, what.why, True


_FOLDS: Mapping[type[What], Any] = {
    RunOpened: _opened,
    AgentDeclared: _declared,
    PersonSaid: _said,
    RuleSet: _said,
    EpochOpened: _epoch,
    ModelAsked: _asked,
    ModelFailed: _failed,
    ModelAnswered: _answered,
    ModelInterrupted: _interrupted,
    ActionStarted: _started,
    ActionFinished: _finished,
    LimitReached: _limited,
    ReportAsked: _report_asked,
    ReportFailed: _report_failed,
    ReportAnswered: _report_answered,
    ReportWritten: _report_written,
    RunRested: _rested,
    RunEnded: _ended,
}


def view_to_plain(view: RunView) -> dict[str, Json]:
    """The view as plain JSON, for a snapshot."""
    return asdict(view)


def view_from_plain(plain: Mapping[str, Json]) -> RunView:
    """The reverse of `view_to_plain`."""
    values = dict(plain)
    values["ask"] = None if values["ask"] is None else OpenAsk(**values["ask"])
    values["report"] = None if values["report"] is None else OpenReport(**values["report"])
    values["calls"] = {name: OpenCall(**call) for name, call in values["calls"].items()}
    values["used"] = Usage(**values["used"])
    return RunView(**values)
