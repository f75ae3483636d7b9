"""A request's blocks as runs of parts of one side: what all wires have in common.

Parts that a wire cannot take are left out or told in words here, before neighbours are joined, so that no
run is empty and sides alternate. Each part keeps the number of its block, by which cache marks are found.
Nothing is reordered.

Where a vendor wants no call without the reasoning that led to it, calls and answers of earlier epochs are
told as a record on the user's side.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from shiftbook.errors import AgentMistake
from shiftbook.messages import Call, Json, Media, Missing, Part, Reasoning, Request, Result, Side, Text
from shiftbook.prompt import wording
from shiftbook.prompt.cut import is_blank, plain_arguments, plain_text
from shiftbook.providers.arguments import arguments_text
from shiftbook.providers.call_ids import Wire, vendor_of
from shiftbook.providers.capabilities import Capabilities

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What both vendors take as images."""
PDF = "application/pdf"

TakesBack = Callable[[Reasoning], bool]
"""Whether a wire can send a reasoning block back: it is of this wire, and whole."""


@dataclass(slots=True)
class SideRun:
    """Neighbouring parts of one side, each with the number of its block."""

    side: Side
    parts: list[tuple[int, Part]] = field(default_factory=list)


def runs(
    request: Request, row: Capabilities, wire: Wire, *, takes_back: TakesBack, quotes: bool
) -> list[SideRun]:
    """The runs of a request. With `quotes`, calls that this vendor did not make in this epoch are told."""
    found: list[SideRun] = []
    told: set[str] = set()
    for number, block in enumerate(request.blocks):
        for part in block.parts:
            if isinstance(part, Reasoning) and (row.reasoning == "none" or not takes_back(part)):
                continue
            if quotes and isinstance(part, Call | Result):
                sent = _told(request, row, wire, told, block.side, part)
            else:
                sent = _sent(request, row, block.side, part)
            for side, each in sent:
                if not found or found[-1].side != side:
                    found.append(SideRun(side))
                found[-1].parts.append((number, each))
    return found


def _told(
    request: Request, row: Capabilities, wire: Wire, told: set[str], side: Side, part: Call | Result
) -> Iterator[tuple[Side, Part]]:
    """A call that this vendor did not make in this epoch, and its answer, as a record in words."""
    if isinstance(part, Call) and vendor_of(part, wire) is None:
        told.add(part.id)
        text = arguments_text(Call(part.id, part.tool, plain_arguments(part)))
        yield "user", Text(f"[Record: call {part.id} of {plain_text(part.tool)}:]\n{text}")
    elif isinstance(part, Result) and part.call in told:
        how = "failed" if part.is_error else "done"
        yield "user", Text(f"[Record: answer to call {part.call}, {how}:]")
        yield from (("user", each) for each in _content(request, row, part))
    else:
        yield from _sent(request, row, side, part)


def _sent(request: Request, row: Capabilities, side: Side, part: Part) -> Iterator[tuple[Side, Part]]:
    match part:
        case Text(text):
            if not is_blank(text):
                yield side, Text(plain_text(text))
        case Missing(what):
            yield side, Text(wording.missing(plain_text(what)))
        case Media():
            yield side, _shown(request, row, part)
        case Result():
            yield side, Result(part.call, tuple(_content(request, row, part)), part.is_error)
        case Reasoning() | Call():
            yield side, part


def _content(request: Request, row: Capabilities, result: Result) -> Iterator[Text | Media]:
    empty = True
    for part in result.content:
        if isinstance(part, Media):
            empty = False
            yield _shown(request, row, part)
        elif isinstance(part, Missing):
            empty = False
            yield Text(wording.missing(plain_text(part.what)))
        elif not is_blank(part.text):
            empty = False
            yield Text(plain_text(part.text))
    if empty:
        yield Text(wording.NO_OUTPUT)


def _shown(request: Request, row: Capabilities, media: Media) -> Media | Text:
    """The piece itself, or a line in its place where the model does not take it or its bytes are gone."""
    name = f"{media.name}, " if media.name else ""
    what = plain_text(f"{name}{media.media_type}, {media.size} bytes")
    takes = row.images if media.media_type in IMAGE_TYPES else row.files and media.media_type == PDF
    if not takes:
        return Text(f"[not shown, this model does not take it: {what}]")
    if bytes_of(request, media) is None:
        return Text(wording.missing(what))
    return media


def bytes_of(request: Request, media: Media) -> bytes | None:
    """The bytes of a piece, None where the run has them no more."""
    if request.blob is None:
        return None
    try:
        return request.blob(media.blob)
    except KeyError:
        return None


def base64_of(request: Request, media: Media) -> str:
    """The bytes of a piece that `runs` let through, as text."""
    return b64encode(bytes_of(request, media) or b"").decode("ascii")


def data_url(request: Request, media: Media) -> str:
    """The same as a data URL."""
    return f"data:{media.media_type};base64,{base64_of(request, media)}"


def call_arguments(call: Call) -> dict[str, Json]:
    """The arguments of a call as a JSON object that can be sent."""
    return plain_arguments(call)


def call_text(call: Call) -> str:
    """The argument text of a call: as its vendor wrote it where that is an object, else as it reads."""
    if call.raw is not None and call.arguments is not None:
        return plain_text(call.raw)
    return arguments_text(Call(call.id, call.tool, call_arguments(call)))


def merged_parameters(
    request: Request, given: Mapping[str, Json], reserved: frozenset[str]
) -> dict[str, Json]:
    """The provider's own parameters under the agent's, in the order of their names.

    Raises `AgentMistake` for a name in `reserved`: what the prompt says is not for parameters to change.
    """
    merged = {**given, **request.parameters}
    refuse_reserved(merged, reserved)
    return {name: merged[name] for name in sorted(merged)}


def refuse_reserved(parameters: Mapping[str, Json], reserved: frozenset[str]) -> None:
    """Raise `AgentMistake` when a parameter bears a name that the wire fills itself."""
    if taken := sorted(reserved.intersection(parameters)):
        raise AgentMistake(
            f"The parameter {taken[0]!r} is filled from the run's prompt: take it out of the parameters."
        )


def last_places(marks: tuple[int, ...], count: int) -> list[int]:
    """The numbers of the blocks after which a cache should keep the prompt, rising, the last one included."""
    return sorted({mark - 1 for mark in (*marks, count) if 0 < mark <= count})
