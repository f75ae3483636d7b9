"""Any other vendor: a request as pydantic-ai's messages, and its reply as ours. Pure.

What pydantic-ai makes of the messages for a vendor is its own affair; here they are a function of the request
alone, and those of a request are the beginning of those of the next one in its epoch. Everything in a reply
that is neither words nor a call (reasoning with its signature, a tool that the vendor ran) is kept as
pydantic-ai writes it down, and goes back to the same model unchanged or not at all. Refused here: reasoning
that nothing vouches for, since pydantic-ai would send it back as plain words.

The import of pydantic-ai is heavy and waits until a bridge is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from shiftbook import canonical
from shiftbook.messages import (
    AssistantPart,
    Call,
    CallDelta,
    Json,
    Media,
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
from shiftbook.prompt.cut import plain_text
from shiftbook.providers.arguments import call_from_text
from shiftbook.providers.call_ids import CallIds, Wire, vendor_of
from shiftbook.providers.capabilities import Capabilities
from shiftbook.providers.runs import SideRun, bytes_of, call_arguments, runs
from shiftbook.tools.contract import stable_schema

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, UserContent
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.usage import RequestUsage

WIRE: Wire = "bridge"
AT = datetime.fromtimestamp(0, UTC)
"""The time of every message: their times are not sent, and a request made twice is equal."""

STOPS: Mapping[str, StopReason] = {
    "stop": "end",
    "tool_call": "calls",
    "length": "length",
    "content_filter": "refusal",
}
OF_A_PART = ("id", "provider_name", "provider_details")
"""What pydantic-ai keeps of a vendor's beside the words or the call itself."""


# --- requests --------------------------------------------------------------------------------------


def messages(request: Request, row: Capabilities, name: str, *, quotes: bool) -> list[ModelMessage]:
    """The blocks of a request. `name` is the model that reasoning goes back to; `quotes` as in `runs`."""
    ids = CallIds(WIRE, row)
    tools: dict[str, str] = {}

    def takes_back(part: Reasoning) -> bool:
        tag = part.opaque
        return isinstance(tag, Mapping) and tag.get("wire") == WIRE and tag.get("by") == name

    found = runs(request, row, WIRE, takes_back=takes_back, quotes=quotes)
    made: list[ModelMessage] = []
    for number, run in enumerate(found):
        if run.side == "assistant":
            made += _assistant(run, ids, tools, name, is_last=number == len(found) - 1)
        else:
            made.append(_user(request, run, row, ids, tools))
    return made


def request_parameters(request: Request) -> ModelRequestParameters:
    """Instructions and tools, the tools in one order whatever order they were registered in."""
    from pydantic_ai.messages import InstructionPart
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    instructions = plain_text(request.instructions)
    return ModelRequestParameters(
        # Strict mode would have the vendor's schema be another than ours.
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=stable_schema(tool.parameters),
                strict=False,
            )
            for tool in sorted(request.tools, key=lambda tool: tool.name)
        ],
        instruction_parts=[InstructionPart(content=instructions)] if instructions.strip() else [],
    )


def _assistant(
    run: SideRun, ids: CallIds, tools: dict[str, str], name: str, *, is_last: bool
) -> Iterator[ModelResponse]:
    from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart

    parts: list[ModelResponsePart] = []
    vendor: str | None = None
    system: str | None = None
    of_text: Mapping[str, Any] = {}
    for _, part in run.parts:
        match part:
            case Reasoning(opaque=tag):
                system = tag.get("system") or system
                if "part" in tag:
                    parts.append(_loaded(tag["part"]))
                of_text = tag.get("text") or {}
                continue
            case Text(text):
                parts.append(TextPart(text, **of_text))
            case Call():
                tools[part.id] = plain_text(part.tool)
                kept = vendor_of(part, WIRE) or {}
                if kept.get("by") != name:
                    part, kept = replace(part, vendor=None), {}
                arguments, more = call_arguments(part), kept.get("part") or {}
                parts.append(ToolCallPart(tools[part.id], arguments, ids.of_call(part), **more))
        of_text = {}
    while parts and isinstance(parts[-1], ThinkingPart) and not is_last:
        parts.pop()
    for each in parts:
        vendor = vendor or getattr(each, "provider_name", None)
    if parts:
        yield ModelResponse(parts, timestamp=AT, provider_name=vendor, canonical_system=system)


def _user(
    request: Request, run: SideRun, row: Capabilities, ids: CallIds, tools: Mapping[str, str]
) -> ModelMessage:
    from pydantic_ai.messages import BinaryContent, ModelRequest, ToolReturnPart, UserPromptPart

    def binary(media: Media) -> BinaryContent:
        return BinaryContent(bytes_of(request, media) or b"", media_type=media.media_type)

    answers: list[Any] = []
    others: list[UserContent] = []
    for _, part in run.parts:
        match part:
            case Result(call, content, is_error):
                words = "\n\n".join(each.text for each in content if isinstance(each, Text))
                media = [binary(each) for each in content if isinstance(each, Media)]
                answers.append(
                    ToolReturnPart(
                        tools.get(call, "tool"),
                        [*([words] if words else []), *media] if media else words,
                        ids.of_answer(call),
                        timestamp=AT,
                        outcome="failed" if is_error else "success",
                    )
                )
            case Text(text):
                others.append(text)
            case Media():
                others.append(binary(part))
    if others:
        texts = [each for each in others if isinstance(each, str)]
        is_plain = row.content == "text" and len(texts) == len(others)
        answers.append(UserPromptPart("\n\n".join(texts) if is_plain else others, timestamp=AT))
    return ModelRequest(answers, timestamp=AT)


