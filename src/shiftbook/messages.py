"""What is said to a model and by a model, in no vendor's dialect.

A prompt is instructions, tool schemas and a list of blocks; a block has a side (`user` or `assistant`) and
parts. Vendors want alternating messages: `to_messages` joins neighbouring blocks of one side, so that a
list of blocks that only grows at its end becomes a list of messages that only grows at its end.
Nothing here knows a wire format, a database or a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, Protocol, overload

Side = Literal["user", "assistant"]
StopReason = Literal["end", "calls", "length", "refusal", "pause", "other"]
Json = Any
"""A JSON-like value of `shiftbook.canonical`: None, bool, int, float, str, bytes, date, list or dict."""


@dataclass(frozen=True, slots=True)
class Text:
    """Plain words."""

    text: str


@dataclass(frozen=True, slots=True)
class Media:
    """An image or a file: the bytes lie in the run's blobs under `blob` (sha256, hex)."""

    blob: str
    media_type: str
    size: int
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """A piece that is not there any more; `what` names it ("image, 12 kB"). Never invented content."""

    what: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A provider's reasoning block: sent back verbatim to the same provider in the same epoch, or not at all.

    A block of a tool that the provider ran itself (a search, its results) is kept likewise, with no text:
    `opaque` is the block as it came.
    """

    text: str
    opaque: Json = None

    @property
    def is_vendors_work(self) -> bool:
        """Whether it is a block of what the provider ran, as it came on the wire: it has no text and a type.

        Redacted reasoning looks the same from here. What a bridge made of such a block is none.
        """
        return not self.text and isinstance(self.opaque, Mapping) and "type" in self.opaque


@dataclass(frozen=True, slots=True)
class Call:
    """A model's request for a tool.

    `id` is ours and unique in the run; `arguments` is the parse, None when `raw` did not parse to an
    object; `raw` is the vendor's text where it differs from the canonical text of the parse; `vendor` holds
    the provider's own ids.
    """

    id: str
    tool: str
    arguments: Mapping[str, Json] | None
    raw: str | None = None
    vendor: Json = None


@dataclass(frozen=True, slots=True)
class Result:
    """The one answer to a call, by our call id."""

    call: str
    content: tuple[Text | Media | Missing, ...]
    is_error: bool = False


UserPart = Text | Media | Missing | Result
AssistantPart = Text | Reasoning | Call | Missing
Part = Text | Media | Missing | Reasoning | Call | Result


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a prompt as it is sent; `entries` are the positions that it was made from."""

    side: Side
    parts: tuple[Part, ...]
    kind: str = ""
    entries: tuple[int, ...] = ()


class First(Sequence[Block]):
    """The blocks that a list holds now: it may grow at its end, and this stays as it is, without a copy."""

    __slots__ = ("_blocks", "_count")

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        self._count = len(blocks)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Block]:
        return islice(self._blocks, self._count)

    @overload
    def __getitem__(self, index: int) -> Block: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Block]: ...

    def __getitem__(self, index: int | slice) -> Block | Sequence[Block]:
        if isinstance(index, slice):
            return [self._blocks[at] for at in range(*index.indices(self._count))]
        return self._blocks[range(self._count)[index]]


@dataclass(frozen=True, slots=True)
class Message:
    """Neighbouring blocks of one side, joined."""

    side: Side
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as the model sees it; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Request:
    """One model request, whole. `turn` and `attempt` name it and are not part of what is said."""

    run: str
    turn: int
    attempt: int
    model: str
    instructions: str
    tools: tuple[ToolSchema, ...]
    blocks: Sequence[Block]
    parameters: Mapping[str, Json] = field(default_factory=dict)
    blob: Callable[[str], bytes] | None = None
    """Reads a blob of this run by its hash, for providers that send media. KeyError: it is not there."""
    marks: tuple[int, ...] = ()
    """Numbers of blocks at which earlier requests of the epoch ended: the first one, and the one before this.
    A provider may ask its cache to keep the prompt up to there; they are no part of what is said."""
    purpose: Literal["turn", "report"] = "turn"
    """What the reply is for: the run's next step, or a report (then `turn` is the turn that waits for it)."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request in one normal form, each counted once; None is "not reported", never zero.

    The prompt is `uncached + cache_read + cache_write_5m + cache_write_1h`. `reasoning` is the part of
    `output` that was reasoning, not an addition to it.
    """

    uncached: int | None = None
    cache_read: int | None = None
    cache_write_5m: int | None = None
    cache_write_1h: int | None = None
    output: int | None = None
    reasoning: int | None = None

    @property
    def prompt(self) -> int | None:
        """Tokens of the whole prompt, None when nothing of it was reported."""
        parts = (self.uncached, self.cache_read, self.cache_write_5m, self.cache_write_1h)
        told = [part for part in parts if part is not None]
        return sum(told) if told else None


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole model reply. Call ids in it are the provider's; the loop gives each call our own id."""

    parts: tuple[AssistantPart, ...]
    stop: StopReason
    usage: Usage = Usage()
    model: str | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the reply's words, as it comes."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the reply's reasoning, as it comes."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A call is being written; `tool` names it as soon as it is known."""

    tool: str
    arguments_text: str = ""


ReplyEvent = TextDelta | ReasoningDelta | CallDelta


class Emit(Protocol):
    """Takes the events of a reply while it streams."""

    def __call__(self, event: ReplyEvent, /) -> None: ...


def to_messages(blocks: Iterable[Block]) -> list[Message]:
    """Join neighbouring blocks of one side; the order of parts is the order of blocks."""
    messages: list[Message] = []
    side: Side | None = None
    parts: list[Part] = []
    for block in blocks:
        if block.side != side:
            if side is not None:
                messages.append(Message(side, tuple(parts)))
            side, parts = block.side, []
        parts.extend(block.parts)
    if side is not None:
        messages.append(Message(side, tuple(parts)))
    return messages
