"""The requests of one session as prompts that grow: one series a branch, in the order of time.

A sub-agent and a rewound branch have prompts of their own and are never compared with the main line's. The
requests of helpers (titles) and of compactions do not grow on a line, and a row that is the sum of several
requests tells no prompt's size: these are priced, not fitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shiftbook.messages import Usage
from shiftbook.sessions.normal import RecordedUsage
from shiftbook.sessions.requests import Mark, RecordedRequests, RequestRow

GROWING = ("main", "subagent")


@dataclass(frozen=True, slots=True)
class Point:
    """A request whose prompt size is known. `prompt` and `read` are tokens; `read` None: not recorded."""

    row: RequestRow
    prompt: int
    read: int | None

    @property
    def at_ms(self) -> int | None:
        """When, in Unix milliseconds."""
        return self.row.at_ms


@dataclass(frozen=True, slots=True)
class Series:
    """The prompts of one branch. `requests` counts all of its growing requests, those without a size too."""

    branch: str
    requests: int
    points: tuple[Point, ...]
    marks: tuple[Mark, ...]

    @property
    def pairs(self) -> tuple[tuple[Point, Point], ...]:
        """Each request with the one before it."""
        return tuple(zip(self.points, self.points[1:], strict=False))


def series_of(session: RecordedRequests) -> tuple[Series, ...]:
    """Every branch of a session, the one with the most requests first, ties in the order of the file.

    Rows without a stamp stay where they stand; stamps that run backwards are put right.
    """
    branches: dict[str, list[RequestRow]] = {}
    for row in session.rows:
        if row.kind in GROWING:
            branches.setdefault(row.branch, []).append(row)
    found = [
        Series(
            branch,
            sum(row.requests for row in rows),
            tuple(_points(in_order(rows))),
            tuple(mark for mark in session.marks if mark.branch == branch),
        )
        for branch, rows in branches.items()
    ]
    return tuple(sorted(found, key=lambda each: -each.requests))


def in_order(rows: Sequence[RequestRow]) -> list[RequestRow]:
    """Rows by time; one without a stamp keeps the time of the row before it."""
    stamped: list[tuple[int, RequestRow]] = []
    last = 0
    for row in rows:
        last = last if row.at_ms is None else row.at_ms
        stamped.append((last, row))
    return [row for _, row in sorted(stamped, key=lambda each: each[0])]


def _points(rows: Iterable[RequestRow]) -> Iterable[Point]:
    for row in rows:
        prompt = row.usage.prompt
        if prompt and row.requests == 1:
            yield Point(row, prompt, row.usage.cache_read)


def usage_of(recorded: RecordedUsage, life: str | None = None) -> Usage:
    """The recorded counts in the form that prices are applied to.

    Writes to the cache whose life was not recorded are laid to `life` ("5m" or "1h"); without it they stay
    of unknown life, and what was written cannot be priced. A prompt that is not told apart stands in
    `uncached`, its reads unknown: it has a price only where reading from the cache has none of its own.
    """
    five, hour, written = recorded.cache_write_5m, recorded.cache_write_1h, recorded.cache_write
    if written is not None and (five or 0) + (hour or 0) != written:
        five, hour = written, None
        if written == 0 or life == "5m":
            hour = 0
        elif life == "1h":
            five, hour = 0, written
    elif written is not None:
        five, hour = five or 0, hour or 0
    uncached = recorded.undivided if recorded.uncached is None else recorded.uncached
    return Usage(uncached, recorded.cache_read, five, hour, recorded.output, recorded.reasoning)


def recorded_life(rows: Iterable[RequestRow]) -> str | None:
    """How long most of what was written to the cache was to live, "5m" or "1h"; None when nothing says so."""
    five = hour = 0
    for row in rows:
        five += row.usage.cache_write_5m or 0
        hour += row.usage.cache_write_1h or 0
    return None if five == hour == 0 else ("1h" if hour > five else "5m")
