"""A recorded session as rows, one a model request: what it cost, when, and by whom it was told.

This is what `measure` works on. It holds counts and stamps and no text. A count that the file does not
record is None, never 0; `source` says how far each row can be trusted. What was said and done is in
`sessions.normal`, from the same readers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shiftbook.sessions.normal import RecordedUsage

Kind = Literal["main", "subagent", "compaction", "other"]
"""Whose request it was: the run's own, a sub-agent's, one that wrote a summary, a helper's (titles)."""

UsageSource = Literal["reported", "differenced", "estimated", "missing"]
"""Usage as the file has it; the difference of two running totals; our meter over visible text; not at all."""

MarkKind = Literal["compaction", "rewind", "resume", "reasoning", "restart", "plan"]
"""The first three explain a step down. Reasoning was switched ("on" or "off" in `by`) or the program began
anew after this line: the messages of the next prompt are not in the cache, however small the change. At a
"plan" a person spoke after a turn that carried out an accepted plan without any reasoning."""

Answered = Literal["person", "result"]
"""What a request answers: a person's words, or what a tool or a task gave back."""


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One model request.

    `branch` tells prompts apart that grow on their own: "" is the main line, else a sub-agent's or a rewound
    branch's name. `at_ms` is Unix time in milliseconds. `line` is as in `sessions.normal`. `requests` is 1
    save where a format gives only the sum over several: such a row can be priced, but tells no prompt's size.
    `blocks` are the content blocks that the reply and the answers to its calls put into the next prompt.
    `answers` is what the request was sent for, where the file tells it. `diagnosis` is the vendor's own word
    for where the prompt differs from the one before it (platform.claude.com, cache diagnostics).
    """

    branch: str
    request: str | None
    at_ms: int | None
    model: str | None
    kind: Kind
    usage: RecordedUsage
    source: UsageSource
    line: int
    requests: int = 1
    blocks: int | None = None
    answers: Answered | None = None
    diagnosis: str | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """What explains a step down between two requests, or a lost cache. `tokens`: the prompt's size before."""

    what: MarkKind
    at_ms: int | None
    branch: str
    line: int
    tokens: int | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A part of the file that could not be read; the rest counts."""

    line: int
    what: str


@dataclass(frozen=True, slots=True)
class RecordedRequests:
    """The requests of one recorded session, ordered by time where the file has stamps, else as they stand.

    `name` is the session's id in the file, or its number there. `copies` counts requests left out because
    the same walk has met them before: in another file (a resumed session repeats the old one) or in this.
    """

    format: str
    path: str
    name: str
    rows: tuple[RequestRow, ...]
    marks: tuple[Mark, ...]
    broken: tuple[BrokenLine, ...]
    copies: int = 0