# --- replies ---------------------------------------------------------------------------------------


def told(event: object, tools: dict[int, str]) -> ReplyEvent | None:
    """What a reader should see of a streamed event. `tools` holds the names of calls by their place."""
    from pydantic_ai.messages import (
        PartDeltaEvent,
        PartStartEvent,
        TextPart,
        TextPartDelta,
        ThinkingPart,
        ThinkingPartDelta,
        ToolCallPart,
        ToolCallPartDelta,
    )

    match event:
        case PartStartEvent(part=TextPart(content=text)) if text:
            return TextDelta(text)
        case PartStartEvent(part=ThinkingPart(content=text)) if text:
            return ReasoningDelta(text)
        case PartStartEvent(index=index, part=ToolCallPart(tool_name=name, args=given)):
            tools[index] = name
            return CallDelta(name, _text_of(given))
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
            return TextDelta(text)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))) if text:
            return ReasoningDelta(text)
        case PartDeltaEvent(index=index, delta=ToolCallPartDelta(args_delta=given)) if given:
            return CallDelta(tools.get(index, ""), _text_of(given))
    return None


def reply_of(response: ModelResponse, name: str) -> Reply:
    """The reply that a whole response is; `name` is the model that its reasoning may go back to."""
    from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart

    tag: dict[str, Json] = {"wire": WIRE, "by": name}
    if response.canonical_system:
        tag["system"] = response.canonical_system
    parts: list[AssistantPart] = []
    for part in response.parts:
        match part:
            case TextPart(content=text):
                kept = _of_a_part(part)
                if text.strip() and ("id" in kept or "provider_details" in kept):
                    parts.append(Reasoning("", {**tag, "text": kept}))
                if text:
                    parts.append(Text(text))
            case ToolCallPart(tool_name=tool, args=given, tool_call_id=call):
                vendor = {**tag, "id": call, "part": _of_a_part(part)}
                if isinstance(given, dict):
                    parts.append(Call(call, tool, given, None, vendor))
                else:
                    parts.append(call_from_text(call, tool, given or "", vendor=vendor))
            case ThinkingPart(content=text):
                kept = {"signature": part.signature, **_of_a_part(part)}
                is_vouched = any(kept.get(key) for key in ("signature", "id", "provider_details"))
                parts.append(Reasoning(text, {**tag, "part": _written(part)} if is_vouched else None))
            case _:
                parts.append(Reasoning("", {**tag, "part": _written(part)}))
    stop = STOPS.get(response.finish_reason or "", "other")
    if stop in ("end", "other") and any(isinstance(part, Call) for part in parts):
        stop = "calls"
    if response.state == "suspended":
        stop = "pause"
    return Reply(tuple(parts), stop, usage_of(response.usage), response.model_name)


def usage_of(usage: RequestUsage) -> Usage:
    """Usage in the normal form. pydantic-ai counts reads and writes inside its input, for every vendor.

    A count that no vendor reported stands on the class and not in the object, and is None here. A count of
    writes is split by life: what is not said to live an hour lives five minutes.
    """
    if usage.unmeasured_requests:
        return Usage()
    seen = vars(usage)
    prompt, read, written = (
        seen.get(key) for key in ("input_tokens", "cache_read_tokens", "cache_write_tokens")
    )
    if (read or 0) + (written or 0) > (prompt or 0):
        read = written = None
    hour = None if written is None else min(seen.get("cache_write_1h_tokens") or 0, written)
    output = seen.get("output_tokens")
    reasoning = seen.get("output_reasoning_tokens", usage.details.get("reasoning_tokens"))
    return Usage(
        uncached=None if prompt is None else prompt - (read or 0) - (written or 0),
        cache_read=read,
        cache_write_5m=None if written is None else written - (hour or 0),
        cache_write_1h=hour,
        output=output,
        reasoning=reasoning if reasoning is not None and reasoning <= (output or 0) else None,
    )


def _of_a_part(part: object) -> dict[str, Json]:
    found = {key: getattr(part, key, None) for key in OF_A_PART}
    return {key: value for key, value in found.items() if value is not None}


def _text_of(given: str | Mapping[str, Any] | None) -> str:
    if given is None or isinstance(given, str):
        return given or ""
    return canonical.encode(dict(given))


def _written(part: ModelResponsePart) -> Json:
    """A part as pydantic-ai writes it down."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse

    whole = ModelMessagesTypeAdapter.dump_python([ModelResponse([part], timestamp=AT)], mode="json")
    return whole[0]["parts"][0]


def _loaded(written: Json) -> ModelResponsePart:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    whole = ModelMessagesTypeAdapter.validate_python([{"kind": "response", "parts": [written]}])
    part: ModelResponsePart = whole[0].parts[0]  # type: ignore[assignment]
    return part
