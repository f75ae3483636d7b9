"""Doing actions: announce, act, record.

A call is announced (`ActionStarted`) in a commit of its own kind before anything outside can notice it, and
its answer is committed as soon as it is known. Only the last answer of a batch may wait for the commit of
the next request, because nothing is awaited in between.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from shiftbook.codec import Redact, blob_hash
from shiftbook.ending import leave, tellings
from shiftbook.entries import ActionFinished, ActionStarted, Outcome, UserContent, Warned
from shiftbook.messages import Media, Missing, Text
from shiftbook.projections.view import OpenCall, action_key
from shiftbook.run.desk import Desk
from shiftbook.run.noting import observe
from shiftbook.run.step import UNKNOWN_TEXT, Dispatch, Reconcile, Settle
from shiftbook.tools.contract import (
    BadArguments,
    CannotTell,
    Context,
    DidNotHappen,
    Happened,
    OutcomeUnknown,
    Output,
    Reconciled,
    Tool,
    TryAgain,
)
from shiftbook.tools.results import error_message, error_text, to_output, traceback_text

CANCELLED_TEXT = (
    "This call was cancelled while it was running. It may have taken effect in part. "
    "Check before repeating it."
)
TIMEOUT_TEXT = (
    "No result within {seconds} s. "
    + UNKNOWN_TEXT.split(": ", 1)[0]
    + (": it may or may not have taken effect. Do not assume either; check before repeating it.")
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt at a call ended: its answer, or `again` when it is to be tried once more."""

    outcome: Outcome
    content: UserContent
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    traceback: str | None = None
    again: bool = False
    left_open: bool = False
    """No answer is recorded: `step` decides what becomes of a call that was cut off."""
    reconciled: bool = False
    """It is what the tool's `reconcile` function knew of the call."""


async def dispatch(desk: Desk, act: Dispatch) -> None:
    """Start the calls at the same time; returns when each has its answer. The last answer is only staged."""
    for call, attempt in act.calls:
        _announce(desk, desk.view.calls[call], attempt)
    await desk.book.commit()
    if len(act.calls) == 1:
        call, attempt = act.calls[0]
        await _carry_out(desk, desk.view.calls[call], attempt, last=True)
        return
    tasks = [
        asyncio.create_task(_attempt(desk, desk.view.calls[call], attempt)) for call, attempt in act.calls
    ]
    by_task = dict(zip(tasks, act.calls, strict=True))
    try:
        await _gather(desk, by_task)
    finally:
        for task in by_task:
            leave(task)


async def _gather(desk: Desk, by_task: dict[asyncio.Task[Ended], tuple[str, int]]) -> None:
    """Record each answer as it comes; a call that is tried again becomes a new task."""
    waiting = set(by_task)
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in [each for each in by_task if each in done]:
            call, attempt = by_task.pop(task)
            ended = task.result()
            if ended.again:
                _announce(desk, desk.view.calls[call], attempt + 1)
                await desk.book.commit()
                again = asyncio.create_task(_attempt(desk, desk.view.calls[call], attempt + 1))
                by_task[again] = (call, attempt + 1)
                waiting.add(again)
                continue
            _record(desk, call, ended)
            if by_task:
                await desk.book.commit()


async def _carry_out(desk: Desk, call: OpenCall, attempt: int, *, last: bool) -> None:
    ended = await _attempt(desk, call, attempt)
    while ended.again:
        attempt += 1
        _announce(desk, call, attempt)
        await desk.book.commit()
        ended = await _attempt(desk, call, attempt)
    _record(desk, call.call, ended)
    if not last:
        await desk.book.commit()


def _announce(desk: Desk, call: OpenCall, attempt: int) -> None:
    desk.note(ActionStarted(call.call, call.tool, action_key(desk.book.run, call.call), attempt))


def _record(desk: Desk, call: str, ended: Ended) -> None:
    if ended.left_open:
        return
    content, cut = _within(ended.content, desk.agent.limits.result_bytes)
    if cut:
        desk.note(Warned("result cut", f"The result of call {call} was {cut} bytes over its limit."))
    content, blobs = without_secrets(desk.agent.redact, content, ended.blobs)
    seen = desk.view.calls.get(call)
    finished = ActionFinished(call, ended.outcome, content, ended.traceback, ended.reconciled)
    entry = desk.note(finished, blobs=blobs)
    if desk.agent.observers and seen is not None:
        observe(desk, seen, entry)


def without_secrets(
    redact: Redact | None, content: UserContent, blobs: Mapping[str, bytes]
) -> tuple[UserContent, Mapping[str, bytes]]:
    """The content with its blobs redacted as well: they are named by their hash, so their names change."""
    if redact is None or not blobs:
        return content, blobs
    clean = {name: redact.blob(content)[0] for name, content in blobs.items()}
    names = {name: blob_hash(content) for name, content in clean.items()}
    parts = tuple(
        replace(part, blob=names[part.blob], size=len(clean[part.blob]))
        if isinstance(part, Media) and part.blob in names
        else part
        for part in content
    )
    return parts, {names[name]: content for name, content in clean.items()}


def _within(content: UserContent, limit: int) -> tuple[UserContent, int]:
    """The content with its texts cut to `limit` bytes in all, and how many bytes were left out."""
    total = sum(len(part.text) for part in content if isinstance(part, Text))
    if total * 4 <= limit:
        return content, 0
    kept: list[Text | Media | Missing] = []
    left, over = limit, 0
    for part in content:
        if not isinstance(part, Text):
            kept.append(part)
            continue
        encoded = part.text.encode("utf-8", "surrogatepass")
        if len(encoded) > left:
            over += len(encoded) - left
            part = Text(encoded[:left].decode("utf-8", "ignore") + f"\n[{over} bytes left out here]")
        left = max(0, left - len(encoded))
        kept.append(part)
    return tuple(kept), over


