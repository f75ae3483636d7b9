"""Conversations with a vendor without a network between: bodies in, wire replies out."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.server.accounts import Accounts, FlatMeter
from shiftbook.testing.server.exchange import Exchange
from shiftbook.testing.server.vendor import Terms, Vendor
from shiftbook.testing.server.wires import WIRES
from tests.server.bodies import (
    CLAUDE,
    GPT,
    chat,
    flat_function,
    function,
    marker,
    responses,
    result,
    text,
    tool,
)

PATHS = {"anthropic": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}


class Talk:
    """One vendor, and a conversation with it that only grows at its end."""

    def __init__(self, wire: str, script: Any, *, tokens: int = 1000, **terms: Any) -> None:
        self.clock = SimulatedClock()
        self.wire = wire
        self.vendor = Vendor(script, Accounts(FlatMeter(tokens)), Terms(self.clock, **terms))
        self.said: list[dict[str, Any]] = []
        self.number = 0
        self.headers: dict[str, str] = {}

    def body(self, **more: Any) -> dict[str, Any]:
        """The request as it stands."""
        said = copy.deepcopy(self.said)
        if self.wire == "anthropic":
            fixed = {"tools": [tool()], "system": [text("Be brief.")], "max_tokens": 99, "model": CLAUDE}
            return {**fixed, "messages": said, **more}
        if self.wire == "chat":
            return chat(*said, tools=[function()], model=GPT, **more)
        return responses(*said, tools=[flat_function()], instructions="Be brief.", **more)

    def send(self, body: dict[str, Any]) -> Any:
        """One request, whatever is in it."""
        self.number += 1
        headers = {"x-api-key": "any", "anthropic-version": "2023-06-01", **self.headers}
        raw = json.dumps(body).encode()
        exchange = Exchange(self.number, "POST", PATHS[self.wire], headers, raw)
        self.vendor.plan(WIRES[PATHS[self.wire]], exchange)
        assert not self.vendor.failures
        return exchange

    def say(self, words: str) -> None:
        """A person's words."""
        self.said.append({"role": "user", "content": words})

    def turn(self, change: Callable[[dict[str, Any]], dict[str, Any]] = lambda body: body) -> Any:
        """Send what stands, take the reply in, and answer its calls."""
        exchange = self.send(change(self.body()))
        assert exchange.refusal is None, exchange.refusal
        self.take(exchange)
        return exchange

    def take(self, exchange: Exchange) -> None:
        """Take a reply in, and answer its calls."""
        answer = copy.deepcopy(exchange.answer)
        assert answer is not None
        if self.wire == "anthropic":
            self.said.append({"role": "assistant", "content": answer["content"]})
            calls = [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
            if calls:
                self.said.append({"role": "user", "content": [result(each) for each in calls]})
        elif self.wire == "chat":
            message = answer["choices"][0]["message"]
            self.said.append(message)
            self.said += [
                {"role": "tool", "tool_call_id": each["id"], "content": "seven"}
                for each in message.get("tool_calls", [])
            ]
        else:
            self.said += answer["output"]
            self.said += [
                {"type": "function_call_output", "call_id": item["call_id"], "output": "seven"}
                for item in answer["output"]
                if item["type"] == "function_call"
            ]


def marked(body: dict[str, Any], previous: int | None, *, ttl: str | None = None) -> dict[str, Any]:
    """The body with the markers of design section 7: the fixed part's end, the last block of the previous
    request (`previous` messages long), the last block."""
    body["system"][-1]["cache_control"] = marker(ttl)
    places = [len(body["messages"]) - 1, *([previous - 1] if previous else [])]
    for place in places:
        message = body["messages"][place]
        if isinstance(message["content"], str):
            message["content"] = [text(message["content"])]
        message["content"][-1]["cache_control"] = marker(ttl)
    return body
