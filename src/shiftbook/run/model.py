"""Asking the model: choose, announce, ask, record.

A turn has one `ModelAsked`, written before the request is sent. Attempts at it that fail are `ModelFailed`
entries; a reply that is cut half-way is `ModelInterrupted` with the part that came, which was paid for and
is shown to the model; a whole reply is `ModelAnswered` and is never asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from shiftbook.canonical import encode
from shiftbook.entries import (
    EpochOpened,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    ModelInterrupted,
    Warned,
    What,
)
from shiftbook.errors import AgentMistake, Damaged, NotCanonical, ProviderFault, StoreError
from shiftbook.journal.promises import Snapshot
from shiftbook.messages import (
    AssistantPart,
    Call,
    CallDelta,
    Emit,
    First,
    Reply,
    ReplyEvent,
    Request,
    Text,
    TextDelta,
)
from shiftbook.payload import from_plain, to_plain
from shiftbook.policies.decide import decide
from shiftbook.projections.knowledge import needed
from shiftbook.prompt.brief import BRIEF_KINDS
from shiftbook.prompt.epoch import Choice, Decided, Full, Growth, Rebuild, WantReport
from shiftbook.prompt.grow import adopt, grow, new_epoch
from shiftbook.providers.pace import Pace
from shiftbook.run.desk import Desk
from shiftbook.run.report import write_report
from shiftbook.run.step import Ask, AskAgain
from shiftbook.tools.results import error_text, to_output

TASK_NAME = "model request"
"""Names the task of a model request, so that a stop can cut it short and leave actions alone."""

REPORTS_MAX = 2
"""Reports that are written for one decision."""

ERROR_CHARS_MAX = 2_000
"""A provider's error message is kept up to this length."""


@dataclass(slots=True)
class Part:
    """The part of a reply that has come so far; `whole` once all of it came."""

    text: str = ""
    calls: int = 0
    whole: ModelAnswered | None = None


async def ask(desk: Desk, act: Ask, snapshot: Snapshot | None = None) -> Full | None:
    """Journal the request of a new turn, unless mail came in or the cap is reached.

    The request itself is sent by `ask_again` right after: an announced request is no different from one
    that a dead process has announced. Returns `Full` when the policy cannot add anything.
    """
    try:
        choice = _decided(desk)
    except Exception:
        # What is staged has happened, the last action's answer among it: a prompt that cannot be made must
        # not take it along.
        await desk.book.commit()
        raise
    if isinstance(choice, Full):
        return choice
    whats: list[What] = [Warned(what, detail) for what, detail in choice.warnings]
    growth: Growth
    if isinstance(choice, Rebuild):
        number = desk.view.prompt_epoch + 1
        whats.append(EpochOpened(number, choice.reason, choice.head, choice.numbers))
        known = [*needed(desk.knowledge, BRIEF_KINDS.values()), *desk.fresh]
        growth = new_epoch(desk.prompt, choice, number, desk.view.declaration, known, desk.gauge)
    else:
        if desk.view.prompt_epoch == 0:
            whats.append(EpochOpened(1, "start"))
        growth = grow(desk.prompt, choice.picks, desk.fresh, desk.gauge, choice.made)
    whats.append(
        ModelAsked(
            turn=act.turn,
            blocks=choice.picks,
            digest=growth.digest,
            tokens=growth.tokens,
            meter=desk.gauge.meter_in_use,
        )
    )
    entries = await desk.book.commit_unless_mail(whats, snapshot=snapshot)
    if entries is None:
        desk.mail = True
        return None
    for entry in entries:
        desk.take(entry)
    adopt(desk.prompt, growth)
    desk.fresh.clear()
    desk.announced = True
    return None


def _decided(desk: Desk) -> Decided:
    """What the policy chooses, once the report that it wants is written. `AgentMistake` if it wants more."""
    for _ in range(REPORTS_MAX + 1):
        choice = _choose(desk)
        if not isinstance(choice, WantReport):
            return choice
        write_report(desk, choice)
    raise AgentMistake(
        f"The policy {desk.policy.name!r} asks for one report after another: it has to use what it is given."
    )


