"""OpenTelemetry gen_ai spans as JSON: OTLP documents or lines, or one span a record.

A row is a span of a model call: its operation is one of `_CALLS`, or it has none and carries usage. Spans of
agents, tools and workflows repeat the totals of their children and are no rows; nor is a call's span inside
which another call's span lies. A vendor's SDK and an instrumentation of it may each write a span of one call,
side by side: of the spans of a trace with the same response id and no count that differs, the fullest is the
row and the others are copies. Cached tokens stand inside `input_tokens` (the conventions say "SHOULD be
included"), so do writes. Older names are read as well. A session is a `gen_ai.conversation.id`, else a trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shiftbook.sessions.format import Format
from shiftbook.sessions.loose import inner, objects, stamp_ms, text, whole
from shiftbook.sessions.normal import RecordedUsage
from shiftbook.sessions.requests import RecordedRequests, RequestRow
from shiftbook.sessions.rows import RowDraft, Seen, inclusive, source_of
from shiftbook.sessions.source import Source
from shiftbook.sessions.streaming import Faults, records

NAME = "otel"

_CALLS = ("chat", "text_completion", "generate_content", "completion")
_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens")
_READ = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.input_tokens.cached",
    "gen_ai.usage.input_tokens_cached",
)
_WRITE = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
)
_REASONING = ("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.output_tokens.reasoning")
_CONVERSATION = ("gen_ai.conversation.id", "session.id")
_STARTS = ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")


def recognise(sample: Sequence[Mapping[str, object]]) -> bool:
    """An OTLP document, or a span with attributes of gen_ai."""
    return any(
        isinstance(record.get("resourceSpans"), list)
        or isinstance(record.get("resource_spans"), list)
        or any(key.startswith(("gen_ai.", "llm.")) for key in _attributes(record))
        for record in sample
    )


def requests(source: Source, seen: Seen) -> Iterator[RecordedRequests]:
    """One session a conversation, in the order of first sight."""
    faults = Faults()
    spans = _Spans(source.path, faults)
    for record in records(source, faults):
        for span in _spans(record.value):
            spans.take(span, record.place.line, seen)
    yield from spans.closed()


@dataclass(frozen=True, slots=True)
class _Call:
    """A span of a model call. `session` is the conversation's id or the trace's."""

    session: str
    told: bool
    trace: str
    span: str | None
    row: RequestRow

    @property
    def fullness(self) -> tuple[bool, int]:
        """A span that names its conversation comes first, then the one with more counts."""
        return self.told, sum(count is not None for count in _counts(self.row))

    def twin(self, other: _Call) -> bool:
        """Whether both tell of one call: no count that both have differs."""
        pairs = zip(_counts(self.row), _counts(other.row), strict=True)
        return all(mine is None or theirs is None or mine == theirs for mine, theirs in pairs)


def _counts(row: RequestRow) -> tuple[int | None, ...]:
    usage = row.usage
    return usage.prompt, usage.cache_read, usage.cache_write, usage.output


class _Spans:
    """The calls of a file, by session."""

    def __init__(self, path: str, faults: Faults) -> None:
        self._path, self._faults = path, faults
        self._calls: list[_Call] = []
        self._inside: set[tuple[str, str]] = set()
        self._copies: dict[str, int] = {}

    def take(self, span: Mapping[str, object], line: int, seen: Seen) -> None:
        """One span."""
        attributes = _attributes(span)
        operation = text(attributes, "gen_ai.operation.name") or text(attributes, "llm.request.type")
        counted = any(_first(attributes, keys) is not None for keys in (_INPUT, _OUTPUT))
        if operation not in _CALLS and (operation is not None or not counted):
            return
        context = inner(span, "context")
        trace = text(span, "traceId") or text(span, "trace_id") or text(context, "trace_id") or ""
        own = text(span, "spanId") or text(span, "span_id") or text(context, "span_id")
        parent = text(span, "parentSpanId") or text(span, "parent_span_id") or text(span, "parent_id")
        conversation = next((found for key in _CONVERSATION if (found := text(attributes, key))), None)
        name = conversation or trace
        if parent is not None:
            self._inside.add((trace, parent))
        self._copies.setdefault(name, 0)
        if seen.again(NAME, f"{trace} {own}" if own else f"line {self._path} {line} {len(self._calls)}"):
            self._copies[name] += 1
            return
        usage = usage_of(attributes)
        row = RequestRow(
            branch="",
            request=text(attributes, "gen_ai.response.id"),
            at_ms=next((at for key in _STARTS if (at := stamp_ms(span, key)) is not None), None),
            model=text(attributes, "gen_ai.response.model") or text(attributes, "gen_ai.request.model"),
            kind="main",
            usage=usage,
            source=source_of(usage),
            line=line,
        )
        self._calls.append(_Call(name, conversation is not None, trace, own, row))

    def closed(self) -> Iterator[RecordedRequests]:
        """The sessions; a call around another call is left out, and of twins all but one."""
        faults = self._faults
        drafts: dict[str, RowDraft] = {}
        for name, copies in self._copies.items():
            drafts[name] = RowDraft(NAME, self._path, name, faults)
            for _ in range(copies):
                drafts[name].copy()
            faults = Faults()
        inner_calls = [
            each for each in self._calls if each.span is None or (each.trace, each.span) not in self._inside
        ]
        copied = _copied(inner_calls)
        for number, each in enumerate(inner_calls):
            draft, row = drafts[each.session], each.row
            if number in copied:
                draft.copy()
            else:
                draft.row(row.usage, row.line, at_ms=row.at_ms, model=row.model, request=row.request)
        for draft in drafts.values():
            found = draft.closed()
            # A session of nothing but copies of another's rows is that other session under its trace's id.
            if found.rows or found.broken or not copied:
                yield found
        if not drafts:
            faults.add(0, "holds no span of a model call")
            yield RowDraft(NAME, self._path, "", faults).closed()


def _copied(calls: Sequence[_Call]) -> set[int]:
    """The places of the spans that another span tells as well and no less fully."""
    by_response: dict[tuple[str, str], list[int]] = {}
    for number, each in enumerate(calls):
        if each.row.request is not None:
            by_response.setdefault((each.trace, each.row.request), []).append(number)
    copied: set[int] = set()
    for numbers in by_response.values():
        kept: list[int] = []
        for number in sorted(numbers, key=lambda each: calls[each].fullness, reverse=True):
            if any(calls[number].twin(calls[other]) for other in kept):
                copied.add(number)
            else:
                kept.append(number)
    return copied


def usage_of(attributes: Mapping[str, object]) -> RecordedUsage:
    """The usage attributes in normal form."""
    prompt, read, written = (_first(attributes, keys) for keys in (_INPUT, _READ, _WRITE))
    return inclusive(prompt, read, written, _first(attributes, _OUTPUT), _first(attributes, _REASONING))


def _first(attributes: Mapping[str, object], keys: Sequence[str]) -> int | None:
    return next((found for key in keys if (found := whole(attributes, key)) is not None), None)


def _spans(record: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    nested = False
    for resource in (*objects(record, "resourceSpans"), *objects(record, "resource_spans")):
        nested = True
        for scope in (*objects(resource, "scopeSpans"), *objects(resource, "scope_spans")):
            yield from objects(scope, "spans")
    if not nested:
        yield record


def _attributes(span: Mapping[str, object]) -> Mapping[str, object]:
    """Attributes as one map: a plain map, or OTLP's list of typed values (integers are texts there)."""
    found = span.get("attributes")
    if isinstance(found, dict):
        return found
    plain: dict[str, object] = {}
    for pair in objects(span, "attributes"):
        key, value = text(pair, "key"), inner(pair, "value")
        if key is None:
            continue
        number = value.get("intValue", value.get("int_value"))
        if isinstance(number, str) and number.isascii() and number.isdecimal() and len(number) < 17:
            number = int(number)
        plain[key] = number if number is not None else value.get("stringValue", value.get("string_value"))
    return plain


FORMAT = Format(
    name=NAME,
    title="OpenTelemetry gen_ai spans",
    recognise=recognise,
    requests=requests,
)
