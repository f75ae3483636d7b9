"""Sessions made by hand, row by row, for tests whose answers are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shiftbook.sessions.normal import RecordedUsage
from shiftbook.sessions.requests import Kind, Mark, RecordedRequests, RequestRow

MODEL = "claude-opus-4-5"
MINUTE_MS = 60_000


def row(
    prompt: int,
    read: int | None = 0,
    *,
    minute: float | None = 0,
    line: int = 1,
    output: int | None = 100,
    model: str | None = MODEL,
    branch: str = "",
    hour: bool = False,
) -> RequestRow:
    """A request that read `read` tokens from the cache and wrote the rest of its prompt to it.

    Without `read` the file has the prompt's size and not how it came about.
    """
    written = None if read is None else prompt - read
    usage = RecordedUsage(
        uncached=None if read is None else 0,
        cache_read=read,
        cache_write=written,
        cache_write_5m=None if read is None else 0 if hour else written,
        cache_write_1h=None if read is None else written if hour else 0,
        output=output,
        undivided=prompt if read is None else None,
    )
    at_ms = None if minute is None else round(minute * MINUTE_MS)
    kind: Kind = "subagent" if branch else "main"
    return RequestRow(branch, f"r{line}", at_ms, model, kind, usage, "reported", line)


def session(rows: Sequence[RequestRow], marks: Sequence[Mark] = ()) -> RecordedRequests:
    """A session of these rows."""
    return RecordedRequests("made", "made.jsonl", "1", tuple(rows), tuple(marks), ())


def growing(sizes: Sequence[int], *, every: float = 1.0, hour: bool = False) -> list[RequestRow]:
    """Requests of these prompt sizes, `every` minutes apart, each reading what the one before left."""
    rows = []
    for number, size in enumerate(sizes):
        read = min(sizes[number - 1], size) if number else 0
        rows.append(row(size, read, minute=every * number, line=number + 1, hour=hour))
    return rows


def unknown(line: int) -> RequestRow:
    """A request of which the file says nothing."""
    return replace(row(1, line=line), usage=RecordedUsage(), source="missing", model=None, at_ms=None)