def _choose(desk: Desk) -> Choice:
    changed = desk.prompt.declaration != desk.view.declaration and desk.view.prompt_epoch > 0
    return decide(
        desk.policy,
        desk.prompt,
        desk.fresh,
        desk.gauge,
        cap=desk.agent.cap,
        mark=desk.agent.low_water,
        reason="the agent changed" if changed else None,
        knowledge=desk.knowledge,
        gap_ms=None if desk.asked_ms is None else max(desk.clock.now_ms() - desk.asked_ms, 0),
    )


async def ask_again(desk: Desk, act: AskAgain) -> None:
    """Send the journaled request of the open turn once, and record what came of it."""
    part = Part()

    def emit(event: ReplyEvent) -> None:
        if isinstance(event, TextDelta):
            part.text += event.text
        elif isinstance(event, CallDelta):
            part.calls += 1
        desk.watcher.delta(act.turn, act.attempt, event)

    async def receive() -> None:
        part.whole = _entry_of(desk, act, await _send(desk, act, emit))

    work = asyncio.create_task(receive(), name=TASK_NAME)
    desk.in_flight.add(work)
    try:
        await work
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            work.cancel()
            raise
        if part.whole is not None:  # A stop that came with the last piece cuts nothing off.
            _answered(desk, part.whole)
            return
        if desk.leaving and not part.text:
            return  # It waited for its next attempt, which is another holder's now.
        if desk.wish == "go":
            fault = ProviderFault("the provider cancelled its own request", retryable=True)
            await _failed(desk, act, part, fault)
            return
        if part.text:
            _interrupted(desk, act, part, desk.why or "stopped by a person")
            await desk.book.commit()
        return
    except ProviderFault as fault:
        await _failed(desk, act, part, fault)
        return
    except StoreError:  # ours, and no fault of the provider's
        raise
    except Exception as fault:  # noqa: BLE001 - a provider that breaks its promise takes no run along
        await _failed(desk, act, part, ProviderFault(error_text(fault), retryable=False))
        return
    finally:
        desk.in_flight.discard(work)
    assert part.whole is not None
    _answered(desk, part.whole)


async def _send(desk: Desk, act: AskAgain, emit: Emit) -> Reply:
    if act.at_ms is not None and (wait_ms := act.at_ms - desk.clock.now_ms()) > 0:
        desk.pausing = asyncio.current_task()
        try:
            await desk.clock.sleep_ms(min(wait_ms, act.wait_ms))
        finally:
            desk.pausing = None
    model = desk.agent.model
    pace: Pace | None = getattr(model, "pace", None)
    tokens = desk.prompt.tokens
    if pace is not None and await pace.enter(desk.clock, tokens):
        desk.announced = False
    if not desk.announced:
        # Whoever slept through its lease must not pay for a reply that somebody else has by now.
        await desk.book.check_lease()
    desk.announced = False
    request = request_of(desk, act, await _media(desk))
    limit_ms = desk.agent.limits.request_ms
    limit = asyncio.timeout(None if limit_ms is None else limit_ms / 1000)
    try:
        async with limit:
            reply = await model.reply(request, emit)
    except TimeoutError as fault:
        if not limit.expired():
            raise
        raise ProviderFault(f"no reply within {(limit_ms or 0) / 1000} s", retryable=True) from fault
    except ProviderFault as fault:
        wished_ms = fault.retry_after_ms
        if pace is not None and wished_ms is not None and wished_ms <= desk.agent.limits.wish_ms_max:
            pace.close(desk.clock, wished_ms)
        raise
    if pace is not None:
        pace.settle(tokens, reply.usage)
    return reply


def request_of(desk: Desk, act: AskAgain, blobs: Mapping[str, bytes]) -> Request:
    """The request of the open turn, as the journal has it; `blobs` holds the bytes of its media."""
    return Request(
        run=desk.book.run,
        turn=act.turn,
        attempt=act.attempt,
        model=desk.agent.model.name,
        instructions=desk.agent.told,
        tools=desk.schemas,
        blocks=First(desk.prompt.blocks),
        parameters=desk.agent.parameters,
        marks=(desk.prompt.first_end, desk.prompt.last_end),
        blob=blobs.__getitem__,
    )


