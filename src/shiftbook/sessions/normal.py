"""A foreign session in one normal form: what was said, asked and answered, in the order of the file.

Every reader ends here, whatever the format; what drives or measures a session knows only these values.
A `Session` is a row of steps. A step is a person's words, a notice, or a model's reply with the recorded
answers to its calls. What the format left out (reasoning, images) stands as a `MissingPart` that names
it; the text of a notice is left behind on purpose, so that it can never pass for a person's words; that of a
compaction stands apart from the steps.

It refuses nothing and reads nothing: these are plain values. A field that the file does not record is
None, never 0, "" or a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text, word for word."""

    text: str


@dataclass(frozen=True, slots=True)
class CallPart:
    """A tool call of a reply. `id` is the recorded one: it may repeat between replies, so it is no key.

    `raw_arguments` is the vendor's argument text where the format keeps it; `arguments` is None when
    that text is no JSON object.
    """

    id: str
    tool: str
    arguments: Mapping[str, object] | None
    raw_arguments: str | None = None


@dataclass(frozen=True, slots=True)
class MissingPart:
    """Something that was there and is not in this form: "reasoning", "image", or a block's type."""

    what: str


@dataclass(frozen=True, slots=True)
class RecordedUsage:
    """Token counts as the file reports them, cached tokens outside `uncached`; None is "not recorded".

    `undivided` is the whole prompt as the file gives it, where it gives that: some tell the sum and leave
    out a part of it.
    """

    uncached: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_5m: int | None = None
    cache_write_1h: int | None = None
    output: int | None = None
    reasoning: int | None = None
    undivided: int | None = None

    @property
    def prompt(self) -> int | None:
        """The prompt's tokens, uncached + read + written; with one of the three missing, `undivided`."""
        if self.uncached is None or self.cache_read is None or self.cache_write is None:
            return self.undivided
        return self.uncached + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True)
class Answer:
    """The recorded answer to one call. `is_error` is None when the format has no such mark.

    `line` is as in `PersonText`; `at_ms` is Unix time in milliseconds.
    """

    at_ms: int | None
    content: tuple[TextPart | MissingPart, ...]
    is_error: bool | None
    line: int


@dataclass(frozen=True, slots=True)
class PersonText:
    """A person's words. `line` is the line in the file or, in a JSON document, the message of its run."""

    at_ms: int | None
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Notice:
    """Something in the person's place that no person said; `what` names it, its text is not kept."""

    at_ms: int | None
    what: str
    line: int


@dataclass(frozen=True, slots=True)
class Reply:
    """One answered model request with everything it said, and the recorded answers to its calls.

    `answers` runs parallel to `calls`; None means that no answer was recorded: outcome unknown.
    `parts` may hold nothing but missing parts. `at_ms` and `line` are those of its first line.
    """

    at_ms: int | None
    model: str | None
    parts: tuple[TextPart | CallPart | MissingPart, ...]
    answers: tuple[Answer | None, ...]
    usage: RecordedUsage | None
    stop: str | None
    message_id: str | None
    line: int

    @property
    def calls(self) -> tuple[CallPart, ...]:
        """The calls of this reply, one batch, in the order of the file."""
        return tuple(part for part in self.parts if isinstance(part, CallPart))


Step = PersonText | Notice | Reply


@dataclass(frozen=True, slots=True)
class Compaction:
    """The account that a tool put in place of everything before it. It is no step: nobody said it.

    In the steps a `Notice` of the same `line` stands where it was.
    """

    at_ms: int | None
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Session:
    """One recorded session.

    `number` counts from 1 within its file. `requests_in_file` counts the answered requests recorded for
    it, skipped sidechains included; those driven are the `Reply` steps. `named` says how often each thing
    was left out or set aside, in the order of first sight. `sidechains_skipped` counts lines.
    """

    format: str
    source: str
    number: int
    instructions: str | None
    model: str | None
    steps: tuple[Step, ...]
    named: tuple[tuple[str, int], ...]
    sidechains_skipped: int
    requests_in_file: int
    compactions: tuple[Compaction, ...] = ()

    @property
    def replies(self) -> tuple[Reply, ...]:
        """The replies alone, in order."""
        return tuple(step for step in self.steps if isinstance(step, Reply))
