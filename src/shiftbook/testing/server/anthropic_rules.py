"""What Anthropic Messages refuses, one small function a rule.

Sources: platform.claude.com/docs (Messages, tool use, thinking, prompt caching, errors), the types of the
official SDK (anthropic 2.14), and error texts in public reports, read 2026-11. Where reports differ between
models the stricter reading is taken. Not judged: whether a model takes images, beta headers by name, the
lengths of a context window.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shiftbook.testing.server import anthropic_shapes
from shiftbook.testing.server.pieces import anthropic_blocks, anthropic_pieces, chain
from shiftbook.testing.server.rule import (
    IMAGE_TYPES,
    Body,
    Check,
    Known,
    Refusal,
    is_base64,
    listed,
    looks_like,
)

MESSAGES_MAX = 100_000
MARKERS_MAX = 4
IMAGE_CHARS_MAX = 5 * 1024 * 1024
BUDGET_TOKENS_MIN = 1024
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_PREFILLED = re.compile(r"claude-(2|3|instant)|claude-(opus|sonnet|haiku)-4(-[015])?(?![\d-]|-[6-9])")
"""Models up to 4.5 continue an assistant's turn; from 4.6 on it is refused."""
_PREFILL_DATED = re.compile(r"-20\d{6}$")
_REASONED = ("thinking", "redacted_thinking")

Placed = tuple[str, Mapping[str, Any]]


def placed(body: Body) -> Iterator[tuple[int, str, str, Mapping[str, Any]]]:
    """Every content block of the messages: message number, role, path, block."""
    for number, message in enumerate(body["messages"]):
        for index, block in enumerate(anthropic_blocks(message["content"])):
            yield number, message["role"], f"messages.{number}.content.{index}", block


def turns(body: Body) -> list[tuple[int, str, list[Placed]]]:
    """Neighbouring messages of one role as one turn; system messages in between belong to none."""
    found: list[tuple[int, str, list[Placed]]] = []
    for number, message in enumerate(body["messages"]):
        if message["role"] == "system":
            continue
        if not found or found[-1][1] != message["role"]:
            found.append((number, message["role"], []))
        found[-1][2].extend(
            (f"messages.{number}.content.{index}", block)
            for index, block in enumerate(anthropic_blocks(message["content"]))
        )
    return found


def limits(body: Body, _: Known) -> Iterator[Refusal]:
    if body["max_tokens"] < 0:
        yield Refusal("max_tokens: Input should be greater than or equal to 0")
    temperature = body.get("temperature")
    if temperature is not None and not 0 <= temperature <= 1:
        yield Refusal("temperature: range: 0..1")
    if len(body["messages"]) > MESSAGES_MAX:
        yield Refusal(f"messages: at most {MESSAGES_MAX} messages are allowed")


def roles(body: Body, _: Known) -> Iterator[Refusal]:
    """Users and assistants; an instruction in between stands behind a user's message."""
    said = [message["role"] for message in body["messages"]]
    for number, role in enumerate(said):
        if role not in ("user", "assistant", "system"):
            yield Refusal(f"messages.{number}.role: Input should be 'user', 'assistant' or 'system'")
        if role == "system" and (number == 0 or said[number - 1] == "assistant"):
            yield Refusal(f"messages.{number}: a `system` message must come directly after a `user` message")


def first_message(body: Body, _: Known) -> Iterator[Refusal]:
    if not body["messages"]:
        yield Refusal("messages: at least one message is required")
    elif body["messages"][0]["role"] != "user":
        yield Refusal('messages: first message must use the "user" role')


def empty_message(body: Body, _: Known) -> Iterator[Refusal]:
    last = len(body["messages"]) - 1
    for number, message in enumerate(body["messages"]):
        optional = number == last and message["role"] == "assistant"
        if not message["content"] and not optional:
            yield Refusal(
                f"messages.{number}: all messages must have non-empty content except for the optional final "
                "assistant message"
            )


