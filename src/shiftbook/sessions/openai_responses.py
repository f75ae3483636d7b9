"""OpenAI Responses: a list of items, or a log of response objects, one a request.

Cached tokens stand inside `input_tokens`. `previous_response_id` hides the history, so of a log what was said
cannot be had; its usage can. Items have no usage and are estimated: one request a run of items by the model.
Reasoning and compaction items are encrypted and their size is not known: an estimate is low by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from shiftbook.economics.usage_forms import openai_responses
from shiftbook.sessions.draft import Draft
from shiftbook.sessions.estimate import Estimate, told
from shiftbook.sessions.fields import Fields
from shiftbook.sessions.format import Format, Unread
from shiftbook.sessions.loose import inner, stamp_ms, text
from shiftbook.sessions.message_logs import when
from shiftbook.sessions.normal import Session
from shiftbook.sessions.requests import RecordedRequests
from shiftbook.sessions.response_items import COMPACTIONS, ItemSteps, by_model, is_item
from shiftbook.sessions.rows import MISSING, RowDraft, Seen, recorded
from shiftbook.sessions.source import Place, Source
from shiftbook.sessions.streaming import Faults, records

NAME = "openai-responses"


def _response(record: Mapping[str, object]) -> Mapping[str, object] | None:
    for held in (record, inner(record, "response"), inner(inner(record, "response"), "body")):
        if held.get("object") == "response" and isinstance(held.get("output"), list):
            return held
    return None


def recognise(sample: Sequence[Mapping[str, object]]) -> bool:
    """A response object, or an item."""
    return any(_response(record) is not None or is_item(record) for record in sample)


class ItemRows:
    """Estimated rows of items, one a run of items by the model."""

    def __init__(self, draft: RowDraft) -> None:
        self._draft, self._estimate = draft, Estimate(draft)
        self._texts: list[str] = []
        self._at: tuple[int, int | None, str | None] | None = None

    def add(self, item: Mapping[str, object], line: int, at_ms: int | None, model: str | None) -> None:
        """One item."""
        said = "\n".join(filter(None, (told(item), told(item.get("summary")))))
        if by_model(item):
            self._at = self._at or (line, at_ms, model)
            self._texts.append(said)
            return
        self.ended()
        if item.get("type") in COMPACTIONS:
            self._draft.mark("compaction", line, at_ms=at_ms)
        self._estimate.heard(said)

    def ended(self) -> None:
        """The request has ended: its row."""
        if self._at is not None:
            line, at_ms, model = self._at
            self._estimate.replied("\n".join(self._texts), line, at_ms=at_ms, model=model)
        self._at, self._texts = None, []


def requests(source: Source, seen: Seen) -> Iterator[RecordedRequests]:
    """A file is one session."""
    draft = RowDraft(NAME, source.path, "", Faults())
    items = ItemRows(draft)
    for number, record in enumerate(records(source, draft.faults), start=1):
        response = _response(record.value)
        if response is None:
            items.add(record.value, number, when(record.value), None)
            continue
        request = text(response, "id")
        if request is not None and seen.again(NAME, request):
            draft.copy()
            continue
        usage = inner(response, "usage")
        draft.row(
            recorded(openai_responses(usage)) if usage else MISSING,
            record.place.line,
            at_ms=stamp_ms(response, "created_at") or when(record.value),
            model=text(response, "model"),
            request=request,
        )
    items.ended()
    yield draft.closed()


def sessions(source: Source) -> Iterator[Unread]:
    """A list of items is one session."""
    yield partial(_read, source)


def _read(source: Source) -> Session:
    draft = Draft(NAME, Place(source.path, 0))
    steps = ItemSteps(draft)
    for line, record in enumerate(source.records(), start=1):
        if _response(record.value) is not None:
            raise record.place.unreadable(
                "is a response whose history stands elsewhere; a log of them can be measured, not driven"
            )
        steps.add(Fields(record.place, record.value), line)
    return draft.session(instructions=steps.instructions)


FORMAT = Format(
    name=NAME,
    title="OpenAI Responses (items or responses)",
    recognise=recognise,
    sessions=sessions,
    requests=requests,
)
