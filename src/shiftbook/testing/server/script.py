"""What the server is told to answer: replies as a scripted model has them, and what can go wrong on the way.

A script is a list, one turn for each request that the vendor would have taken, or a function from an exchange
to a turn. Words and calls are the replies of `shiftbook.providers.scripted` (`say`, `call`, `calls`); `think`
puts reasoning in front of one, `vendor_block` is a part that goes out as it is.

Every trouble says whether the model had answered: `Fails` and `Resets` happen before anything was made; all
others carry the reply, and it counts as made (tokens, cache) whatever the client gets to see of it.
Refused requests use up no turn: the vendor never asked the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from shiftbook.errors import BadInput
from shiftbook.messages import Call, Reasoning, Reply
from shiftbook.testing.server.gate import Gate

REDACTED = "redacted"
"""As `opaque` of a scripted `Reasoning`: the vendor withholds its words."""

Where = Literal["start", "reasoning", "text", "call", "end"]
"""A place in a stream: behind its first event, behind the first piece of the first reasoning, text or call
arguments (more is to come), or behind all content, before the stream says that it is over."""


@dataclass(frozen=True, slots=True)
class Fails:
    """An HTTP error. The kind and the code are the vendor's for that status unless given.

    `retry_after_s` becomes a `retry-after` header: seconds, or a date that far from now with `as_date`.
    """

    status: int
    message: str = ""
    kind: str | None = None
    code: str | None = None
    retry_after_s: float | None = None
    as_date: bool = False


@dataclass(frozen=True, slots=True)
class Resets:
    """The connection is reset when the request has been read; the model was never asked."""


@dataclass(frozen=True, slots=True)
class Hangs:
    """The reply is made and never sent: the connection stays open until the client gives up."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Drops:
    """The reply is made, and the connection ends without a byte of it."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Cuts:
    """The connection ends at a place of the stream; a plain answer ends in its middle."""

    reply: Reply
    where: Where


@dataclass(frozen=True, slots=True)
class Breaks:
    """At a place of the stream the vendor reports an error and ends it; a plain answer is the error."""

    reply: Reply
    where: Where
    status: int = 529
    message: str = ""


@dataclass(frozen=True, slots=True)
class Garbles:
    """At a place of the stream an event is no JSON, and the stream ends in order; so does a plain answer."""

    reply: Reply
    where: Where


@dataclass(frozen=True, slots=True)
class Mistypes:
    """Status 200 with a page of another content type, as a proxy in between gives one."""

    reply: Reply
    content_type: str = "text/html"
    page: str = "<html><body>Please sign in.</body></html>"


@dataclass(frozen=True, slots=True)
class Holds:
    """The gate must open before the first byte of `then`, or at a place of its stream if `where` is given."""

    then: Turn
    gate: Gate
    where: Where | None = None


Turn = Reply | Fails | Resets | Hangs | Drops | Cuts | Breaks | Garbles | Mistypes | Holds


def reply_of(turn: Turn) -> Reply | None:
    """The reply that counts as made, None where the model was not asked."""
    match turn:
        case Reply():
            return turn
        case Holds():
            return reply_of(turn.then)
        case Fails() | Resets():
            return None
        case _:
            return turn.reply


def think(text: str, reply: Reply, *, redacted: bool = False) -> Reply:
    """The reply with reasoning in front; `redacted`: its words are withheld (Anthropic: redacted_thinking;
    OpenAI: an item without a summary). Empty words without it are reasoning that is signed and not shown."""
    return replace(reply, parts=(Reasoning(text, REDACTED if redacted else None), *reply.parts))


def vendor_block(block: Mapping[str, Any]) -> Reasoning:
    """A part of a reply that is sent as it is: the call of a tool that the vendor runs, or its result."""
    if not isinstance(block.get("type"), str):
        raise BadInput("A vendor's block has a `type`; give the block as it stands on the wire.")
    return Reasoning("", dict(block))


def arguments_text(call: Call) -> str:
    """A call's arguments as the vendor writes them: the raw text if the script gives one."""
    if call.raw is not None:
        return call.raw
    return json.dumps(dict(call.arguments or {}), separators=(",", ":"))
