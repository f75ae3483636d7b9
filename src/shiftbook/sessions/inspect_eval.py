"""Inspect logs: an `.eval` archive or its JSON twin, each sample a session, each model event a request.

Cached tokens stand outside `input_tokens`. An answer out of Inspect's own cache of answers (`cache: "read"`)
was no request. A role (a grader's, say) is a branch, and so is what a scorer asks without one; a span of an
agent inside a tool or another agent is a sub-agent. Condensed logs put messages into a pool: usage stays in
the event, and only usage is read. A log of the header alone has no samples and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shiftbook.sessions.archive import document, opened
from shiftbook.sessions.format import Format
from shiftbook.sessions.loose import inner, objects, stamp_ms, text, whole
from shiftbook.sessions.normal import RecordedUsage
from shiftbook.sessions.requests import Kind, RecordedRequests
from shiftbook.sessions.rows import MISSING, RowDraft, Seen
from shiftbook.sessions.source import Source
from shiftbook.sessions.streaming import Faults, records

NAME = "inspect"

_DEPTH_MAX = 100


def recognise_archive(sample: Sequence[Mapping[str, object]]) -> bool:
    """The members that Inspect writes."""
    return any("header.json" in names or "_journal/start.json" in names for names in sample)


def recognise_document(sample: Sequence[Mapping[str, object]]) -> bool:
    """A log with its evaluation, plan and version."""
    return any(
        isinstance(record.get("eval"), dict) and "version" in record and "status" in record
        for record in sample
    )


def usage_of(usage: Mapping[str, object]) -> RecordedUsage:
    """Inspect's ModelUsage; the counts that a provider does not give are absent and stay so."""
    uncached, output = whole(usage, "input_tokens"), whole(usage, "output_tokens")
    read, written = whole(usage, "input_tokens_cache_read"), whole(usage, "input_tokens_cache_write")
    undivided = None if uncached is None else uncached + (read or 0) + (written or 0)
    return RecordedUsage(
        uncached=uncached,
        cache_read=read,
        cache_write=written,
        output=output,
        reasoning=whole(usage, "reasoning_tokens"),
        undivided=undivided,
    )


def from_archive(source: Source, seen: Seen) -> Iterator[RecordedRequests]:
    """Each sample, one in memory."""
    faults, told = Faults(), False
    with opened(source) as archive:
        names = sorted(
            name for name in archive.namelist() if name.startswith("samples/") and name.endswith(".json")
        )
        for name in names:
            sample = document(archive, name, faults)
            if sample is not None:
                yield _sample(source, sample, faults)
                told, faults = True, Faults()
    if not told and not faults.all():
        faults.add(0, "holds no samples: it is a header, or was cut off before the first sample was written")
    if faults.all():
        yield RowDraft(NAME, source.path, "", faults).closed()


def from_document(source: Source, seen: Seen) -> Iterator[RecordedRequests]:
    """Each sample of a JSON log."""
    faults, told = Faults(), False
    for record in records(source, faults):
        for sample in objects(record.value, "samples"):
            yield _sample(source, sample, faults)
            told, faults = True, Faults()
    if not told:
        faults.add(0, "holds no samples: it is a header, or was cut off before the first sample was written")
        yield RowDraft(NAME, source.path, "", faults).closed()


class _Spans:
    """The spans of a sample, to tell whose request an event inside one is."""

    def __init__(self) -> None:
        self._begun: dict[str, tuple[str, str, str | None]] = {}

    def begin(self, event: Mapping[str, object]) -> None:
        """A span's beginning."""
        own = text(event, "id")
        if own is not None:
            kind, name = text(event, "type") or "", text(event, "name") or ""
            self._begun.setdefault(own, (kind, name, text(event, "parent_id")))

    def whose(self, span: str | None) -> tuple[str, Kind]:
        """The branch and the kind of a request in that span: by the agent next to it, or by the scorer."""
        agent: str | None = None
        for _ in range(_DEPTH_MAX):
            if span is None or span not in self._begun:
                break
            kind, name, parent = self._begun[span]
            if kind == "scorer":
                return name or "scorer", "other"
            if agent is not None and kind in ("tool", "agent"):
                return agent, "subagent"
            if agent is None and kind == "agent":
                agent = f"{name} {span}"
            span = parent
        return "", "main"


def _sample(source: Source, sample: Mapping[str, object], faults: Faults) -> RecordedRequests:
    name = f"{sample.get('id')}"[:200] + f" epoch {sample.get('epoch')}"[:40]
    draft, spans = RowDraft(NAME, source.path, name, faults), _Spans()
    for line, event in enumerate(objects(sample, "events"), start=1):
        if event.get("event") == "span_begin":
            spans.begin(event)
        if event.get("event") not in ("compaction", "model"):
            continue
        branch, kind = spans.whose(text(event, "span_id"))
        if event.get("event") == "compaction":
            tokens = whole(event, "tokens_before")
            draft.mark("compaction", line, at_ms=stamp_ms(event, "timestamp"), branch=branch, tokens=tokens)
            continue
        output = inner(event, "output")
        usage, role = inner(output, "usage"), text(event, "role")
        failed = event.get("error") is not None or event.get("pending") is True
        if event.get("cache") == "read" or (failed and not usage):
            continue
        draft.row(
            usage_of(usage) if usage else MISSING,
            line,
            at_ms=stamp_ms(event, "timestamp"),
            model=text(output, "model") or text(event, "model"),
            request=text(event, "uuid"),
            branch=role or branch,
            kind=kind if role is None else "other",
        )
    return draft.closed()


ARCHIVE = Format(
    name=NAME,
    title="an Inspect log",
    recognise=recognise_archive,
    requests=from_archive,
    container="zip",
)
DOCUMENT = Format(
    name="inspect-json",
    title="an Inspect log in JSON",
    recognise=recognise_document,
    requests=from_document,
)
