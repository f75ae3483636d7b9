"""The vendors' SDKs: requests with what came back, as their own `model_dump_json` writes it, a line each."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anthropic import Anthropic
from openai import OpenAI

URL, OUT, WIRE = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
RULES = "The harbour master answers in one line. " * 200
PIER = {"type": "object", "properties": {"pier": {"type": "string"}}, "required": ["pier"]}
Ask = Callable[[list[Any]], tuple[dict[str, Any], Any]]


def chat(messages: list[Any]) -> tuple[dict[str, Any], Any]:
    tool = {"type": "function", "function": {"name": "sound", "parameters": PIER}}
    asked = {
        "model": "gpt-5.1",
        "tools": [tool],
        "messages": messages or [{"role": "system", "content": RULES}],
    }
    return asked, OpenAI(base_url=URL, max_retries=0).chat.completions.create


def responses(messages: list[Any]) -> tuple[dict[str, Any], Any]:
    tool = {"type": "function", "name": "sound", "parameters": PIER}
    asked = {
        "model": "gpt-5.6",
        "instructions": RULES,
        "tools": [tool],
        "input": messages,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    return asked, OpenAI(base_url=URL, max_retries=0).responses.create


def messages(messages: list[Any]) -> tuple[dict[str, Any], Any]:
    system = [{"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}}]
    tool = {"name": "sound", "input_schema": PIER}
    asked = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 4000,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "system": system,
        "tools": [tool],
        "messages": messages,
    }
    return asked, Anthropic(base_url=URL, max_retries=0).messages.create


def answers(wire: str, reply: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """What the reply adds to the messages, and the answers to its calls."""
    if wire == "chat":
        said = {k: v for k, v in reply["choices"][0]["message"].items() if v is not None}
        calls = said.get("tool_calls") or []
        return [said], [{"role": "tool", "tool_call_id": each["id"], "content": "9 m"} for each in calls]
    if wire == "responses":
        items = [{k: v for k, v in each.items() if v is not None} for each in reply["output"]]
        calls = [each["call_id"] for each in items if each["type"] == "function_call"]
        return items, [{"type": "function_call_output", "call_id": each, "output": "9 m"} for each in calls]
    blocks = [{k: v for k, v in each.items() if v is not None} for each in reply["content"]]
    calls = [each["id"] for each in blocks if each["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": each, "content": "9 m"} for each in calls]
    return [{"role": "assistant", "content": blocks}], [
        {"role": "user", "content": results}
    ] if results else []


def main() -> None:
    ask: Ask = {"chat": chat, "responses": responses, "anthropic": messages}[WIRE]
    said: list[Any] = [{"role": "system", "content": RULES}] if WIRE == "chat" else []
    with (OUT / "log.jsonl").open("w") as log:
        for words in ("How deep is it at both piers?", "And now?"):
            said.append({"role": "user", "content": words})
            more: list[Any] = [None]
            while more:
                request, create = ask(said)
                reply = json.loads(create(**request).model_dump_json())
                log.write(json.dumps({"request": request, "response": reply}) + "\n")
                told, more = answers(WIRE, reply)
                said = [*said, *told, *more]


main()