def blank_text(body: Body, _: Known) -> Iterator[Refusal]:
    def blank(path: str, block: Mapping[str, Any]) -> Iterator[Refusal]:
        if block.get("type") == "text" and not block["text"]:
            yield Refusal(f"{path}: text content blocks must be non-empty")
        elif block.get("type") == "text" and not block["text"].strip():
            yield Refusal(f"{path}: text content blocks must contain non-whitespace text")

    for index, block in enumerate(listed(body.get("system"))):
        yield from blank(f"system.{index}", block)
    for _number, _role, path, block in placed(body):
        yield from blank(path, block)
        if block["type"] == "tool_result":
            for index, inner in enumerate(listed(block.get("content"))):
                yield from blank(f"{path}.tool_result.content.{index}", inner)


def wrong_side(body: Body, _: Known) -> Iterator[Refusal]:
    """Calls and reasoning are the assistant's, results and images the user's."""
    for _number, role, path, block in placed(body):
        kind = block["type"]
        if role == "system" and kind != "text":
            yield Refusal(f"{path}: `system` messages can only contain `text` blocks")
        if role == "user" and kind in ("tool_use", "server_tool_use", *_REASONED):
            yield Refusal(f"{path}: `{kind}` blocks can only be in `assistant` messages")
        if role == "assistant" and kind in ("tool_result", "image", "document", "search_result"):
            yield Refusal(f"{path}: `{kind}` blocks can only be in `user` messages")


def call_id(body: Body, _: Known) -> Iterator[Refusal]:
    for _number, _role, path, block in placed(body):
        name = "tool_use_id" if block["type"] == "tool_result" else "id"
        if block["type"] in ("tool_use", "tool_result") and not _ID.fullmatch(block[name]):
            yield Refusal(f"{path}.{block['type']}.{name}: String should match pattern '^[a-zA-Z0-9_-]+$'")


def call_id_twice(body: Body, _: Known) -> Iterator[Refusal]:
    seen: set[str] = set()
    for _number, _role, path, block in placed(body):
        if block["type"] == "tool_use":
            if block["id"] in seen:
                yield Refusal(f"{path}: `tool_use` ids must be unique")
            seen.add(block["id"])


def result_without_call(body: Body, _: Known) -> Iterator[Refusal]:
    before: Sequence[Placed] = ()
    for _number, role, blocks in turns(body):
        calls = {block["id"] for _path, block in before if block["type"] == "tool_use"}
        for path, block in blocks:
            if role == "user" and block["type"] == "tool_result" and block["tool_use_id"] not in calls:
                yield Refusal(
                    f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{block['tool_use_id']}. Each `tool_result` block must have a corresponding "
                    "`tool_use` block in the previous message."
                )
        before = blocks


def second_result(body: Body, _: Known) -> Iterator[Refusal]:
    for _number, _role, blocks in turns(body):
        seen: set[str] = set()
        for path, block in blocks:
            if block["type"] == "tool_result":
                if block["tool_use_id"] in seen:
                    yield Refusal(
                        f"{path}: each tool_use must have a single result. Found multiple `tool_result` "
                        f"blocks with id: {block['tool_use_id']}"
                    )
                seen.add(block["tool_use_id"])


def call_without_result(body: Body, _: Known) -> Iterator[Refusal]:
    """Every call is answered in the next turn, and the answers stand in front of everything else there."""
    said = turns(body)
    for place, (number, role, blocks) in enumerate(said):
        calls = [block["id"] for _path, block in blocks if block["type"] == "tool_use"]
        if role != "assistant" or not calls:
            continue
        answered: set[str] = set()
        for _path, block in said[place + 1][2] if place + 1 < len(said) else []:
            if block["type"] != "tool_result":
                break
            answered.add(block["tool_use_id"])
        missing = [each for each in calls if each not in answered]
        if missing:
            yield Refusal(
                f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately "
                f"after: {', '.join(missing)}. Each `tool_use` block must have a corresponding "
                "`tool_result` block in the next message."
            )


def result_behind_text(body: Body, _: Known) -> Iterator[Refusal]:
    for _number, role, blocks in turns(body):
        kinds = [block["type"] for _path, block in blocks]
        if role == "user" and "tool_result" in kinds:
            results = kinds.count("tool_result")
            if kinds[:results] != ["tool_result"] * results:
                yield Refusal(f"{blocks[0][0]}: `tool_result` blocks must come first in a `user` message")


def error_result(body: Body, _: Known) -> Iterator[Refusal]:
    for _number, _role, path, block in placed(body):
        failed = block["type"] == "tool_result" and block.get("is_error")
        if failed and any(inner["type"] != "text" for inner in listed(block.get("content"))):
            yield Refusal(f"{path}: all content must be type `text` if `is_error` is true")


