"""Anthropic Messages: a request as its body, and a message as a reply. Pure.

Cache markers stand in at most four places: after the fixed part, after the first request of the epoch, on
the exact last block of the request before this one (a direct hit, so that the vendor's look-back of 20
blocks cannot miss), and on the last block. Leaving them out, the body of a request is the beginning of the
body of the next one in its epoch.

Reasoning, and blocks of tools that the vendor ran, come back verbatim or not at all; so do the citations of
a text, which stand behind it as a block of their own. A search that was begun and never answered is left out
unless the prompt ends with it, where the vendor takes the turn up again.
Refused here: repairing what a policy has put in the wrong order, except that answers come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shiftbook.economics.cache_request import Ttl, four_markers
from shiftbook.economics.usage_forms import anthropic as usage_of
from shiftbook.messages import (
    AssistantPart,
    Call,
    Json,
    Media,
    Reasoning,
    Reply,
    Request,
    Result,
    StopReason,
    Text,
)
from shiftbook.prompt.cut import plain_text
from shiftbook.providers.arguments import call_from_text
from shiftbook.providers.call_ids import CallIds, Wire, vendor_of
from shiftbook.providers.capabilities import Capabilities
from shiftbook.providers.runs import (
    PDF,
    SideRun,
    base64_of,
    call_arguments,
    last_places,
    merged_parameters,
    runs,
)
from shiftbook.tools.contract import stable_schema

WIRE: Wire = "anthropic"
RESERVED = frozenset({"model", "messages", "system", "tools", "stream", "cache_control"})
"""What the wire fills itself: no parameter may bear such a name."""

STOPS: Mapping[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
}
_REASONED = frozenset({"thinking", "redacted_thinking"})

Placed = tuple[int, dict[str, Json]]
"""The number of a block of the prompt and a content block made from it."""


@dataclass(frozen=True, slots=True)
class MessagesSettings:
    """What goes out beside the prompt, the same for every request of an agent."""

    model: str
    max_tokens: int
    ttl: Ttl = "5m"
    server_tools: Sequence[Mapping[str, Json]] = ()
    """Tools that the vendor runs, as it declares them; they come after ours."""


def body(
    request: Request, row: Capabilities, settings: MessagesSettings, parameters: Mapping[str, Json]
) -> dict[str, Json]:
    """The JSON body of a request, keys and tools in one order whatever order they were registered in."""
    more = merged_parameters(request, parameters, RESERVED)
    tools = _tools(request, settings.server_tools)
    system: list[dict[str, Json]] = []
    if request.instructions.strip():
        system.append({"type": "text", "text": plain_text(request.instructions)})
    messages = _messages(request, row, _quotes(row, more))
    if row.cache == "markers":
        _mark(request, settings.ttl, [*tools, *system], messages)
    made: dict[str, Json] = {"model": settings.model, "max_tokens": settings.max_tokens}
    if tools:
        made["tools"] = tools
    if system:
        made["system"] = system
    made["messages"] = [
        {"role": role, "content": [block for _, block in content]} for role, content in messages
    ]
    return {**made, **more}


def reply_of(message: Mapping[str, Any], *, ttl: Ttl | None = None) -> Reply:
    """The reply that a whole message is. `ttl` is the life that the request's markers asked for."""
    parts: list[AssistantPart] = []
    for block in message["content"]:
        parts.extend(_part(block))
    stop = STOPS.get(message.get("stop_reason") or "", "other")
    usage = usage_of(message.get("usage") or {}, asked_ttl=ttl)
    return Reply(tuple(parts), stop, usage, message.get("model"))


def takes_back(part: Reasoning) -> bool:
    """Whether a block is Anthropic's and whole: reasoning with its signature, or a vendor's tool at work."""
    block = part.opaque
    if not isinstance(block, Mapping):
        return False
    match block.get("type"):
        case "thinking":
            return bool(block.get("signature"))
        case "redacted_thinking":
            return bool(block.get("data"))
        case "server_tool_use" | "container_upload" | "text":
            return True
        case str() as kind:
            return kind.endswith("_tool_result")
    return False


def _quotes(row: Capabilities, parameters: Mapping[str, Json]) -> bool:
    thinking = parameters.get("thinking")
    manual = isinstance(thinking, Mapping) and thinking.get("type") == "enabled"
    return row.kept_pairs == "quoted" or (row.kept_pairs == "unless manual thinking" and manual)


def _tools(request: Request, server_tools: Sequence[Mapping[str, Json]]) -> list[dict[str, Json]]:
    ours = [
        {"name": tool.name, "description": tool.description, "input_schema": stable_schema(tool.parameters)}
        for tool in sorted(request.tools, key=lambda tool: tool.name)
    ]
    return [*ours, *(dict(tool) for tool in server_tools)]


# --- messages --------------------------------------------------------------------------------------


