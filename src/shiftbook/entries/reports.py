"""Kinds of reports: asked for, failed, answered, written, and the lines that did not stand."""

from __future__ import annotations

from dataclasses import dataclass

from shiftbook.messages import AssistantPart, StopReason, Usage


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One line of a report and the entries that it cites."""

    text: str
    cites: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReportWritten:
    """An account of the entries `first` to `last`, by a model or by rule."""

    first: int
    last: int
    lines: tuple[ReportLine, ...]
    writer: str
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class LineStruck:
    """A report's line was not carried: what it said is not in the entries that it cites."""

    line: ReportLine
    why: str


@dataclass(frozen=True, slots=True)
class ReportAsked:
    """A model was asked for an account of `entries`, before they leave the prompt.

    With `extends` the request was the epoch's prompt as it was last sent, and one block more in which each
    entry is named with `keep` characters of it; else it stood alone, with `keep` characters quoted of each.
    `chars` is what the account might take, `tokens` the whole request by the meter named in `meter`, and
    `digest` the chain over it: from the prompt's digest on, or from the declaration on.
    """

    entries: tuple[int, ...]
    model: str
    chars: int
    digest: str
    tokens: int
    meter: str
    extends: bool = True
    keep: int = 0
    renderer: int = 1


@dataclass(frozen=True, slots=True)
class ReportFailed:
    """An attempt at a report's request failed; `retry_at_ms` is None when it is not tried again.

    `part` is what had come of the reply by then.
    """

    attempt: int
    error: str
    retry_at_ms: int | None = None
    status: int | None = None
    part: str | None = None


@dataclass(frozen=True, slots=True)
class ReportAnswered:
    """The reply to a report's request, whole and as it came; what stands of it is in `ReportWritten`."""

    parts: tuple[AssistantPart, ...]
    stop: StopReason
    usage: Usage = Usage()
    model: str | None = None
    attempt: int = 1
