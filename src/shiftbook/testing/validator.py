"""A strict reading of a model request: what any of three vendors would refuse, refused here.

The rules are the union of Anthropic's (messages alternate, start with the user and end with the user, or with
a reply that paused amid work of the vendor's own; every call has its answer in the next message, in front of
any text; text is never blank; reasoning is never last, such work may be),
OpenAI's (every call id answered once, directly after; names of 1 to 64 letters, digits, _ and -) and those of
DeepSeek and Kimi (no reply without text or call; arguments parse to an object). A request that passes may
still be refused for what no rule can see. Pure: nothing is sent, nothing is repaired.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shiftbook.messages import (
    Call,
    Media,
    Message,
    Missing,
    Part,
    Reasoning,
    Request,
    Result,
    Text,
    to_messages,
)

FAULTS = frozenset(
    {
        "no message",
        "first message not the user's",
        "last message not the user's",
        "empty block",
        "blank text",
        "text not Unicode",
        "part on the wrong side",
        "missing part",
        "call without answer",
        "answer without call",
        "second answer",
        "answer behind text",
        "empty answer",
        "call id not unique",
        "call id unusable",
        "text behind a call",
        "arguments not an object",
        "tool unknown",
        "tool name unusable",
        "tool declared twice",
        "reasoning last",
        "reasoning not allowed",
    }
)
"""Every name that a fault can have; names are stable, new ones may come."""

CALL_ID_CHARS_MAX = 64
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class RequestFault:
    """What is wrong, by a name from `FAULTS`; `message` is the message's index, -1 for the whole request."""

    name: str
    message: int
    detail: str = ""

    def __str__(self) -> str:
        where = "request" if self.message < 0 else f"message {self.message}"
        return f"{where}: {self.name}" + (f" ({self.detail})" if self.detail else "")


class RequestRefused(AssertionError):
    """A vendor would refuse the request; `faults` says why."""

    def __init__(self, faults: Sequence[RequestFault]) -> None:
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


def check_request(request: Request, *, reasoning: bool = True) -> None:
    """Raise `RequestRefused` unless the request is without fault."""
    if faults := request_faults(request, reasoning=reasoning):
        raise RequestRefused(faults)


def request_faults(request: Request, *, reasoning: bool = True) -> list[RequestFault]:
    """Everything that a vendor would refuse. Without `reasoning`, no reasoning may be sent back at all."""
    messages = to_messages(request.blocks)
    faults = list(_tool_faults(request))
    faults += [
        RequestFault("empty block", -1, f"block {n}") for n, b in enumerate(request.blocks) if not b.parts
    ]
    faults += _order_faults(messages)
    known = {tool.name for tool in request.tools}
    for number, message in enumerate(messages):
        for part in message.parts:
            faults += _part_faults(number, message, part, known)
        if message.side == "assistant":
            faults += _reply_faults(number, message, reasoning=reasoning)
    faults += _pair_faults(messages)
    return faults


def _tool_faults(request: Request) -> Iterator[RequestFault]:
    names = [tool.name for tool in request.tools]
    for name in sorted(set(names)):
        if names.count(name) > 1:
            yield RequestFault("tool declared twice", -1, name)
        if not _TOOL_NAME.fullmatch(name):
            yield RequestFault("tool name unusable", -1, name)


def _order_faults(messages: Sequence[Message]) -> list[RequestFault]:
    if not messages:
        return [RequestFault("no message", -1)]
    faults = []
    if messages[0].side != "user":
        faults.append(RequestFault("first message not the user's", 0))
    if messages[-1].side != "user" and not any(_is_work(part) for part in messages[-1].parts):
        faults.append(RequestFault("last message not the user's", len(messages) - 1))
    return faults


def _part_faults(number: int, message: Message, part: Part, tools: set[str]) -> Iterator[RequestFault]:
    users, assistants = (Text, Media, Result), (Text, Reasoning, Call)
    if isinstance(part, Missing):
        yield RequestFault("missing part", number, part.what)
    elif not isinstance(part, users if message.side == "user" else assistants):
        yield RequestFault("part on the wrong side", number, type(part).__name__)
    for text in _texts(part):
        if not text.strip():
            yield RequestFault("blank text", number)
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            yield RequestFault("text not Unicode", number)
    if isinstance(part, Result):
        if not part.content:
            yield RequestFault("empty answer", number, part.call)
        for each in part.content:
            if isinstance(each, Missing):
                yield RequestFault("missing part", number, each.what)
    if isinstance(part, Call):
        if not isinstance(part.arguments, dict):
            yield RequestFault("arguments not an object", number, part.id)
        if part.tool not in tools:
            yield RequestFault("tool unknown", number, part.tool[:80])
        if not 0 < len(part.id) <= CALL_ID_CHARS_MAX or any(mark.isspace() for mark in part.id):
            yield RequestFault("call id unusable", number, part.id[:80])


def _texts(part: Part) -> Iterator[str]:
    if isinstance(part, Text):
        yield part.text
    elif isinstance(part, Result):
        yield from (each.text for each in part.content if isinstance(each, Text))


def _reply_faults(number: int, message: Message, *, reasoning: bool) -> Iterator[RequestFault]:
    called = False
    for part in message.parts:
        if isinstance(part, Reasoning) and not reasoning:
            yield RequestFault("reasoning not allowed", number)
        if isinstance(part, Text) and called:
            yield RequestFault("text behind a call", number)
        called = called or isinstance(part, Call)
    if message.parts and isinstance(message.parts[-1], Reasoning) and not _is_work(message.parts[-1]):
        yield RequestFault("reasoning last", number)


def _is_work(part: Part) -> bool:
    return isinstance(part, Reasoning) and part.is_vendors_work


def _pair_faults(messages: Sequence[Message]) -> Iterator[RequestFault]:
    """Both ways: each call answered once in the next message, each answer to a call of the message before."""
    seen: set[str] = set()
    waiting: list[str] = []
    for number, message in enumerate(messages):
        answered: set[str] = set()
        behind_text = False
        for part in message.parts:
            if not isinstance(part, Result):
                behind_text = behind_text or message.side == "user"
                continue
            if part.call in answered:
                yield RequestFault("second answer", number, part.call)
            elif part.call not in waiting:
                yield RequestFault("answer without call", number, part.call)
            if behind_text:
                yield RequestFault("answer behind text", number, part.call)
            answered.add(part.call)
        for call in waiting:
            if call not in answered:
                yield RequestFault("call without answer", number - 1, call)
        waiting = [part.id for part in message.parts if isinstance(part, Call)]
        for index, call in enumerate(waiting):
            if call in seen or call in waiting[:index]:
                yield RequestFault("call id not unique", number, call)
        seen.update(waiting)
    for call in waiting:
        yield RequestFault("call without answer", len(messages) - 1, call)
