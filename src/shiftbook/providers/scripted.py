"""A model that says what it was told to say: for tests, demos and benchmarks, without a key or a network.

A script is a list of steps, one a turn, or a function from the request to a step:

    Scripted([call("count", {"place": "A"}), say("Done.")])

It keeps no state: the turn and the attempt in the request say where it is, so a resumed run, in another
process, goes on in the same place. A fault happens on the first `times` attempts at its turn and is followed
by its `then`. A script that has run out is a fault that no retry can mend. Requests for reports are answered
by `reports`, a function from the request to a step; where there is none, a script that is a function gets
them too, and a list refuses them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from shiftbook.errors import AgentMistake, ProviderFault
from shiftbook.messages import (
    Call,
    CallDelta,
    Emit,
    Json,
    Reasoning,
    ReasoningDelta,
    Reply,
    ReplyEvent,
    Request,
    Result,
    StopReason,
    Text,
    TextDelta,
    Usage,
)
from shiftbook.providers.arguments import arguments_text, call_from_text

PIECE_CHARS_MIN = 24
PIECES_MAX = 8
"""A text streams in at most so many events, so that a long one is not thousands of them."""

CHARS_PER_TOKEN = 4
"""For made-up usage figures only: stable and cheap to compute, and no tokenizer."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something goes wrong on the first `times` attempts (None: on all of them); afterwards comes `then`."""

    kind: Literal["fails", "cut", "hangs"]
    message: str
    times: int | None
    then: Step | None
    status: int | None = None
    retryable: bool = True
    retry_after_ms: int | None = None
    part: str = ""


Step = Reply | Fault
Script = Sequence[Step] | Callable[[Request], Step]


def say(text: str, *, stop: StopReason = "end", usage: Usage | None = None) -> Reply:
    """A reply of words alone."""
    return Reply((Text(text),), stop, usage or Usage())


def call(
    tool: str,
    arguments: Mapping[str, Json] | None = None,
    /,
    *,
    text: str = "",
    raw: str | None = None,
    usage: Usage | None = None,
) -> Reply:
    """A reply that makes one call, after some words if `text` is given.

    `raw` stands for `arguments`: the argument text letter by letter, valid JSON or not.
    """
    if raw is not None:
        made = call_from_text("", tool, raw)
    else:
        made = Call("", tool, dict(arguments or {}))
    return _with_text(text, (made,), usage)


def calls(*replies: Reply, text: str = "", usage: Usage | None = None) -> Reply:
    """One reply that makes all the calls of `replies`, side by side: `calls(call("a"), call("b"))`."""
    made = tuple(part for reply in replies for part in reply.parts if isinstance(part, Call))
    return _with_text(text, made, usage)


def fails(
    *,
    status: int | None = 500,
    retryable: bool = True,
    times: int | None = 1,
    retry_after_ms: int | None = None,
    message: str = "The provider refused the request.",
    then: Step | None = None,
) -> Fault:
    """The request is refused before a word came."""
    return Fault("fails", message, times, then, status, retryable, retry_after_ms)


def cut(
    *,
    after: str,
    times: int | None = 1,
    retryable: bool = True,
    message: str = "The connection was lost in the middle of the reply.",
    then: Step | None = None,
) -> Fault:
    """The reply breaks off when `after` has come."""
    return Fault("cut", message, times, then, None, retryable, None, after)


def hangs(*, times: int | None = 1, part: str = "", then: Step | None = None) -> Fault:
    """No end ever comes, after `part`: the time-out or a cancellation ends it."""
    return Fault("hangs", "", times, then, part=part)


