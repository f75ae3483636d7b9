"""What is next? One pure function over the view of a run; all branching of the engine is here.

There is no recovery mode. A process that resumes a run folds the entries and asks `step` like any other: a
call that was started under an older lease epoch and has no answer was cut off, and its author's repeat
policy says what happens to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shiftbook.entries import Outcome, State
from shiftbook.projections.view import OpenCall, RunView
from shiftbook.run.limits import Limits
from shiftbook.tools.contract import Repeat

UNKNOWN_TEXT = (
    "The outcome of this call is unknown: the process that ran it was cut off before the result was "
    "recorded. It may or may not have taken effect. Do not assume either; check before repeating it."
)
GONE_TEXT = (
    "The outcome of this call is unknown: it was cut off, and its tool has been changed or removed since, so "
    "it was not repeated. It may or may not have taken effect. Do not assume either; check first."
)
UNAVAILABLE = frozenset({401, 402, 403, 404, 410, 429})
"""The status of a fault that is not to be retried and says that this model cannot be had: key, bill,
permission, name, quota. Every other such fault is the request's own, and another model would meet it too."""
RECORDING_ENDS = "the recording ends here"
NEVER_STARTED_TEXT = "This call was not started: {why}. Nothing was done."


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What `step` knows of a tool that can be run now."""

    repeat: Repeat
    contract: str
    is_book: bool = False
    """The engine keeps the tool itself: a call is no action and is not dispatched."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What this process knows beside the entries.

    `epoch` is its lease epoch; `mail` whether inbox items wait; `wish` what the person at the controls wants:
    "go" on, "stop" at the next boundary, or "cancel": answer what is open without doing it, and rest.
    """

    epoch: int
    tools: Mapping[str, ToolFacts]
    mail: bool = False
    wish: Literal["go", "stop", "cancel"] = "go"
    why: str = ""
    conversational: bool = False
    turns: int | None = None
    """How many turns the model can answer in all, where it is a recording; else None."""
    others: int = 0
    """Models that may take over from the one in use."""
    is_paused: bool = False
    """The open request ends with a reply that paused, for its vendor to go on with."""
    unfit: str | None = None
    """Why the last reply is not the output that the agent declares; None when it is, or none is declared."""


@dataclass(frozen=True, slots=True)
class MoveMail:
    """Take the waiting inbox items into the journal."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Choose the next prompt, journal the request, send it."""

    turn: int


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Send the journaled request of `turn` (again), not before `at_ms`.

    `wait_ms` is the wait that was meant when that moment was named: a clock that was set back in the meantime
    must not hold the run up for longer.
    """

    turn: int
    attempt: int
    at_ms: int | None
    wait_ms: int = 0


@dataclass(frozen=True, slots=True)
class AskReport:
    """Send the journaled request for a report (again); otherwise as `AskAgain`."""

    attempt: int
    at_ms: int | None
    wait_ms: int = 0


@dataclass(frozen=True, slots=True)
class DropReport:
    """Close the open request for a report: the run is cancelled."""

    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Start these calls now, at the same time; each with the number of its attempt."""

    calls: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Ask the tool whether its cut-off call happened."""

    call: str


@dataclass(frozen=True, slots=True)
class Settle:
    """Give a call its one answer without running anything."""

    call: str
    outcome: Outcome
    text: str


@dataclass(frozen=True, slots=True)
class Keep:
    """Do what a call of a book tool asks for; its entries and its answer go into one commit."""

    call: str


@dataclass(frozen=True, slots=True)
class Repair:
    """Tell the model why its final reply is not the declared output; it is asked again."""

    why: str


@dataclass(frozen=True, slots=True)
class FallBack:
    """The model in use cannot be had: go on with the next one, in a new epoch."""


@dataclass(frozen=True, slots=True)
class EndPause:
    """The vendor refused to go on with the reply that paused: it is asked anew, in a new epoch."""

    turn: int


@dataclass(frozen=True, slots=True)
class DropAsk:
    """Close the open request: the run is cancelled and its reply is not wanted any more."""

    turn: int
    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """A limit is reached: journal it and rest."""

    limit: str
    value: int
    allowed: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing is left to do for now."""

    state: State
    why: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """The run rests or has ended already; there is nothing to write."""


Act = (
    MoveMail
    | Ask
    | AskAgain
    | AskReport
    | DropReport
    | Dispatch
    | Reconcile
    | Settle
    | Keep
    | Repair
    | FallBack
    | EndPause
    | DropAsk
    | Stop
    | Rest
    | Nothing
)