def _context(desk: Desk, call: OpenCall, attempt: int) -> Context:
    loop = asyncio.get_running_loop()

    def report(message: str) -> None:
        loop.call_soon_threadsafe(desk.watcher.progress, call.call, message)

    return Context(
        run=desk.book.run,
        call=call.call,
        tool=call.tool,
        key=action_key(desk.book.run, call.call),
        attempt=attempt,
        now_ms=desk.clock.now_ms,
        report=report,
        cancelled=threading.Event(),
    )


async def _attempt(desk: Desk, call: OpenCall, attempt: int) -> Ended:
    """One attempt at a call: whatever the tool does, it comes back as an `Ended`."""
    tool = desk.tools[call.tool]
    context, told = _context(desk, call, attempt), tellings()
    work = asyncio.ensure_future(_timed(tool, call, context))
    desk.in_flight.add(work)
    desk.cancellations.add(context.cancelled)
    try:
        output = await work
    except asyncio.CancelledError:
        if tellings() > told:
            leave(work)
            raise
        return Ended("cancelled" if tool.ends_when_cancelled else "unknown", (Text(CANCELLED_TEXT),))
    except _Expired:
        context.cancelled.set()
        return _timed_out(tool, attempt)
    except TryAgain as fault:
        if attempt < tool.attempts and desk.wish == "go":
            return Ended("failed", (), again=True)
        return _not_known(fault) if isinstance(fault, OutcomeUnknown) else _failed(fault)
    except BadArguments as fault:
        return Ended("failed", (Text(f"{error_message(fault)} Nothing was done."),))
    except OutcomeUnknown as fault:
        return _not_known(fault)
    except Exception as fault:  # noqa: BLE001 - whatever an author's tool raises is its result
        return _failed(fault)
    finally:
        desk.in_flight.discard(work)
        desk.cancellations.discard(context.cancelled)
    return Ended("failed" if output.is_error else "done", output.content, output.blobs)


class _Expired(Exception):
    """Our own time limit, as against a `TimeoutError` that the tool itself raised."""


async def _timed(tool: Tool, call: OpenCall, context: Context) -> Output:
    arguments = call.arguments or {}
    if tool.timeout_ms is None:
        return await tool.run(arguments, context)
    limit = asyncio.timeout(tool.timeout_ms / 1000)
    try:
        async with limit:
            return await tool.run(arguments, context)
    except TimeoutError:
        if limit.expired():
            raise _Expired from None
        raise


async def _timed_question(tool: Tool, call: OpenCall, context: Context) -> Reconciled:
    async with asyncio.timeout(None if tool.timeout_ms is None else tool.timeout_ms / 1000):
        return await tool.ask(call.arguments or {}, context)


def _timed_out(tool: Tool, attempt: int) -> Ended:
    if tool.repeat in ("safe", "keyed") and attempt < tool.attempts:
        return Ended("unknown", (), again=True)
    if tool.repeat == "reconcile":
        return Ended("unknown", (), left_open=True)
    seconds = (tool.timeout_ms or 0) / 1000
    return Ended("unknown", (Text(TIMEOUT_TEXT.format(seconds=seconds)),))


def _not_known(fault: OutcomeUnknown) -> Ended:
    said = error_message(fault)
    return Ended("unknown", (Text(f"{UNKNOWN_TEXT} The tool says: {said}" if said else UNKNOWN_TEXT),))


def _failed(fault: BaseException) -> Ended:
    """A failure as the model is told it: the kind and the message, not the traceback."""
    return Ended("failed", (Text(error_text(fault)),), traceback=traceback_text(fault))


def settle(desk: Desk, act: Settle) -> None:
    """Give a call its answer without running anything."""
    desk.note(ActionFinished(act.call, act.outcome, (Text(act.text),)))


async def reconcile(desk: Desk, act: Reconcile) -> None:
    """Ask the tool whether its cut-off call happened, and record or repeat accordingly."""
    call = desk.view.calls[act.call]
    tool = desk.tools[call.tool]
    await desk.book.commit()
    context, told = _context(desk, call, call.attempt), tellings()
    work = asyncio.ensure_future(_timed_question(tool, call, context))
    desk.in_flight.add(work)
    desk.cancellations.add(context.cancelled)
    try:
        answer = await work
    except asyncio.CancelledError:
        if tellings() > told:
            leave(work)
            raise
        desk.note(ActionFinished(act.call, "unknown", (Text(UNKNOWN_TEXT),)))
        return
    except Exception as fault:  # noqa: BLE001 - an unanswered question is an answer too: nobody knows
        ended = _failed(fault)
        text = f"{UNKNOWN_TEXT} Asking the tool about it failed: {type(fault).__name__}."
        desk.note(ActionFinished(act.call, "unknown", (Text(text),), traceback=ended.traceback))
        return
    finally:
        desk.in_flight.discard(work)
        desk.cancellations.discard(context.cancelled)
    match answer:
        case Happened(result):
            output = to_output(result)
            outcome: Outcome = "failed" if output.is_error else "done"
            _record(desk, act.call, Ended(outcome, output.content, output.blobs, reconciled=True))
        case DidNotHappen():
            if call.attempt >= desk.agent.limits.attempts:
                text = f"This call did not take effect in {call.attempt} attempts and is not tried again."
                desk.note(ActionFinished(act.call, "failed", (Text(text),), reconciled=True))
            else:
                await dispatch(desk, Dispatch(((act.call, call.attempt + 1),)))
        case CannotTell():
            desk.note(ActionFinished(act.call, "unknown", (Text(UNKNOWN_TEXT),)))
