"""OpenAI Responses: a request as its body, and a response as a reply. Pure.

Nothing is stored at the vendor: every request carries the whole prompt, and reasoning comes and goes as
encrypted items, verbatim within its epoch. Ids of messages and calls as items are never sent; an item of
reasoning is sent only in front of what it led to. Contents are lists of parts throughout, so that a cache
breakpoint changes nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shiftbook.economics.usage_forms import openai_responses as usage_of
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
    Usage,
)
from shiftbook.prompt.cut import plain_text
from shiftbook.providers.arguments import call_from_text
from shiftbook.providers.call_ids import CallIds, Wire
from shiftbook.providers.capabilities import Capabilities
from shiftbook.providers.openai_chat_wire import Parts, mark
from shiftbook.providers.runs import (
    PDF,
    SideRun,
    call_text,
    data_url,
    last_places,
    merged_parameters,
    runs,
)
from shiftbook.tools.contract import stable_schema

WIRE: Wire = "openai-responses"
RESERVED = frozenset(
    {
        "model",
        "input",
        "instructions",
        "tools",
        "stream",
        "store",
        "previous_response_id",
        "conversation",
        "background",
        "prompt",
    }
)
"""What the wire fills itself, and what would keep a state at the vendor."""

ENCRYPTED = "reasoning.encrypted_content"
INCOMPLETE: Mapping[str, StopReason] = {"max_output_tokens": "length", "content_filter": "refusal"}


@dataclass(frozen=True, slots=True)
class ResponsesSettings:
    """What goes out beside the prompt, the same for every request of an agent."""

    model: str
    max_tokens: int | None = None
    server_tools: Sequence[Mapping[str, Json]] = ()
    """Tools that the vendor runs, as it declares them; they come after ours."""


def body(
    request: Request, row: Capabilities, settings: ResponsesSettings, parameters: Mapping[str, Json]
) -> dict[str, Json]:
    """The JSON body of a request, keys and tools in one order whatever order they were registered in."""
    more = merged_parameters(request, parameters, RESERVED)
    made: dict[str, Json] = {"model": settings.model, "store": False}
    if settings.max_tokens is not None:
        made["max_output_tokens"] = settings.max_tokens
    asked = more.pop("include", None)
    include = set(asked if isinstance(asked, list | tuple) else ())
    if row.reasoning == "encrypted":
        include.add(ENCRYPTED)
    if include:
        made["include"] = sorted(include)
    if row.cache in ("key", "breakpoints"):
        made["prompt_cache_key"] = request.run
    if row.cache == "breakpoints":
        made["prompt_cache_options"] = {"mode": "explicit"}
    if tools := _tools(request, settings.server_tools):
        made["tools"] = tools
    if request.instructions.strip() and row.cache != "breakpoints":
        made["instructions"] = plain_text(request.instructions)
    made["input"] = _input(request, row)
    return {**made, **more}


def reply_of(response: Mapping[str, Any]) -> Reply:
    """The reply that a whole response is. One that failed is none: see `faults.reported`."""
    parts: list[AssistantPart] = []
    refused = False
    for item in response["output"]:
        parts.extend(_parts(item))
        refused = refused or _is_refusal(item)
    stop: StopReason = "end"
    if response.get("status") == "incomplete":
        stop = INCOMPLETE.get((response.get("incomplete_details") or {}).get("reason") or "", "other")
    elif any(isinstance(part, Call) for part in parts):
        stop = "calls"
    elif refused:
        stop = "refusal"
    usage = response.get("usage")
    return Reply(tuple(parts), stop, usage_of(usage) if usage else Usage(), response.get("model"))


def takes_back(part: Reasoning) -> bool:
    """Whether a block is an item of this wire that can be sent again without a state at the vendor."""
    item = part.opaque
    kind = item.get("type") if isinstance(item, Mapping) else None
    if not isinstance(kind, str):
        return False
    if kind == "reasoning":
        return bool(item.get("encrypted_content"))
    return kind.endswith(("_call", "_call_output"))


def _tools(request: Request, server_tools: Sequence[Mapping[str, Json]]) -> list[dict[str, Json]]:
    ours = [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": stable_schema(tool.parameters),
            "strict": False,
        }
        for tool in sorted(request.tools, key=lambda tool: tool.name)
    ]
    return [*ours, *(dict(tool) for tool in server_tools)]


# --- items -----------------------------------------------------------------------------------------


def _input(request: Request, row: Capabilities) -> list[dict[str, Json]]:
    ids = CallIds(WIRE, row)
    items: list[dict[str, Json]] = []
    placed: Parts = []
    if request.instructions.strip() and row.cache == "breakpoints":
        text = {"type": "input_text", "text": plain_text(request.instructions)}
        placed.append((-1, text))
        items.append({"type": "message", "role": row.system_role, "content": [text]})
    for run in runs(request, row, WIRE, takes_back=takes_back, quotes=row.kept_pairs == "quoted"):
        if run.side == "assistant":
            items += _assistant(run, row, ids)
        else:
            items += _user(request, run, ids, placed)
    if row.cache == "breakpoints":
        mark(placed, [-1, *last_places(request.marks, len(request.blocks))])
    return items


def _assistant(run: SideRun, row: Capabilities, ids: CallIds) -> list[dict[str, Json]]:
    items: list[dict[str, Json]] = []
    calls_left = sum(isinstance(part, Call) for _, part in run.parts)
    for _, part in run.parts:
        match part:
            case Text(text):
                message: dict[str, Json] = {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": text}],
                }
                if row.phases:
                    message["phase"] = "commentary" if calls_left else "final_answer"
                items.append(message)
            case Reasoning(opaque=item):
                items.append(dict(item))
            case Call():
                calls_left -= 1
                items.append(
                    {
                        "type": "function_call",
                        "call_id": ids.of_call(part),
                        "name": plain_text(part.tool),
                        "arguments": call_text(part),
                    }
                )
    while items and items[-1]["type"] == "reasoning":
        items.pop()
    return items


def _user(request: Request, run: SideRun, ids: CallIds, placed: Parts) -> list[dict[str, Json]]:
    items: list[dict[str, Json]] = []
    for number, part in run.parts:
        if isinstance(part, Result):
            output = [_part(request, each) for each in part.content]
            items.append(
                {"type": "function_call_output", "call_id": ids.of_answer(part.call), "output": output}
            )
            placed += [(number, each) for each in output]
        elif isinstance(part, Text | Media):
            if not items or items[-1]["type"] != "message":
                items.append({"type": "message", "role": "user", "content": []})
            made = _part(request, part)
            items[-1]["content"].append(made)
            placed.append((number, made))
    return items


def _part(request: Request, part: Text | Media | object) -> dict[str, Json]:
    if isinstance(part, Media):
        url = data_url(request, part)
        if part.media_type == PDF:
            name = plain_text(part.name) if part.name else "file.pdf"
            return {"type": "input_file", "filename": name, "file_data": url}
        return {"type": "input_image", "detail": "auto", "image_url": url}
    assert isinstance(part, Text)
    return {"type": "input_text", "text": part.text}


# --- replies ---------------------------------------------------------------------------------------


def _parts(item: Mapping[str, Any]) -> Iterator[AssistantPart]:
    kind = item["type"]
    if kind == "message":
        for part in item["content"]:
            if words := part.get("text") or part.get("refusal"):
                yield Text(words)
    elif kind == "function_call":
        vendor = {"wire": WIRE, "id": item["call_id"]}
        yield call_from_text(item["call_id"], item["name"], item.get("arguments") or "", vendor=vendor)
    else:
        words = "\n".join(each.get("text") or "" for each in item.get("summary") or ())
        kept = {key: value for key, value in item.items() if value is not None}
        yield Reasoning(words if kind == "reasoning" else "", kept)


def _is_refusal(item: Mapping[str, Any]) -> bool:
    return item["type"] == "message" and any(part.get("type") == "refusal" for part in item["content"])