async def _media(desk: Desk) -> Mapping[str, bytes]:
    """The bytes of the images and files in the prompt; one that is not there is left out, and told so."""
    wanted = desk.prompt.media
    for name in desk.media.keys() - wanted:
        del desk.media[name]
    for name in sorted(wanted - desk.media.keys()):
        try:
            desk.media[name] = await desk.book.store.blobs.get(desk.book.run, name)
        except Damaged:
            continue
    return desk.media


def _entry_of(desk: Desk, act: AskAgain, reply: Reply) -> ModelAnswered:
    """The reply as the entry that it becomes.

    Raises `ProviderFault` for one that no entry can hold: written down, it could never be read again. What
    came is kept in the message.
    """
    try:
        parts: list[AssistantPart] = []
        number = 0
        for part in reply.parts:
            if isinstance(part, Call):
                number += 1
                part = _own_call(part, f"{act.turn}.{number}")
            elif isinstance(part, Text) and not part.text:
                continue
            parts.append(part)
        model = reply.model if reply.model != desk.agent.model.name else None
        what = ModelAnswered(act.turn, tuple(parts), reply.stop, reply.usage, model, act.attempt)
        plain = to_plain(what)
        encode(
            plain
        )  # What has a canonical text is read back as it was: that much is the text's own promise.
        from_plain(type(what).__name__, plain)
    except Exception as fault:
        came = to_output(reply, payload_bytes_max=ERROR_CHARS_MAX).content
        words = "".join(each.text for each in came if isinstance(each, Text))
        told = f"the provider gave a reply that cannot be recorded ({error_text(fault)}): {words}"
        raise ProviderFault(told, retryable=False) from fault
    return what


def _answered(desk: Desk, what: ModelAnswered) -> None:
    """Stage the reply; it is committed with the announcement of what it asks for, or with the rest."""
    desk.note(what)
    if what.stop == "length":
        desk.note(Warned("reply cut", f"The reply of turn {what.turn} was cut at the output limit."))
    if what.stop == "refusal":
        desk.note(Warned("refusal", f"The model refused in turn {what.turn}."))


def _own_call(call: Call, name: str) -> Call:
    """The call under our id; raw text is kept only where the parse does not give it back.

    The provider's own id is not kept unless it stands in `vendor`: answers are matched by our ids.
    """
    raw = call.raw
    if raw is not None and call.arguments is not None:
        try:
            if encode(dict(call.arguments)) == raw:
                raw = None
        except NotCanonical:
            pass
    return Call(name, call.tool, call.arguments, raw, call.vendor)


async def _failed(desk: Desk, act: AskAgain, part: Part, fault: ProviderFault) -> None:
    error = str(fault)[:ERROR_CHARS_MAX] or type(fault).__name__
    if part.text:
        _interrupted(desk, act, part, error)
    else:
        ask = desk.view.ask
        tried = 0 if ask is None else ask.tried
        retry_at = None
        wished_ms, allowed_ms = fault.retry_after_ms or 0, desk.agent.limits.wish_ms_max
        if wished_ms > allowed_ms:
            # Nobody would see why the run stands still: better another model, or a person who is told.
            error += (
                f" (asks for a wait of {wished_ms / 1000:g} s; wish_ms_max allows {allowed_ms / 1000:g} s)"
            )
        elif fault.retryable and tried < desk.agent.limits.retries:
            retry_at = desk.clock.now_ms() + back_off_ms(desk, tried, fault.retry_after_ms)
        desk.note(ModelFailed(act.turn, act.attempt, error, retry_at, fault.status))
    await desk.book.commit()


def _interrupted(desk: Desk, act: AskAgain, part: Part, reason: str) -> None:
    desk.note(ModelInterrupted(act.turn, (Text(part.text),), reason, act.attempt))


def back_off_ms(desk: Desk, tried: int, wished_ms: int | None) -> int:
    """The wait before the next attempt: the provider's wish, else doubling from the limit's minimum."""
    limits = desk.agent.limits
    doubled: int = min(limits.retry_ms_max, limits.retry_ms_min * 2**tried)
    return max(doubled, wished_ms or 0)
