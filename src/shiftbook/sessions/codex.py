"""Codex rollouts: JSONL lines of session_meta, turn_context, response_item, event_msg and compacted.

What was said is told twice, as response_item and as event_msg: the items count. Usage is told by
token_count events, in newer files by a token_usage_record before each of them as well, under the response's
id. `last_token_usage` is one request's; a file that has only the running total gives differences. The same
total told again is no request, and an event without `info` tells of rate limits only. Cached tokens, read and
written, stand inside `input_tokens`. A file without any usage is estimated; a turn that was interrupted after
the model had spoken, before its usage came, is a request whose usage is missing.

The request that wrote a summary is the one whose words end the `compacted` line or, in older files, the one
before it of which no words are told. A sub-agent has a file of its own, which says so. A fork begins with a
copy of the old history: a response id that the walk has met is a copy and, in a file that says it is a fork,
an event whose totals it has met. Texts that Codex puts in the user's place (environment, instruction files)
are no person's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from shiftbook.economics.usage_forms import openai_responses
from shiftbook.sessions.draft import Draft
from shiftbook.sessions.estimate import told
from shiftbook.sessions.fields import Fields
from shiftbook.sessions.format import Format, Unread
from shiftbook.sessions.loose import inner, stamp_ms, text, whole
from shiftbook.sessions.normal import RecordedUsage, Session
from shiftbook.sessions.openai_responses import ItemRows
from shiftbook.sessions.requests import RecordedRequests, UsageSource
from shiftbook.sessions.response_items import ItemSteps, by_model
from shiftbook.sessions.rows import MISSING, RowDraft, Seen, recorded
from shiftbook.sessions.source import Place, Source, label
from shiftbook.sessions.streaming import Faults, records

NAME = "codex"

_KINDS = ("response_item", "event_msg", "turn_context", "compacted")
_COUNTS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)
_ECHOES: Mapping[str, str] = {
    "<environment_context>": "environment context",
    "<user_instructions>": "instruction file",
    "# AGENTS.md instructions": "instruction file",
    "<turn_aborted>": "interrupt",
    "<user_shell_command>": "command echo",
    "<skill>": "skill text",
    "<subagent_notification>": "task notification",
}


def recognise(sample: Sequence[Mapping[str, object]]) -> bool:
    """A line with an object "payload" under one of Codex's types."""
    return any(
        isinstance(record.get("payload"), dict)
        and (record.get("type") == "session_meta" or (record.get("type") in _KINDS and "timestamp" in record))
        for record in sample
    )


def usage_of(counts: Mapping[str, object]) -> RecordedUsage:
    """A token usage of Codex in normal form."""
    prompt = whole(counts, "input_tokens")
    payload = {
        "input_tokens": prompt,
        "output_tokens": counts.get("output_tokens"),
        "input_tokens_details": {
            "cached_tokens": counts.get("cached_input_tokens"),
            "cache_write_tokens": counts.get("cache_write_input_tokens"),
        },
        "output_tokens_details": {"reasoning_tokens": counts.get("reasoning_output_tokens")},
    }
    return recorded(openai_responses(payload), undivided=prompt)