def step(view: RunView, now: Situation, limits: Limits) -> Act:
    """The next act of the run. Pure: the same view, situation and limits give the same act."""
    if view.ended or (view.state == "cancelled" and not now.mail):
        return Nothing()
    if now.wish == "cancel":
        return _cancel(view, now)
    if now.wish == "stop":
        return Rest("paused", now.why or "stopped") if view.state == "running" else Nothing()
    if view.state in ("finished", "waiting") and not now.mail and not _unfinished(view):
        return Nothing()
    if view.calls:
        return _calls(view, now, limits)
    if view.ask is not None:
        return _open_ask(view, now, limits)
    if view.report is not None and view.report.asked:
        return AskReport(view.report.failures + 1, view.report.retry_at_ms, view.report.wait_ms)
    if now.mail:
        return MoveMail()
    if view.interruptions > limits.interruptions:
        return Rest("failed", f"{view.interruptions} replies in a row were cut off")
    if view.owed and now.turns is not None and view.turn >= now.turns:
        return Nothing() if view.state == "finished" else Rest("finished", RECORDING_ENDS)
    if view.owed:
        return _limit(view, limits) or Ask(view.turn + 1)
    if view.answers == 0 or now.conversational:
        return Rest("waiting", "person")
    if now.unfit is not None:
        if view.repairs >= limits.repairs:
            return Stop("repairs", view.repairs, limits.repairs, now.unfit)
        return Repair(now.unfit)
    return Rest("finished", "")


def _unfinished(view: RunView) -> bool:
    return bool(view.calls) or view.ask is not None or view.owed


def _cancel(view: RunView, now: Situation) -> Act:
    why = now.why or "the run was cancelled"
    for call in view.calls.values():
        if call.attempt:
            return Settle(call.call, "unknown", UNKNOWN_TEXT)
        return Settle(call.call, "cancelled", NEVER_STARTED_TEXT.format(why=why))
    if view.ask is not None:
        return DropAsk(view.turn, why)
    if view.report is not None and view.report.asked:
        return DropReport(view.report.failures + 1, why)
    return Rest("cancelled", why)


def _calls(view: RunView, now: Situation, limits: Limits) -> Act:
    ready: list[tuple[str, int]] = []
    for call in view.calls.values():
        facts = now.tools.get(call.tool)
        act = _cut_off(call, facts, limits) if call.attempt else _new(call, facts)
        if act is not None:
            return act
        if facts is not None and facts.is_book:
            return Keep(call.call)
        ready.append((call.call, call.attempt + 1))
    return Dispatch(tuple(ready[: limits.parallel]))


def _new(call: OpenCall, facts: ToolFacts | None) -> Act | None:
    """What keeps a call from being started, None if nothing does."""
    if facts is None:
        return Settle(call.call, "failed", NEVER_STARTED_TEXT.format(why=f"there is no tool {call.tool!r}"))
    if facts.contract != call.contract:
        why = f"the tool {call.tool!r} has changed since it was asked for"
        return Settle(call.call, "cancelled", NEVER_STARTED_TEXT.format(why=why))
    if call.withheld:
        why = "its arguments held text that this run redacts"
        return Settle(call.call, "failed", NEVER_STARTED_TEXT.format(why=why))
    if call.arguments is None:
        why = "its arguments are not a JSON object; write the call again with valid arguments"
        return Settle(call.call, "failed", NEVER_STARTED_TEXT.format(why=why))
    return None


def _cut_off(call: OpenCall, facts: ToolFacts | None, limits: Limits) -> Act | None:
    """What is done with a call whose outcome nobody recorded, None if it is simply started again."""
    if facts is None or facts.contract != call.contract:
        return Settle(call.call, "unknown", GONE_TEXT)
    if facts.repeat == "reconcile":
        return Reconcile(call.call)
    if facts.repeat == "ask" or call.attempt >= limits.attempts:
        return Settle(call.call, "unknown", UNKNOWN_TEXT)
    return None


def _open_ask(view: RunView, now: Situation, limits: Limits) -> Act:
    ask = view.ask
    assert ask is not None
    if ask.gave_up or ask.tried > limits.retries:
        if now.others and (ask.tried > limits.retries or ask.status in UNAVAILABLE):
            return FallBack()
        if now.is_paused and ask.gave_up and ask.status not in UNAVAILABLE:
            return EndPause(ask.turn)
        return Rest("failed", f"turn {ask.turn}: the model could not be asked")
    return AskAgain(ask.turn, ask.failures + 1, ask.retry_at_ms, ask.wait_ms)


def _limit(view: RunView, limits: Limits) -> Stop | None:
    spent = (view.used.prompt or 0) + (view.used.output or 0)
    lived = view.at_ms - view.opened_ms
    for name, value, allowed in (
        ("turns", view.turn, limits.turns),
        ("tokens", spent, limits.tokens),
        ("wall_ms", lived, limits.wall_ms),
    ):
        if allowed is not None and value >= allowed:
            return Stop(name, value, allowed)
    return None
