"""What the two vendors' message formats have in common: a list of messages, or a log of requests.

A file may hold the messages of one conversation, one conversation a record ("messages"), or a log with one
request a record: its response, and perhaps the messages sent. A log gives usage, call by call. A bare
conversation has none and no boundaries, so every assistant message counts as a call, estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from shiftbook.messages import Usage
from shiftbook.sessions.estimate import Estimate
from shiftbook.sessions.loose import inner, objects, stamp_ms, text
from shiftbook.sessions.requests import RecordedRequests
from shiftbook.sessions.rows import MISSING, RowDraft, Seen, recorded
from shiftbook.sessions.source import Source
from shiftbook.sessions.streaming import Faults, records

ROLES = ("system", "developer", "user", "assistant", "tool", "function")

_RESPONSES = ("response", "body", "output", "completion", "result")


@dataclass(frozen=True, slots=True)
class Vendor:
    """How one vendor's log is read: what a response is, and every pass that its usage bills."""

    name: str
    is_response: Callable[[Mapping[str, object]], bool]
    passes: Callable[[Mapping[str, object]], tuple[Usage, ...]]


def response_of(vendor: Vendor, record: Mapping[str, object], depth: int = 0) -> Mapping[str, object] | None:
    """The response in a record of a log, or None: the record itself, or one or two levels inside it."""
    if vendor.is_response(record):
        return record
    if depth < 2:
        for key in _RESPONSES:
            found = record.get(key)
            if isinstance(found, dict):
                response = response_of(vendor, found, depth + 1)
                if response is not None:
                    return response
    return None


def messages_of(record: Mapping[str, object]) -> list[Mapping[str, object]] | None:
    """The messages of a record: sent with a request, or a conversation by themselves."""
    for held in (record, inner(record, "request"), inner(record, "body"), inner(record, "kwargs")):
        if isinstance(held.get("messages"), list):
            return list(objects(held, "messages"))
    return None


def requests(vendor: Vendor, source: Source, seen: Seen) -> Iterator[RecordedRequests]:
    """One session for a list of messages or a log; one a record for conversations."""
    faults = Faults()
    log = RowDraft(vendor.name, source.path, "", faults)
    bare = Estimate(log)
    rows = conversations = 0
    for number, record in enumerate(records(source, faults), start=1):
        value, line = record.value, record.place.line
        response = response_of(vendor, value)
        if response is not None:
            rows += 1
            _log_row(vendor, log, seen, value, response, line)
        elif value.get("role") in ROLES:
            rows += 1
            bare.message(value, number, at_ms=when(value))
        else:
            messages = messages_of(value)
            if messages is None:
                faults.add(line, "is neither a message nor a request")
                continue
            conversations += 1
            yield _conversation(vendor, source, value, messages, conversations)
    if rows or not conversations or faults.all():
        yield log.closed()


def when(value: Mapping[str, object]) -> int | None:
    """When a record says that it was made."""
    for key in ("timestamp", "created", "created_at", "start_time", "time"):
        at_ms = stamp_ms(value, key)
        if at_ms is not None:
            return at_ms
    return None


def _log_row(
    vendor: Vendor,
    log: RowDraft,
    seen: Seen,
    record: Mapping[str, object],
    response: Mapping[str, object],
    line: int,
) -> None:
    request = text(response, "id")
    if request is not None and seen.again(vendor.name, request):
        log.copy()
        return
    at_ms = when(record) or when(response)
    model = text(response, "model") or text(record, "model")
    usage = inner(response, "usage")
    *summaries, answer = map(recorded, vendor.passes(usage)) if usage else (MISSING,)
    for summary in summaries:
        log.row(summary, line, at_ms=at_ms, model=model, kind="compaction")
    log.row(answer, line, at_ms=at_ms, model=model, request=request)


def _conversation(
    vendor: Vendor,
    source: Source,
    record: Mapping[str, object],
    messages: list[Mapping[str, object]],
    number: int,
) -> RecordedRequests:
    draft = RowDraft(vendor.name, source.path, text(record, "id") or str(number))
    estimate = Estimate(draft)
    estimate.heard(told_system(record))
    for line, message in enumerate(messages, start=1):
        estimate.message(message, line, at_ms=when(message))
    return draft.closed()


def told_system(record: Mapping[str, object]) -> str:
    """Instructions that stand beside the messages (Anthropic's "system")."""
    system = record.get("system")
    if isinstance(system, str):
        return system
    return "\n".join(text(block, "text") or "" for block in objects(record, "system"))