def _messages(request: Request, row: Capabilities, quotes: bool) -> list[tuple[str, list[Placed]]]:
    ids = CallIds(WIRE, row)
    found = runs(request, row, WIRE, takes_back=takes_back, quotes=quotes)
    messages: list[tuple[str, list[Placed]]] = []
    for number, run in enumerate(found):
        if run.side == "assistant":
            blocks = _assistant(run, ids, is_last=number == len(found) - 1)
        else:
            blocks = _user(request, run, ids)
        if blocks:
            messages.append((run.side, blocks))
    return messages


def _assistant(run: SideRun, ids: CallIds, *, is_last: bool) -> list[Placed]:
    blocks: list[Placed] = []
    for number, part in run.parts:
        match part:
            case Text(text):
                blocks.append((number, {"type": "text", "text": text}))
            case Reasoning(opaque={"type": "text"} as cited):
                # What the text before it had beside its words; without them there is nothing to put it on.
                if blocks and blocks[-1][0] == number and blocks[-1][1]["type"] == "text":
                    blocks[-1][1].update(cited)
            case Reasoning(opaque=block):
                blocks.append((number, dict(block)))
            case Call():
                vendor = vendor_of(part, WIRE) or {}
                more = {key: vendor[key] for key in vendor if key not in ("wire", "id")}
                used = {"type": "tool_use", "id": ids.of_call(part), "name": plain_text(part.tool)}
                blocks.append((number, {**used, "input": call_arguments(part), **more}))
    if is_last:
        return blocks
    answered = {block.get("tool_use_id") for _, block in blocks}
    blocks = [
        (number, block)
        for number, block in blocks
        if block["type"] != "server_tool_use" or block.get("id") in answered
    ]
    while blocks and blocks[-1][1]["type"] in _REASONED:
        blocks.pop()
    return blocks


def _user(request: Request, run: SideRun, ids: CallIds) -> list[Placed]:
    answers: list[Placed] = []
    others: list[Placed] = []
    for number, part in run.parts:
        match part:
            case Result(call, content, is_error):
                told = [_content(request, each) for each in content]
                answer: dict[str, Json] = {"type": "tool_result", "tool_use_id": ids.of_answer(call)}
                if is_error:
                    # The vendor takes nothing but text in an answer that is an error.
                    others += [(number, each) for each in told if each["type"] != "text"]
                    told = [each for each in told if each["type"] == "text"] or [
                        {"type": "text", "text": "[the images or files of this answer stand below]"}
                    ]
                answer["content"] = told
                if is_error:
                    answer["is_error"] = True
                answers.append((number, answer))
            case Text() | Media():
                others.append((number, _content(request, part)))
    return [*answers, *others]


def _content(request: Request, part: object) -> dict[str, Json]:
    if isinstance(part, Media):
        source = {"type": "base64", "media_type": part.media_type, "data": base64_of(request, part)}
        if part.media_type != PDF:
            return {"type": "image", "source": source}
        titled = {"title": plain_text(part.name)} if part.name else {}
        return {"type": "document", "source": source, **titled}
    assert isinstance(part, Text)
    return {"type": "text", "text": part.text}


def _mark(
    request: Request, ttl: Ttl, fixed: list[dict[str, Json]], messages: list[tuple[str, list[Placed]]]
) -> None:
    """Put the markers on the blocks, which are this body's own."""
    placed = [each for _, content in messages for each in content]
    able = [(place, number) for place, (number, block) in enumerate(placed) if block["type"] not in _REASONED]

    def place_of(last: int) -> int | None:
        found = [place for place, number in able if number <= last]
        return len(fixed) + found[-1] if found else None

    ends = [place_of(last) for last in last_places(request.marks, len(request.blocks))]
    end = ends.pop() if ends else None
    first, *others = ends or [None]
    markers = four_markers(
        fixed_end=len(fixed) - 1 if fixed else None,
        brief_end=first,
        previous_end=others[-1] if others else None,
        end=end if end is not None else max(len(fixed) - 1, 0),
        ttl=ttl,
    )
    blocks = [*fixed, *(block for _, block in placed)]
    for marker in markers:
        if marker.at < len(blocks):
            control: dict[str, Json] = {"type": "ephemeral"}
            blocks[marker.at]["cache_control"] = control if ttl == "5m" else {**control, "ttl": ttl}


# --- replies ---------------------------------------------------------------------------------------


def _part(block: Mapping[str, Any]) -> Iterator[AssistantPart]:
    kind = block["type"]
    if kind == "text":
        yield Text(block["text"])
        if block.get("citations"):
            yield Reasoning("", {"type": "text", "citations": block["citations"]})
    elif kind == "thinking":
        yield Reasoning(block.get("thinking") or "", dict(block) if block.get("signature") else None)
    elif kind == "tool_use":
        more = {
            key: block[key]
            for key in sorted(block)
            if key not in ("type", "id", "name", "input") and block[key] is not None
        }
        vendor = {"wire": WIRE, "id": block["id"], **more}
        given = block["input"]
        if isinstance(given, str):
            yield call_from_text(block["id"], block["name"], given, vendor=vendor)
        else:
            yield Call(block["id"], block["name"], given, None, vendor)
    else:
        yield Reasoning("", dict(block))
