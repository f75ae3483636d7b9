"""OpenAI Chat Completions and all that speak it: a request as its body, a completion as a reply. Pure.

Answers to calls are messages of their own and hold text alone; images and files of answers follow in a
user's message behind the last of them. What an endpoint does not document is not sent: which fields it
takes, whether contents are lists of parts, and whether reasoning goes back, is its row in `capabilities`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shiftbook.economics import usage_forms
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

WIRE: Wire = "openai-chat"
RESERVED = frozenset({"model", "messages", "tools", "stream", "stream_options", "n"})
"""What the wire fills itself: no parameter may bear such a name."""

STOPS: Mapping[str, StopReason] = {
    "stop": "end",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "refusal",
}
REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Fields under which endpoints give a model's reasoning as text."""

BREAKPOINT: Mapping[str, Json] = {"mode": "explicit"}
Parts = list[tuple[int, dict[str, Json]]]
"""Content parts with the numbers of the blocks that they were made from."""


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """What goes out beside the prompt, the same for every request of an agent."""

    model: str
    max_tokens: int | None = None


def body(
    request: Request, row: Capabilities, settings: ChatSettings, parameters: Mapping[str, Json]
) -> dict[str, Json]:
    """The JSON body of a request, keys and tools in one order whatever order they were registered in."""
    more = merged_parameters(request, parameters, RESERVED)
    made: dict[str, Json] = {"model": settings.model}
    if settings.max_tokens is not None:
        made[row.output_limit] = settings.max_tokens
    if row.cache in ("key", "breakpoints"):
        made["prompt_cache_key"] = request.run
    if row.cache == "breakpoints":
        made["prompt_cache_options"] = {"mode": "explicit"}
    if request.tools:
        made["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": stable_schema(tool.parameters),
                },
            }
            for tool in sorted(request.tools, key=lambda tool: tool.name)
        ]
    made["messages"] = _messages(request, row)
    return {**made, **more}


def reply_of(completion: Mapping[str, Any], row: Capabilities) -> Reply:
    """The reply that a whole completion is. Reasoning is kept with the field that it came in."""
    choice = completion["choices"][0]
    message = choice["message"]
    parts: list[AssistantPart] = []
    for name in REASONING_FIELDS:
        if isinstance(message.get(name), str) and message[name]:
            parts.append(Reasoning(message[name], {"wire": WIRE, "field": name}))
            break
    spoken = (_words(message.get("content")), message.get("refusal"))
    parts.extend(Text(words) for words in spoken if words)
    calls = [_call(call) for call in message.get("tool_calls") or ()]
    stop = STOPS.get(choice.get("finish_reason") or "", "other")
    if stop == "end":
        # Some endpoints finish a reply that asks for tools with "stop".
        stop = "calls" if calls else "refusal" if message.get("refusal") else "end"
    usage = _usage(completion.get("usage"), row)
    return Reply((*parts, *calls), stop, usage, completion.get("model"))


def _usage(payload: Mapping[str, Any] | None, row: Capabilities) -> Usage:
    if not payload:
        return Usage()
    return usage_forms.deepseek(payload) if row.usage == "deepseek" else usage_forms.openai_chat(payload)


def _words(content: Json) -> str:
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _call(call: Mapping[str, Any]) -> Call:
    function = call["function"]
    given = function.get("arguments")
    name = call.get("id") or ""
    vendor = {"wire": WIRE, "id": name} if name else None
    if isinstance(given, Mapping):  # some endpoints parse arguments before they send them
        return Call(name, function["name"], dict(given), None, vendor)
    return call_from_text(name, function["name"], given or "", vendor=vendor)


# --- messages --------------------------------------------------------------------------------------


def _messages(request: Request, row: Capabilities) -> list[dict[str, Json]]:
    def takes_back(part: Reasoning) -> bool:
        tag = part.opaque
        is_ours = isinstance(tag, Mapping) and tag.get("wire") == WIRE
        return is_ours and tag.get("field") == row.reasoning_field and bool(part.text)

    ids = CallIds(WIRE, row)
    messages: list[dict[str, Json]] = []
    placed: Parts = []
    if request.instructions.strip():
        fixed: Parts = [(-1, {"type": "text", "text": plain_text(request.instructions)})]
        messages.append({"role": row.system_role, "content": _content(fixed, row.cache == "breakpoints")})
        placed += fixed
    for run in runs(request, row, WIRE, takes_back=takes_back, quotes=row.kept_pairs == "quoted"):
        if run.side == "assistant":
            messages += _assistant(run, row, ids)
        else:
            messages += _user(request, run, row, ids, placed)
    if row.cache == "breakpoints":
        mark(placed, [-1, *last_places(request.marks, len(request.blocks))])
    return messages


def mark(placed: Parts, ends: Sequence[int]) -> None:
    """Set a breakpoint on the last part at or before each of the blocks; the parts are the body's own."""
    for end in ends:
        found = [part for number, part in placed if number <= end]
        if found:
            found[-1]["prompt_cache_breakpoint"] = dict(BREAKPOINT)


def _assistant(run: SideRun, row: Capabilities, ids: CallIds) -> list[dict[str, Json]]:
    words = [part.text for _, part in run.parts if isinstance(part, Text)]
    thought = [part.text for _, part in run.parts if isinstance(part, Reasoning)]
    calls = [
        {
            "id": ids.of_call(part),
            "type": "function",
            "function": {"name": plain_text(part.tool), "arguments": call_text(part)},
        }
        for _, part in run.parts
        if isinstance(part, Call)
    ]
    if not words and not calls:
        return []
    message: dict[str, Json] = {"role": "assistant", "content": "\n\n".join(words) if words else None}
    if thought:
        message[row.reasoning_field] = plain_text("\n\n".join(thought))
    if calls:
        message["tool_calls"] = calls
    return [message]


def _user(
    request: Request, run: SideRun, row: Capabilities, ids: CallIds, placed: Parts
) -> list[dict[str, Json]]:
    messages: list[dict[str, Json]] = []
    others: Parts = []
    for number, part in run.parts:
        if isinstance(part, Result):
            texts: Parts = [
                (number, {"type": "text", "text": each.text})
                for each in part.content
                if isinstance(each, Text)
            ]
            media = [each for each in part.content if isinstance(each, Media)]
            name = ids.of_answer(part.call)
            if media:
                texts = texts or [(number, {"type": "text", "text": "[see the images or files below]"})]
                others.append((number, {"type": "text", "text": f"[Images or files of answer {name}:]"}))
                others += [(number, _media(request, each)) for each in media]
            content = _content(texts, row.cache == "breakpoints")
            messages.append({"role": "tool", "tool_call_id": name, "content": content})
            placed += texts
        elif isinstance(part, Media):
            others.append((number, _media(request, part)))
        elif isinstance(part, Text):
            others.append((number, {"type": "text", "text": part.text}))
    if others:
        messages.append({"role": "user", "content": _content(others, row.content == "parts")})
        placed += others
    return messages


def _content(parts: Parts, as_parts: bool) -> Json:
    """The parts as they are, or as one text where the endpoint wants that and there is nothing else."""
    if as_parts or any(part["type"] != "text" for _, part in parts):
        return [part for _, part in parts]
    return "\n\n".join(part["text"] for _, part in parts)


def _media(request: Request, media: Media) -> dict[str, Json]:
    url = data_url(request, media)
    if media.media_type == PDF:
        name = plain_text(media.name) if media.name else "file.pdf"
        return {"type": "file", "file": {"filename": name, "file_data": url}}
    return {"type": "image_url", "image_url": {"url": url}}