def last_message(body: Body, known: Known) -> Iterator[Refusal]:
    """An assistant's message may be last where a reply paused, or on older models as the start of a reply."""
    last = body["messages"][-1]
    if last["role"] != "assistant" or chain(anthropic_pieces(body))[-1] in known.paused:
        return
    thinks = (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
    if thinks or not _PREFILLED.search(_PREFILL_DATED.sub("", body["model"])):
        yield Refusal(
            "This model does not support assistant message prefill. The conversation must end with a user "
            "message."
        )
        return
    for block in anthropic_blocks(last["content"])[-1:]:
        if block["type"] == "text" and block["text"] != block["text"].rstrip():
            yield Refusal("messages: final assistant content cannot end with trailing whitespace")


def reasoning_place(body: Body, _: Known) -> Iterator[Refusal]:
    """Reasoning opens an assistant's message, or follows the result of a tool that the vendor ran."""
    for number, message in enumerate(body["messages"]):
        blocks = anthropic_blocks(message["content"])
        opening = True
        for index, block in enumerate(blocks):
            path = f"messages.{number}.content.{index}"
            if block["type"] in _REASONED and not opening:
                yield Refusal(f"{path}: `{block['type']}` blocks must come before any other content block")
            opening = block["type"] in _REASONED or block["type"].endswith("_tool_result")
        if blocks and blocks[-1]["type"] in _REASONED:
            yield Refusal(
                f"messages.{number}: The final block in an assistant message cannot be "
                f"`{blocks[-1]['type']}`."
            )


def thinking_settings(body: Body, _: Known) -> Iterator[Refusal]:
    thinking = body.get("thinking") or {}
    if thinking.get("type") == "enabled":
        if thinking["budget_tokens"] < BUDGET_TOKENS_MIN:
            yield Refusal(
                "thinking.enabled.budget_tokens: Input should be greater than or equal to "
                f"{BUDGET_TOKENS_MIN}"
            )
        if thinking["budget_tokens"] >= body["max_tokens"]:
            yield Refusal("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if thinking.get("type") in ("enabled", "adaptive"):
        if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
            yield Refusal("Thinking may not be enabled when tool_choice forces tool use.")
        if body.get("temperature") not in (None, 1):
            yield Refusal("`temperature` may only be set to 1 when thinking is enabled.")


def tool_name(body: Body, _: Known) -> Iterator[Refusal]:
    for number, tool in enumerate(listed(body.get("tools"))):
        if not _TOOL_NAME.fullmatch(tool["name"]):
            yield Refusal(
                f"tools.{number}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            )


def tool_twice(body: Body, _: Known) -> Iterator[Refusal]:
    names = [tool["name"] for tool in listed(body.get("tools"))]
    if len(set(names)) < len(names):
        yield Refusal("tools: Tool names must be unique.")


def tool_schema(body: Body, _: Known) -> Iterator[Refusal]:
    for number, tool in enumerate(listed(body.get("tools"))):
        if tool.get("type") not in (None, "custom"):
            continue
        path, given = f"tools.{number}.custom.input_schema", tool["input_schema"]
        if "type" not in given:
            yield Refusal(f"{path}.type: Field required")
        elif given["type"] != "object":
            yield Refusal(f"{path}.type: Input should be 'object'")
        if {"oneOf", "allOf", "anyOf"} & given.keys():
            yield Refusal(f"{path}: input_schema does not support oneOf, allOf, or anyOf at the top level")


def tool_choice(body: Body, _: Known) -> Iterator[Refusal]:
    choice, names = body.get("tool_choice"), {tool["name"] for tool in listed(body.get("tools"))}
    if choice is None:
        return
    if not names:
        yield Refusal("tool_choice may only be specified while providing tools.")
    elif choice["type"] == "tool" and choice["name"] not in names:
        yield Refusal(f"Tool '{choice['name']}' not found in provided tools")


def marked(body: Body) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every explicit cache marker in the order of the prompt: its path, the marker."""
    for field in ("tools", "system"):
        for index, block in enumerate(listed(body.get(field))):
            if block.get("cache_control"):
                yield f"{field}.{index}.cache_control", block["cache_control"]
    for _number, _role, path, block in placed(body):
        inner = listed(block.get("content")) if block["type"] == "tool_result" else []
        for each in (*inner, block):
            if each.get("cache_control"):
                yield f"{path}.cache_control", each["cache_control"]


def marker_kind(body: Body, _: Known) -> Iterator[Refusal]:
    whole = body.get("cache_control")
    for path, marker in (*marked(body), *([("cache_control", whole)] if whole else [])):
        if marker.get("type") != "ephemeral":
            yield Refusal(f"{path}.type: Input should be 'ephemeral'")
        if marker.get("ttl") not in (None, "5m", "1h"):
            yield Refusal(f"{path}.ephemeral.ttl: Input should be '5m' or '1h'")


def markers_max(body: Body, _: Known) -> Iterator[Refusal]:
    count = len(list(marked(body))) + bool(body.get("cache_control"))
    if count > MARKERS_MAX:
        yield Refusal(f"A maximum of {MARKERS_MAX} blocks with cache_control may be provided. Found {count}.")


def marker_order(body: Body, _: Known) -> Iterator[Refusal]:
    whole = body.get("cache_control")
    short = False
    for path, marker in (*marked(body), *([("cache_control", whole)] if whole else [])):
        if marker.get("ttl") == "1h" and short:
            yield Refusal(
                f"{path}.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control "
                "block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
            )
        short = short or marker.get("ttl") != "1h"
    last = anthropic_blocks(body["messages"][-1]["content"])[-1:]
    own = last[0].get("cache_control") if last else None
    if whole and own and (whole.get("ttl") or "5m") != (own.get("ttl") or "5m"):
        yield Refusal(
            f"Top-level cache_control has ttl='{whole.get('ttl') or '5m'}' but the target block already has "
            f"cache_control with ttl='{own.get('ttl') or '5m'}'"
        )


def media(body: Body, _: Known) -> Iterator[Refusal]:
    """Images and documents given as base64: the media type, the text, the size, the first bytes."""
    for _number, _role, path, block in placed(body):
        inner = listed(block.get("content")) if block["type"] == "tool_result" else [block]
        for each in inner:
            source = each.get("source")
            if isinstance(source, dict) and source["type"] == "base64":
                yield from _base64(f"{path}.{each['type']}.source.base64", each["type"], source)


def _base64(path: str, kind: str, source: Mapping[str, Any]) -> Iterator[Refusal]:
    allowed = IMAGE_TYPES if kind == "image" else ("application/pdf",)
    named, data = source["media_type"], source["data"]
    if named not in allowed:
        expected = " or ".join(f"'{each}'" for each in allowed)
        yield Refusal(f"{path}.media_type: Input should be {expected}")
    elif not is_base64(data):
        yield Refusal(f"{path}.data: invalid base64 data")
    elif kind == "image" and len(data) > IMAGE_CHARS_MAX:
        yield Refusal(f"{path}: image exceeds 5 MB maximum: {len(data)} bytes > {IMAGE_CHARS_MAX} bytes")
    elif kind == "image" and not looks_like(named, data):
        yield Refusal(f"{path}.data: Image does not match the provided media type {named}")


ANTHROPIC_RULES: Mapping[str, Check] = {
    "field": anthropic_shapes.top_fields,
    "tool field": anthropic_shapes.tool_fields,
    "block field": anthropic_shapes.block_fields,
    "limit": limits,
    "no first user message": first_message,
    "role": roles,
    "empty message": empty_message,
    "blank text": blank_text,
    "wrong side": wrong_side,
    "call id unusable": call_id,
    "call id not unique": call_id_twice,
    "answer without call": result_without_call,
    "second answer": second_result,
    "answer behind text": result_behind_text,
    "call without answer": call_without_result,
    "error answer not text": error_result,
    "last message the assistant's": last_message,
    "reasoning misplaced": reasoning_place,
    "thinking settings": thinking_settings,
    "tool name unusable": tool_name,
    "tool declared twice": tool_twice,
    "tool schema": tool_schema,
    "tool choice": tool_choice,
    "marker kind": marker_kind,
    "too many markers": markers_max,
    "marker order": marker_order,
    "media": media,
}
"""Every rule by its stable name, in the order in which they are asked."""
