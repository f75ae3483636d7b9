"""Sending one request and taking what comes back, whatever it is for: a turn or a report.

A request waits until its time, passes the account's gate, and is sent once, within the run's time limit for
it. What a provider does against its promise is its fault and takes no run along; a person's stop or cancel
cuts the request short.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from shiftbook.canonical import encode
from shiftbook.ending import leave, tellings
from shiftbook.entries import ModelAnswered, ReportAnswered
from shiftbook.errors import Damaged, NotCanonical, ProviderFault, StoreError
from shiftbook.messages import AssistantPart, Call, Emit, Reply, Request, Text
from shiftbook.payload import from_plain, to_plain
from shiftbook.providers.pace import Pace
from shiftbook.providers.promise import Provider
from shiftbook.run.desk import Desk
from shiftbook.run.step import AskAgain, AskReport
from shiftbook.tools.results import error_text, to_output

TASK_NAME = "model request"
"""Names the task of a model request, so that a stop can cut it short and leave actions alone."""

ERROR_CHARS_MAX = 2_000
"""A provider's error message is kept up to this length."""

Answer = TypeVar("Answer", ModelAnswered, ReportAnswered)


@dataclass(slots=True)
class Part(Generic[Answer]):
    """The part of a reply that has come so far; `whole` once all of it came."""

    text: str = ""
    calls: int = 0
    whole: Answer | None = None


async def attempt(
    desk: Desk, receive: Coroutine[None, None, None], part: Part[Answer]
) -> ProviderFault | None:
    """Do it as a task that a wish may cut short. The fault, None where it came whole or was cut short.

    Cancellation of the caller and faults of the store go through.
    """
    told = tellings()
    work = asyncio.create_task(receive, name=TASK_NAME)
    desk.in_flight.add(work)
    try:
        await work
    except asyncio.CancelledError:
        if tellings() > told:
            leave(work)
            raise
        if desk.leaving and part.whole is None and not part.text:
            return None  # It waited for its next attempt, which is another holder's now.
        if part.whole is None and desk.wish == "go":
            return ProviderFault("the provider cancelled its own request", retryable=True)
    except ProviderFault as fault:
        return fault
    except StoreError:  # ours, and no fault of the provider's
        raise
    except Exception as fault:  # noqa: BLE001 - a provider that breaks its promise takes no run along
        return ProviderFault(error_text(fault), retryable=False)
    finally:
        desk.in_flight.discard(work)
    return None


async def send(
    desk: Desk,
    model: Provider,
    tokens: int,
    due: AskAgain | AskReport,
    request: Callable[[], Awaitable[Request]],
    emit: Emit,
) -> Reply:
    """Send the announced request once, when its time has come; `tokens` are those of its prompt."""
    if due.at_ms is not None and (wait_ms := due.at_ms - desk.clock.now_ms()) > 0:
        desk.pausing = asyncio.current_task()
        try:
            await desk.clock.sleep_ms(min(wait_ms, due.wait_ms))
        finally:
            desk.pausing = None
    pace: Pace | None = getattr(model, "pace", None)
    if pace is not None and await pace.enter(desk.clock, tokens):
        desk.announced = False
    if not desk.announced:
        # Whoever slept through its lease must not pay for a reply that somebody else has by now.
        await desk.book.check_lease()
    desk.announced = False
    made = await request()
    limit_ms = desk.agent.limits.request_ms
    limit = asyncio.timeout(None if limit_ms is None else limit_ms / 1000)
    try:
        async with limit:
            reply = await model.reply(made, emit)
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


async def media_of(desk: Desk) -> Mapping[str, bytes]:
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


def recorded(reply: Reply, name: str, made: Callable[[tuple[AssistantPart, ...]], Answer]) -> Answer:
    """The reply as the entry that `made` makes of its parts; calls in it are named `name` and a number.

    Raises `ProviderFault` for one that no entry can hold: written down, it could never be read again. What
    came is kept in the message.
    """
    try:
        parts: list[AssistantPart] = []
        number = 0
        for part in reply.parts:
            if isinstance(part, Call):
                number += 1
                part = _own_call(part, f"{name}.{number}")
            elif isinstance(part, Text) and not part.text:
                continue
            parts.append(part)
        what = made(tuple(parts))
        plain = to_plain(what)
        # What has a canonical text is read back as it was: that much is the text's own promise.
        encode(plain)
        from_plain(type(what).__name__, plain)
    except Exception as fault:
        came = to_output(reply, payload_bytes_max=ERROR_CHARS_MAX).content
        words = "".join(each.text for each in came if isinstance(each, Text))
        told = f"the provider gave a reply that cannot be recorded ({error_text(fault)}): {words}"
        raise ProviderFault(told, retryable=False) from fault
    return what


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


def failure(desk: Desk, fault: ProviderFault, tried: int) -> tuple[str, int | None]:
    """What is written down of a failed attempt, after `tried` others; when it is tried again."""
    error = str(fault)[:ERROR_CHARS_MAX] or type(fault).__name__
    limits = desk.agent.limits
    wished_ms, allowed_ms = fault.retry_after_ms or 0, limits.wish_ms_max
    if wished_ms > allowed_ms:
        # Nobody would see why the run stands still: better another model, or a person who is told.
        told = f"asks for a wait of {wished_ms / 1000:g} s; wish_ms_max allows {allowed_ms / 1000:g} s"
        return f"{error} ({told})", None
    if fault.retryable and tried < limits.retries:
        return error, desk.clock.now_ms() + back_off_ms(desk, tried, fault.retry_after_ms)
    return error, None


def back_off_ms(desk: Desk, tried: int, wished_ms: int | None) -> int:
    """The wait before the next attempt: the provider's wish, else doubling from the limit's minimum."""
    limits = desk.agent.limits
    doubled: int = min(limits.retry_ms_max, limits.retry_ms_min * 2**tried)
    return max(doubled, wished_ms or 0)
