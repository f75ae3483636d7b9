"""The rows of one recorded session being gathered, and the two rules that hold for all of them.

Rows come out in the order of time: a row without a stamp stays behind the row that it stood behind. A
request that the same walk has met before is counted as a copy and left out; `Seen` remembers which those
are, eight bytes each, so that a gigabyte of sessions does not fill the memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from shiftbook.messages import Usage
from shiftbook.sessions.normal import RecordedUsage
from shiftbook.sessions.requests import (
    Answered,
    Kind,
    Mark,
    MarkKind,
    RecordedRequests,
    RequestRow,
    UsageSource,
)
from shiftbook.sessions.streaming import Faults

MISSING = RecordedUsage()


class Seen:
    """The ids of the requests that a walk over many files has met."""

    def __init__(self) -> None:
        self._met: set[int] = set()

    def again(self, format_name: str, request: str) -> bool:
        """Whether this request was met before; it is from now on."""
        name = f"{format_name}\n{request}".encode("utf-8", "surrogatepass")
        key = int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big")
        if key in self._met:
            return True
        self._met.add(key)
        return False


def recorded(usage: Usage, undivided: int | None = None) -> RecordedUsage:
    """A vendor's usage in the form of the sessions; `undivided` is the whole prompt where the file has it.

    Where the share read from the cache is not known, `uncached` would be a guess: it is left out.
    """
    five, hour = usage.cache_write_5m, usage.cache_write_1h
    written = None if five is None else five + (hour or 0)
    split = five is not None and hour is not None
    if undivided is None and usage.uncached is not None and (usage.cache_read is None or written is None):
        undivided = usage.prompt
    return RecordedUsage(
        uncached=None if usage.cache_read is None else usage.uncached,
        cache_read=usage.cache_read,
        cache_write=written,
        cache_write_5m=five if split else None,
        cache_write_1h=hour if split else None,
        output=usage.output,
        reasoning=usage.reasoning,
        undivided=undivided,
    )


def inclusive(
    prompt: int | None,
    read: int | None,
    written: int | None,
    output: int | None,
    reasoning: int | None = None,
) -> RecordedUsage:
    """Usage whose prompt includes what was read from and written to the cache.

    A part that is larger than its whole contradicts it and is left out.
    """
    if prompt is not None and (read or 0) + (written or 0) > prompt:
        read = written = None
    return RecordedUsage(
        uncached=None if prompt is None or read is None else prompt - read - (written or 0),
        cache_read=read,
        cache_write=written,
        output=output,
        reasoning=None if output is None or (reasoning or 0) > output else reasoning,
        undivided=prompt,
    )


def source_of(usage: RecordedUsage) -> UsageSource:
    """ "reported" when the file has any count of this request."""
    return "missing" if usage == MISSING else "reported"


class RowDraft:
    """Collects the rows and marks of one session; `closed` gives it."""

    def __init__(self, format_name: str, path: str, name: str, faults: Faults | None = None) -> None:
        self.format, self.path, self.name = format_name, path, name
        self.faults = Faults() if faults is None else faults
        self._rows: list[RequestRow] = []
        self._marks: list[Mark] = []
        self._copies = 0

    def row(
        self,
        usage: RecordedUsage,
        line: int,
        *,
        at_ms: int | None = None,
        model: str | None = None,
        request: str | None = None,
        branch: str = "",
        kind: Kind = "main",
        source: UsageSource | None = None,
        requests: int = 1,
        blocks: int | None = None,
        answers: Answered | None = None,
        diagnosis: str | None = None,
    ) -> None:
        """One request. Without `source` it is "reported"; when `usage` holds nothing it is "missing"."""
        told = source_of(usage) if source is None or usage == MISSING else source
        self._rows.append(
            RequestRow(
                branch=branch,
                request=request,
                at_ms=at_ms,
                model=model,
                kind=kind,
                usage=usage,
                source=told,
                line=line,
                requests=requests,
                blocks=blocks,
                answers=answers,
                diagnosis=diagnosis,
            )
        )

    def was(self, kind: Kind) -> None:
        """The last row was of this kind: some files tell it only afterwards."""
        if self._rows:
            self._rows[-1] = replace(self._rows[-1], kind=kind)

    def copy(self) -> None:
        """One request that the walk has met elsewhere."""
        self._copies += 1

    def mark(
        self,
        what: MarkKind,
        line: int,
        *,
        at_ms: int | None = None,
        branch: str = "",
        tokens: int | None = None,
        by: str | None = None,
    ) -> None:
        """What explains a step down."""
        self._marks.append(Mark(what, at_ms, branch, line, tokens, by))

    def closed(self) -> RecordedRequests:
        """The session, in the order of time."""
        return RecordedRequests(
            format=self.format,
            path=self.path,
            name=self.name,
            rows=tuple(in_time(self._rows)),
            marks=tuple(self._marks),
            broken=self.faults.all(),
            copies=self._copies,
        )


def in_time(rows: Iterable[RequestRow]) -> list[RequestRow]:
    """The rows by their stamps; one without a stamp is taken to be as late as the row before it."""
    stamped: list[tuple[int, RequestRow]] = []
    latest = 0
    for row in rows:
        latest = row.at_ms if row.at_ms is not None else latest
        stamped.append((latest, row))
    return [row for _, row in sorted(stamped, key=lambda each: each[0])]


Payload = Mapping[str, object]
"""A vendor's usage object, as it stands in the file."""
