"""mini-SWE-agent trajectories: one JSON document with "trajectory_format" and "messages".

A message carries what the model's wire gave back: of chat completions under `extra.response`, of Responses
the message is that response, its items in "output". A reply that could not be understood stands there as the
complaint that the model was sent instead, and was a request like any other. Without a response a reply is
estimated. The last message, of the role "exit", says how the run ended and was not sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from shiftbook.economics.usage_forms import openai_responses
from shiftbook.sessions.chat_steps import ChatSteps
from shiftbook.sessions.draft import Draft
from shiftbook.sessions.estimate import Estimate, told
from shiftbook.sessions.fields import Fields
from shiftbook.sessions.format import Format, Unread
from shiftbook.sessions.loose import inner, objects, stamp_ms, text, whole
from shiftbook.sessions.normal import Session
from shiftbook.sessions.openai_chat import chat_usage
from shiftbook.sessions.requests import RecordedRequests
from shiftbook.sessions.response_items import ItemSteps
from shiftbook.sessions.rows import RowDraft, Seen, recorded
from shiftbook.sessions.source import Place, Record, Source
from shiftbook.sessions.streaming import Faults, records

NAME = "mini-swe-agent"


def recognise(sample: Sequence[Mapping[str, object]]) -> bool:
    """The name that the program gives its form."""
    return any(
        (text(record, "trajectory_format") or "").startswith("mini-swe-agent")
        and isinstance(record.get("messages"), list)
        for record in sample
    )


def requests(source: Source, seen: Seen) -> Iterator[RecordedRequests]:
    """A record is one session."""
    faults = Faults()
    for number, record in enumerate(records(source, faults), start=1):
        draft = RowDraft(NAME, source.path, str(number), faults)
        estimate, answered = Estimate(draft), 0
        for line, message in enumerate(objects(record.value, "messages"), start=1):
            response = _response(message)
            if message.get("role") == "exit":
                continue
            if response is not None:
                answered += 1
                _row(draft, seen, response, line, stamp_ms(inner(message, "extra"), "timestamp"))
            elif message.get("role") == "assistant":
                answered += 1
                estimate.replied(told(message), line)
                continue
            estimate.heard(told(message))
        counted = whole(inner(inner(record.value, "info"), "model_stats"), "api_calls")
        if counted and counted != answered:
            faults.add(0, f"its totals count {counted:,} requests and its messages show {answered:,}")
        yield draft.closed()
        faults = Faults()


def _response(message: Mapping[str, object]) -> Mapping[str, object] | None:
    """The wire's answer with its usage that a message carries, or None."""
    for held in (inner(inner(message, "extra"), "response"), message):
        if inner(held, "usage"):
            return held
    return None


def _row(draft: RowDraft, seen: Seen, response: Mapping[str, object], line: int, at_ms: int | None) -> None:
    request, usage = text(response, "id"), inner(response, "usage")
    if request is not None and seen.again(NAME, request):
        draft.copy()
        return
    count = chat_usage(usage) if "prompt_tokens" in usage else openai_responses(usage)
    draft.row(recorded(count), line, at_ms=at_ms, model=text(response, "model"), request=request)


def sessions(source: Source) -> Iterator[Unread]:
    """A record is one session."""
    for number, record in enumerate(source.records(), start=1):
        yield partial(_read, record, number)


def _read(record: Record, number: int) -> Session:
    place = Place(record.place.path, record.place.line)
    draft = Draft(NAME, place, number)
    chat, items = ChatSteps(draft), ItemSteps(draft)
    for line, message in enumerate(Fields(place, record.value).objects("messages"), start=1):
        at_ms = stamp_ms(inner(message.value, "extra"), "timestamp")
        if isinstance(message.value.get("output"), list) and "role" not in message.value:
            for item in message.objects("output"):
                items.add(item, line, at_ms, message.text("model"))
            items.request_ended()
        elif "role" not in message.value:
            items.add(message, line, at_ms)
        elif message.value["role"] == "exit":
            draft.notice("end of the run", at_ms, line)
        elif message.value["role"] == "user" and _response(message.value) is not None:
            draft.notice("complaint about a reply", at_ms, line)
        else:
            chat.add(message, line, at_ms)
    return draft.session(instructions=chat.instructions)


FORMAT = Format(
    name=NAME,
    title="a mini-SWE-agent trajectory",
    recognise=recognise,
    sessions=sessions,
    requests=requests,
)
