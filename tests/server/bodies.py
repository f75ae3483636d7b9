"""Small valid bodies of the three wires, and ways to change them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

Body = dict[str, Any]

CLAUDE = "claude-opus-5"
GPT = "gpt-6"
OLD_GPT = "gpt-4o"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\x00" * 16).decode()
SCHEMA = {"type": "object", "properties": {}}


def but(body: Mapping[str, Any], **changes: Any) -> Body:
    """The body with some fields changed; None takes a field away."""
    return {key: value for key, value in {**body, **changes}.items() if value is not None}


def text(words: str = "Hello.", **more: Any) -> Body:
    return {"type": "text", "text": words, **more}


def user(*content: Any) -> Body:
    return {"role": "user", "content": list(content) or "Hello."}


def assistant(*content: Any) -> Body:
    return {"role": "assistant", "content": list(content) or "Hello to you."}


def tool(name: str = "lookup", **more: Any) -> Body:
    return {"name": name, "input_schema": SCHEMA, **more}


def use(given: str = "toolu_1", name: str = "lookup", **more: Any) -> Body:
    return {"type": "tool_use", "id": given, "name": name, "input": {}, **more}


def result(given: str = "toolu_1", content: Any = "seven", **more: Any) -> Body:
    return {"type": "tool_result", "tool_use_id": given, "content": content, **more}


def image(data: str = PNG, media_type: str = "image/png") -> Body:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def anthropic(*messages: Body, **more: Any) -> Body:
    return {"model": CLAUDE, "max_tokens": 4096, "messages": list(messages) or [user()], **more}


def marker(ttl: str | None = None) -> Body:
    return {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}


def function(name: str = "lookup", parameters: Any = SCHEMA) -> Body:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def chat(*messages: Body, **more: Any) -> Body:
    return {"model": GPT, "messages": list(messages) or [user()], **more}


def tool_call(given: str = "call_1", name: str = "lookup", arguments: str = "{}") -> Body:
    return {"id": given, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: Body, **more: Any) -> Body:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def told(given: str = "call_1", content: Any = "seven") -> Body:
    return {"role": "tool", "tool_call_id": given, "content": content}


def flat_function(name: str = "lookup", parameters: Any = SCHEMA) -> Body:
    return {"type": "function", "name": name, "parameters": parameters, "strict": True}


def responses(*items: Body, **more: Any) -> Body:
    return {"model": GPT, "input": list(items) or "Hello.", **more}


def function_call(given: str = "call_1", name: str = "lookup", **more: Any) -> Body:
    return {"type": "function_call", "call_id": given, "name": name, "arguments": "{}", **more}


def output(given: str = "call_1", content: Any = "seven", **more: Any) -> Body:
    return {"type": "function_call_output", "call_id": given, "output": content, **more}


def reasoning(given: str = "rs_" + "a" * 24, encrypted: str | None = "AAAA") -> Body:
    item = {"type": "reasoning", "id": given, "summary": []}
    return {**item, "encrypted_content": encrypted} if encrypted else item


def message(words: str = "Hello to you.", **more: Any) -> Body:
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {"type": "message", "role": "assistant", "status": "completed", "content": content, **more}
