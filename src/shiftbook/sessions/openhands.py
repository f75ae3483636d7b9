"""OpenHands conversations: `base_state.json` with its `events` folder, or events as JSONL.

Usage is kept by `usage_id` (the agent, the condenser that writes summaries, others). Where the list of
single requests (`token_usages`) is there, they are rows as reported; else the running totals of one
snapshot after another are differenced, and such a row may cover several requests. `prompt_tokens` includes
what was read from and written to the cache (LiteLLM's convention). A condensation is a compaction. The
events of one folder belong to the state beside it and are read for these marks. A sub-agent's requests stand
in its own state and, under a usage id of their own, in that of the conversation it worked for: they count
once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from shiftbook.errors import SessionUnreadable
from shiftbook.sessions.format import Format
from shiftbook.sessions.loose import inner, objects, stamp_ms, text, whole
from shiftbook.sessions.normal import RecordedUsage
from shiftbook.sessions.requests import Kind, RecordedRequests
from shiftbook.sessions.rows import RowDraft, Seen, inclusive
from shiftbook.sessions.source import Source
from shiftbook.sessions.streaming import Faults, records

NAME = "openhands"

_COUNTS = (
    "prompt_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "completion_tokens",
    "reasoning_tokens",
)
_KINDS: Mapping[str, Kind] = {"agent": "main", "default": "main", "condenser": "compaction"}
_SUBAGENTS = ("task:", "delegate:")
"""How the usage ids open under which a conversation keeps what its sub-agents used."""


def recognise(sample: Sequence[Mapping[str, object]]) -> bool:
    """A state with usage by id, or an event with a kind and a source."""
    return any(
        isinstance(inner(record, "stats").get("usage_to_metrics"), dict)
        or (
            (text(record, "kind") or "").endswith(("Event", "Condensation", "Action", "Observation"))
            and "source" in record
            and "timestamp" in record
        )
        for record in sample
    )


def usage_of(counts: Mapping[str, object]) -> RecordedUsage:
    """A token usage of OpenHands in normal form."""
    prompt, read, written, output, reasoning = (whole(counts, key) for key in _COUNTS)
    return inclusive(prompt, read, written, output, reasoning)


class _Conversation:
    """One conversation while its snapshots come in."""

    def __init__(self, source: Source, seen: Seen) -> None:
        self.draft = RowDraft(NAME, source.path, "", Faults())
        self._seen = seen
        self._totals: dict[str, dict[str, int | None]] = {}
        self._told: set[str] = set()
        self._latest: int | None = None

    def event(self, value: Mapping[str, object], line: int) -> None:
        """One event, or a state."""
        at_ms = stamp_ms(value, "timestamp")
        self._latest = at_ms if at_ms is not None else self._latest
        kind = text(value, "kind") or ""
        if kind.endswith("Condensation"):
            self.draft.mark("compaction", line, at_ms=at_ms, by="condenser")
        for held in (value, inner(value, "value")):
            for stats in (held, inner(held, "stats")):
                self._stats(inner(stats, "usage_to_metrics"), line, self._latest)
        if kind == "" and text(value, "id"):
            self.draft.name = text(value, "id") or ""

    def _stats(self, by_id: Mapping[str, object], line: int, at_ms: int | None) -> None:
        for usage_id in by_id:
            metrics = inner(by_id, usage_id)
            singles = list(objects(metrics, "token_usages"))
            if singles:
                self._singles(usage_id, singles, line, at_ms)
            else:
                self._total(usage_id, inner(metrics, "accumulated_token_usage"), line, at_ms)

    def _singles(
        self, usage_id: str, singles: Sequence[Mapping[str, object]], line: int, at_ms: int | None
    ) -> None:
        for number, single in enumerate(singles):
            response = text(single, "response_id")
            key = f"{usage_id} {response or number}"
            if key in self._told:
                continue
            self._told.add(key)
            if response is not None and self._seen.again(NAME, response):
                self.draft.copy()
                continue
            self._row(usage_id, usage_of(single), text(single, "model"), response, line, at_ms, False)

    def _total(self, usage_id: str, total: Mapping[str, object], line: int, at_ms: int | None) -> None:
        now = {key: whole(total, key) for key in _COUNTS}
        before = self._totals.get(usage_id)
        if before is None and not any(now.values()):
            return
        if now == before:
            return
        self._totals[usage_id] = now
        added: dict[str, object] = {
            key: count if before is None or count is None else count - (before[key] or 0)
            for key, count in now.items()
        }
        if any(isinstance(count, int) and count < 0 for count in added.values()):
            added = dict(now)
        self._row(
            usage_id, usage_of(added), text(total, "model"), text(total, "response_id"), line, at_ms, True
        )

    def _row(
        self,
        usage_id: str,
        usage: RecordedUsage,
        model: str | None,
        request: str | None,
        line: int,
        at_ms: int | None,
        differenced: bool,
    ) -> None:
        side: Kind = "subagent" if usage_id.startswith(_SUBAGENTS) else "other"
        kind = _KINDS.get(usage_id, side)
        self.draft.row(
            usage,
            line,
            at_ms=at_ms,
            model=model,
            request=request,
            branch="" if kind == "main" else usage_id,
            kind=kind,
            source="differenced" if differenced else None,
        )


def requests(source: Source, seen: Seen) -> Iterator[RecordedRequests]:
    """A file of events, or a state with the events beside it, is one session."""
    conversation = _Conversation(source, seen)
    faults = conversation.draft.faults
    first = True
    for record in records(source, faults):
        if first and "usage_to_metrics" in inner(record.value, "stats"):
            for event in _beside(source, faults):
                conversation.event(event, 0)
        first = False
        conversation.event(record.value, record.place.line)
    yield conversation.draft.closed()


def _beside(source: Source, faults: Faults) -> Iterator[Mapping[str, object]]:
    """The events of the folder beside a state, in the order of their names, without the snapshots in them."""
    folder = Path(source.path).parent / "events"
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except FileNotFoundError:
        return
    except OSError as closed:
        faults.add(0, f"the folder {folder.name} beside it cannot be read ({closed.strerror})")
        return
    for path in paths:
        try:
            for record in records(Source(path), faults):
                yield {key: record.value.get(key) for key in ("kind", "timestamp")}
        except SessionUnreadable as broken:
            faults.add(0, f"{path.name}: {broken.what}")


FORMAT = Format(
    name=NAME,
    title="an OpenHands conversation",
    recognise=recognise,
    requests=requests,
)
