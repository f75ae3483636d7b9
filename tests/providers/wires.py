"""The three wires side by side: how a request's body is made, who judges it, and what a cache reads of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shiftbook.economics.cache_vendors import cache_rule
from shiftbook.messages import (
    Block,
    Call,
    Media,
    Reasoning,
    Reply,
    ReplyEvent,
    Request,
    Result,
    Text,
    ToolSchema,
)
from shiftbook.providers import anthropic_wire, openai_chat_wire, openai_responses_wire
from shiftbook.providers.anthropic_provider import Anthropic
from shiftbook.providers.capabilities import capabilities
from shiftbook.providers.openai_provider import OpenAIChat, OpenAIResponses
from shiftbook.testing.server import (
    ANTHROPIC_RULES,
    CHAT_RULES,
    RESPONSES_RULES,
    Known,
    ProviderServer,
    Refusal,
    first_refusal,
)

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 9_000
PDF = b"%PDF-1.7 " + b"x" * 3_000
BLOBS = {"ab" * 32: PNG, "cd" * 32: PDF}
IMAGE = Media("ab" * 32, "image/png", len(PNG), "shot.png")
FILE = Media("cd" * 32, "application/pdf", len(PDF), "bill.pdf")

LOOKUP = ToolSchema(
    "lookup",
    "Looks a number up.",
    {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
)

Body = dict[str, Any]


@dataclass(frozen=True)
class Wire:
    """One wire with one model on it."""

    name: str
    model: str
    make: Callable[[Request, Mapping[str, Any]], Body]
    rules: Any
    provider: Callable[..., Any]

    def body(self, request: Request, parameters: Mapping[str, Any] | None = None) -> Body:
        """The body as it goes out."""
        return self.make(request, parameters or {})

    def refusal(self, body: Body) -> Refusal | None:
        """What the vendor would say against the body."""
        return first_refusal(self.rules, body, Known(cache=cache_rule(self.model)))

    def at(self, server: ProviderServer, **more: Any) -> Any:
        """A provider that talks to the server."""
        url = server.anthropic_url if self.name == "anthropic" else server.openai_url
        return self.provider(self.model, **({"base_url": url, "api_key": "sk-test-key-1234"} | more))


def _anthropic(model: str) -> Wire:
    asks = anthropic_wire.MessagesSettings(model, 1_000)

    def make(request: Request, parameters: Mapping[str, Any]) -> Body:
        return anthropic_wire.body(request, capabilities(model), asks, parameters)

    return Wire("anthropic", model, make, ANTHROPIC_RULES, Anthropic)


def _chat(model: str) -> Wire:
    asks = openai_chat_wire.ChatSettings(model)

    def make(request: Request, parameters: Mapping[str, Any]) -> Body:
        return openai_chat_wire.body(request, capabilities(model), asks, parameters)

    return Wire("openai-chat", model, make, CHAT_RULES, OpenAIChat)


def _responses(model: str) -> Wire:
    asks = openai_responses_wire.ResponsesSettings(model)

    def make(request: Request, parameters: Mapping[str, Any]) -> Body:
        return openai_responses_wire.body(request, capabilities(model), asks, parameters)

    return Wire("openai-responses", model, make, RESPONSES_RULES, OpenAIResponses)


ANTHROPIC = _anthropic("claude-sonnet-5-5")
CHAT = _chat("gpt-6-sol")
RESPONSES = _responses("gpt-6-sol")
COMPATIBLE = _chat("some-local-model")
WIRES = (ANTHROPIC, CHAT, RESPONSES)
ALL = (*WIRES, COMPATIBLE, _chat("deepseek-v4"), _chat("mistral-large"), _responses("gpt-4.1"))


def request(blocks: Sequence[Block], **changes: Any) -> Request:
    """A request with one tool, and the bytes of `IMAGE` and `FILE`."""
    made = Request("run7", 1, 1, "m", "Be brief.", (LOOKUP,), tuple(blocks), blob=BLOBS.__getitem__)
    return replace(made, **changes)


def user(*parts: Any) -> Block:
    return Block("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def assistant(*parts: Any) -> Block:
    return Block("assistant", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def result(call: str, *parts: Any, error: bool = False) -> Result:
    content = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Result(call, content, error)


def own(reply: Reply, turn: int) -> Block:
    """The reply as the loop would show it in the next request: calls under our ids."""
    parts: list[Any] = []
    number = 0
    for part in reply.parts:
        if isinstance(part, Call):
            number += 1
            part = replace(part, id=f"{turn}.{number}")
        parts.append(part)
    while parts and isinstance(parts[-1], Reasoning):
        parts.pop()
    return Block("assistant", tuple(parts))


def ask(provider: Any, asked: Request, events: list[ReplyEvent] | None = None) -> Reply:
    """Ask once, in a loop of its own."""
    seen = [] if events is None else events

    async def once() -> Reply:
        reply: Reply = await provider.reply(asked, seen.append)
        return reply

    return asyncio.run(once())


def leaves(body: Body) -> list[Any]:
    """What a cache reads, piece by piece in order, without markers."""
    found: list[Any] = [
        ("tools", body.get("tools")),
        ("system", body.get("system"), body.get("instructions")),
    ]
    for message in body.get("messages") or body["input"]:
        head = {key: value for key, value in message.items() if key not in ("content", "output")}
        content = message.get("content", message.get("output"))
        if isinstance(content, list) and message.get("role") in ("user", "assistant"):
            found += [(message["role"], unmarked(part)) for part in content]
        else:
            found.append((head, unmarked(content)))
    return found


def unmarked(value: Any) -> Any:
    """The value without cache markers at any depth."""
    if isinstance(value, dict):
        return {
            key: unmarked(each)
            for key, each in value.items()
            if key not in ("cache_control", "prompt_cache_breakpoint")
        }
    return [unmarked(each) for each in value] if isinstance(value, list) else value


def markers(body: Body) -> list[Any]:
    """Every piece of a body that bears a cache marker, in order."""
    found: list[Any] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "cache_control" in value or "prompt_cache_breakpoint" in value:
                found.append(value)
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    for key in ("tools", "system", "messages", "input"):
        walk(body.get(key))
    return found


def images(value: Any) -> list[Any]:
    """Every image block, of any vendor, at any depth."""
    if isinstance(value, dict):
        if value.get("type") in ("image", "image_url", "input_image"):
            return [value]
        return [each for inner in value.values() for each in images(inner)]
    return [each for inner in value for each in images(inner)] if isinstance(value, list) else []