class Scripted:
    """Answers from a script. `check` is called with every request first; what it raises is raised."""

    def __init__(
        self,
        script: Script,
        name: str = "scripted",
        *,
        check: Callable[[Request], None] | None = None,
        reports: Callable[[Request], Step] | None = None,
    ) -> None:
        given: object = script  # whatever the hint says
        if not callable(given) and (isinstance(given, str | bytes) or not isinstance(given, Sequence)):
            raise AgentMistake(
                f"A script is a list of replies, or a function of the request, not {given!r:.60}: write "
                'Scripted([say("Hello")]).'
            )
        self._script = script if callable(script) else tuple(script)
        self._reports = reports
        self._check = check
        self.name = name

    async def reply(self, request: Request, emit: Emit) -> Reply:
        """Play the step of the request's turn, at the request's attempt."""
        if self._check is not None:
            self._check(request)
        step: Step | None = self._step(request)
        attempt = request.attempt
        while isinstance(step, Fault):
            if step.times is None or attempt <= step.times:
                return await self._break(step, emit)
            attempt -= step.times
            step = step.then
        if step is None:
            raise ProviderFault(
                f"The script of {self.name!r} has nothing to say after the faults of turn {request.turn}: "
                "give the fault a `then`.",
                retryable=False,
            )
        return await self._say(step, request, emit)

    def _step(self, request: Request) -> Step:
        if request.purpose == "report" and self._reports is not None:
            return self._reports(request)
        if callable(self._script):
            return self._script(request)
        if request.purpose == "report":
            raise ProviderFault(
                f"The script of {self.name!r} has nothing to say for a report: give it `reports`.",
                retryable=False,
            )
        if not 1 <= request.turn <= len(self._script):
            raise ProviderFault(
                f"The script of {self.name!r} has {len(self._script)} steps and turn {request.turn} was "
                "asked for: end it with a reply that makes no call, or add steps.",
                retryable=False,
            )
        return self._script[request.turn - 1]

    async def _break(self, fault: Fault, emit: Emit) -> Reply:
        for piece in _pieces(fault.part):
            emit(TextDelta(piece))
            await asyncio.sleep(0)
        if fault.kind == "hangs":
            await asyncio.get_running_loop().create_future()
        raise ProviderFault(
            fault.message,
            retryable=fault.retryable,
            retry_after_ms=fault.retry_after_ms,
            status=fault.status,
        )

    async def _say(self, step: Reply, request: Request, emit: Emit) -> Reply:
        for event in _events(step):
            emit(event)
            await asyncio.sleep(0)
        numbered = []
        number = 0
        for part in step.parts:
            if isinstance(part, Call):
                number += 1
                if not part.id:
                    part = replace(part, id=f"{self.name}-{request.turn}-{number}")
            numbered.append(part)
        usage = made_up_usage(request, step) if step.usage == Usage() else step.usage
        return replace(step, parts=tuple(numbered), usage=usage, model=step.model or self.name)


def made_up_usage(request: Request, reply: Reply) -> Usage:
    """Usage figures by counting characters: the same for the same request in every process."""
    asked = len(request.instructions)
    for block in request.blocks:
        for part in block.parts:
            asked += _size(part)
    said = sum(map(_size, reply.parts))
    return Usage(uncached=1 + asked // CHARS_PER_TOKEN, output=1 + said // CHARS_PER_TOKEN)


def _size(part: object) -> int:
    if isinstance(part, Text | Reasoning):
        return len(part.text)
    if isinstance(part, Call):
        return len(arguments_text(part))
    if isinstance(part, Result):
        return sum(len(piece.text) for piece in part.content if isinstance(piece, Text))
    return 0


def _with_text(text: str, made: tuple[Call, ...], usage: Usage | None) -> Reply:
    words = (Text(text),) if text else ()
    return Reply((*words, *made), "calls", usage or Usage())


def _events(reply: Reply) -> Iterator[ReplyEvent]:
    for part in reply.parts:
        if isinstance(part, Text):
            yield from map(TextDelta, _pieces(part.text))
        elif isinstance(part, Reasoning):
            yield from map(ReasoningDelta, _pieces(part.text))
        elif isinstance(part, Call):
            yield CallDelta(part.tool)
            yield from (CallDelta(part.tool, piece) for piece in _pieces(arguments_text(part)))


def _pieces(text: str) -> Iterator[str]:
    size = max(PIECE_CHARS_MIN, -(-len(text) // PIECES_MAX))
    for start in range(0, len(text), size):
        yield text[start : start + size]