class _Rollout:
    """One file while it is read."""

    def __init__(self, source: Source, seen: Seen) -> None:
        self.draft = RowDraft(NAME, source.path, "", Faults())
        self._estimated = RowDraft(NAME, source.path, "", self.draft.faults)
        self._items = ItemRows(self._estimated)
        self._seen = seen
        self._model: str | None = None
        self._total: tuple[int | None, ...] | None = None
        self._told: tuple[int | None, ...] | None = None
        self._words = ""
        self._unpaid = False
        self._silent = False
        self._metas = 0
        self._fork = False
        self._branch = ""
        self._counted = False

    def take(self, record: Mapping[str, object], line: int) -> None:
        """One line."""
        kind, payload, at_ms = record.get("type"), inner(record, "payload"), stamp_ms(record, "timestamp")
        if kind == "session_meta":
            self._opened(payload)
        elif kind == "turn_context":
            self._model = text(payload, "model") or self._model
        elif kind == "compacted":
            self._compacted(payload, line, at_ms)
        elif kind == "response_item":
            self._items.add(payload, line, at_ms, self._model)
            if by_model(payload):
                self._words = told(payload)
                self._unpaid = True
        elif kind == "token_usage_record":
            self._items.ended()
            self._recorded(payload, line, at_ms)
        elif kind == "event_msg" and payload.get("type") == "token_count":
            self._items.ended()
            self._count(inner(payload, "info"), line, at_ms)
        elif kind == "event_msg" and payload.get("type") == "turn_aborted" and self._unpaid:
            self._row(MISSING, line, at_ms)

    def _opened(self, payload: Mapping[str, object]) -> None:
        self._metas += 1
        self._fork = self._fork or self._metas > 1 or text(payload, "forked_from_id") is not None
        name = text(payload, "id") or ""
        self.draft.name = self.draft.name or name
        if self._metas == 1 and inner(payload, "source").get("subagent") is not None:
            self._branch = name

    def _compacted(self, payload: Mapping[str, object], line: int, at_ms: int | None) -> None:
        summary = (text(payload, "message") or "").rstrip()
        written = bool(self._words.strip()) and summary.endswith(self._words.strip()) and not self._unpaid
        if written or self._silent:
            self.draft.was("compaction")
        self._silent = False
        self.draft.mark("compaction", line, at_ms=at_ms, branch=self._branch)

    def _recorded(self, payload: Mapping[str, object], line: int, at_ms: int | None) -> None:
        usage, response = inner(payload, "usage"), text(payload, "response_id")
        self._told = tuple(whole(usage, key) for key in _COUNTS)
        if response is not None and self._seen.again(NAME, response):
            self.draft.copy()
            return
        self._row(usage_of(usage), line, at_ms, request=response)

    def _count(self, info: Mapping[str, object], line: int, at_ms: int | None) -> None:
        last, total = inner(info, "last_token_usage"), inner(info, "total_token_usage")
        if not last and not total:
            return
        counts = tuple(whole(total, key) for key in _COUNTS) if total else None
        if counts is not None and counts == self._total:
            return
        before, self._total = self._total, counts if counts is not None else self._total
        recorded_so, self._told = self._told, None
        if recorded_so is not None and recorded_so == tuple(whole(last, key) for key in _COUNTS):
            return
        how: UsageSource = "reported"
        if not last:
            last, how = _difference(counts or (), before), "differenced"
        if counts is not None and self._seen.again(NAME, f"{counts} {sorted(last.items())}") and self._fork:
            self.draft.copy()
            return
        self._row(usage_of(last), line, at_ms, source=how)

    def _row(
        self,
        usage: RecordedUsage,
        line: int,
        at_ms: int | None,
        *,
        request: str | None = None,
        source: UsageSource | None = None,
    ) -> None:
        if usage != MISSING and not (usage.undivided or usage.output):
            return
        self._silent = not self._unpaid
        self._unpaid = False
        self._counted = self._counted or usage != MISSING
        self.draft.row(
            usage,
            line,
            at_ms=at_ms,
            model=self._model,
            request=request,
            branch=self._branch,
            kind="subagent" if self._branch else "main",
            source=source,
        )

    def closed(self) -> RecordedRequests:
        """The rows by usage; where there is no usage at all, the estimated ones."""
        self._items.ended()
        if self._counted:
            return self.draft.closed()
        self._estimated.name = self.draft.name
        return self._estimated.closed()


def _difference(now: tuple[int | None, ...], before: tuple[int | None, ...] | None) -> dict[str, object]:
    """What was added since; a counter that fell has begun anew."""
    old = before or (0,) * len(now)
    fell = any(a is not None and b is not None and a < b for a, b in zip(now, old, strict=True))
    return {
        key: a if fell or a is None else None if b is None else a - b
        for key, a, b in zip(_COUNTS, now, old, strict=True)
    }


def requests(source: Source, seen: Seen) -> Iterator[RecordedRequests]:
    """A file is one session."""
    rollout = _Rollout(source, seen)
    for record in records(source, rollout.draft.faults):
        rollout.take(record.value, record.place.line)
    yield rollout.closed()


def sessions(source: Source) -> Iterator[Unread]:
    """A file is one session."""
    yield partial(_read, source)


def _read(source: Source) -> Session:
    draft = Draft(NAME, Place(source.path, 0))
    steps = ItemSteps(draft)
    model: str | None = None
    base: str | None = None
    for record in source.records():
        fields, line = Fields(record.place, record.value), record.place.line
        kind, payload = fields.need_text("type"), fields.inner("payload")
        at_ms = fields.stamp_ms("timestamp")
        if payload is None:
            draft.name(f"{label(kind)} line without payload")
        elif kind == "session_meta":
            given = inner(payload.value, "base_instructions")
            base = base or text(given, "text") or text(payload.value, "instructions")
        elif kind == "turn_context":
            model = payload.text("model") or model
        elif kind == "compacted":
            draft.notice("compaction summary", at_ms, line)
            if summary := payload.text("message"):
                draft.compaction(summary, at_ms, line)
        elif kind == "response_item":
            steps.add(payload, line, at_ms, model, _no_person(payload.value))
        elif kind == "event_msg" and payload.value.get("type") == "token_count":
            steps.request_ended()
        else:
            what = text(payload.value, "type")
            draft.name(f"{label(kind)} line" + (f": {label(what)}" if what else ""))
    return draft.session(instructions=steps.instructions or base)


def _no_person(item: Mapping[str, object]) -> str | None:
    """What a user message is that Codex wrote itself."""
    content = item.get("content")
    first = (
        next((part for part in content if isinstance(part, dict)), {}) if isinstance(content, list) else {}
    )
    words = text(first, "text") or ""
    return next((what for opening, what in _ECHOES.items() if words.lstrip().startswith(opening)), None)


FORMAT = Format(
    name=NAME,
    title="a Codex rollout",
    recognise=recognise,
    sessions=sessions,
    requests=requests,
)
