"""What OpenAI Responses refuses, one small function a rule.

Sources: developers.openai.com/api (Responses, reasoning, prompt caching), the types of the official SDK
(openai 3.57), and error texts in public reports, read 2026-11. This server keeps nothing between requests:
`previous_response_id`, conversations, stored prompts, background work and references to items are refused,
as the vendor does for accounts without retention. Items of tools that the vendor runs pass unread.

Ids of the server's own items say which reasoning they belong to: in a reply that reasoned, every item is
named after the reasoning item, so that a later request shows by itself whether the two are still together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from shiftbook.testing.server.openai_shapes import (
    BREAKPOINT,
    SAY,
    TEXT_CHARS_MAX,
    bracketed,
    cache_settings,
    image_faults,
    name_faults,
    only_with_tools,
    schema_faults,
    too_long,
    twice,
)
from shiftbook.testing.server.pieces import responses_items
from shiftbook.testing.server.rule import Body, Check, Known, Path, Refusal, Shape, listed, misshapen, shape

ID_CHARS_MAX = 64
OUTPUT_TOKENS_MIN = 16
_TOP = shape(
    "model input:string|list",
    "instructions include:list max_output_tokens:integer max_tool_calls:integer metadata:object "
    "parallel_tool_calls:boolean prompt_cache_key prompt_cache_options:object prompt_cache_retention "
    "reasoning:object safety_identifier service_tier store:boolean stream:boolean stream_options:object "
    "temperature:number text:object tool_choice:string|object tools:list top_logprobs:integer top_p:number "
    "truncation user moderation:object previous_response_id conversation:string|object background:boolean "
    "prompt:object",
)
_MESSAGE = shape("role content:string|list", "type id status phase")
_ITEMS: Mapping[str, Shape] = {
    "function_call": shape("type call_id name arguments", "id status namespace caller:object async:boolean"),
    "function_call_output": shape(
        "type call_id output:string|list", "id status name namespace caller:object"
    ),
    "reasoning": shape("type id summary:list", "encrypted_content content:list status"),
}
_PARTS: Mapping[str, Shape] = {
    "input_text": shape("type text", "prompt_cache_breakpoint:object"),
    "input_image": shape("type", "detail image_url file_id prompt_cache_breakpoint:object"),
    "input_file": shape("type", "file_data file_id file_url filename detail prompt_cache_breakpoint:object"),
    "output_text": shape("type text", "annotations:list logprobs:list"),
    "refusal": shape("type refusal"),
}
_SUMMARY = shape("type text")
_INPUT_PARTS = ("input_text", "input_image", "input_file")
_OUTPUT_PARTS = ("output_text", "refusal")
_ROLES = ("user", "assistant", "system", "developer")
_TOOL = shape(
    "type name parameters:object|null",
    "strict:boolean description allowed_callers:list defer_loading:boolean output_schema:object "
    "async:boolean",
)
_PREFIXES: Mapping[str, tuple[str, ...]] = {
    "message": ("msg_",),
    "function_call": ("fc_",),
    # Codex gives its own outputs the second.
    "function_call_output": ("fc_", "fco_"),
    "reasoning": ("rs_",),
}
_OWNED = re.compile(r"(?:msg|fc)_r([0-9a-f]{24})_\d+")


def owner(item: Mapping[str, Any]) -> str | None:
    """The id of the reasoning that an item of this server belongs to, None if to none."""
    found = _OWNED.fullmatch(item.get("id") or "")
    return f"rs_{found[1]}" if found else None


def kind_of(item: Mapping[str, Any]) -> str:
    """An item's type; a message need not name its own."""
    return str(item.get("type") or "message")


def top_fields(body: Body, _: Known) -> Iterator[Refusal]:
    yield from misshapen(SAY, body, (), _TOP)
    if body["input"] == [] or body["input"] == "":
        yield Refusal("Invalid 'input': empty. Give at least one item.", "input", "empty_array")


def nothing_kept(body: Body, _: Known) -> Iterator[Refusal]:
    before = body.get("previous_response_id")
    if before is not None:
        yield Refusal(
            f"Previous response with id '{before}' not found.",
            "previous_response_id",
            "previous_response_not_found",
        )
    for name in ("conversation", "background", "prompt"):
        if body.get(name):
            yield Refusal(
                f"Unsupported parameter: '{name}' needs stored data, and this server keeps none.",
                name,
                "unsupported_parameter",
            )


def item_fields(body: Body, _: Known) -> Iterator[Refusal]:
    """The fields of messages, calls, outputs and reasoning; of other items only that they have a type."""
    for number, item in enumerate(responses_items(body)):
        path: Path = ("input", number)
        if not isinstance(item, dict):
            yield SAY.wrong(path, "object")
            return
        kind = kind_of(item)
        if kind == "item_reference":
            yield Refusal(
                f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to "
                "false. Try again with `store` set to true, or remove this item from your input.",
                "input",
                status=404,
            )
        if kind == "message":
            yield from misshapen(SAY, item, path, _MESSAGE)
            yield from _parts(item, path)
        elif kind in _ITEMS:
            yield from misshapen(SAY, item, path, _ITEMS[kind])
            for index, part in enumerate(listed(item.get("summary"))):
                yield from misshapen(SAY, part, (*path, "summary", index), _SUMMARY)


def _parts(item: Mapping[str, Any], path: Path) -> Iterator[Refusal]:
    if item["role"] not in _ROLES:
        yield SAY.value((*path, "role"), item["role"], _ROLES)
    allowed = _OUTPUT_PARTS if item["role"] == "assistant" else _INPUT_PARTS
    for index, part in enumerate(listed(item["content"])):
        here = (*path, "content", index)
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str) or kind not in allowed:
            yield SAY.value((*here, "type"), kind, allowed)
            return
        yield from misshapen(SAY, part, here, _PARTS[kind])
        if part.get("prompt_cache_breakpoint") is not None:
            at = (*here, "prompt_cache_breakpoint")
            yield from misshapen(SAY, part["prompt_cache_breakpoint"], at, BREAKPOINT)


def tool_fields(body: Body, _: Known) -> Iterator[Refusal]:
    for number, tool in enumerate(listed(body.get("tools"))):
        if not isinstance(tool, dict) or tool.get("type") in (None, "function"):
            yield from misshapen(SAY, tool, ("tools", number), _TOOL)


def long_text(body: Body, _: Known) -> Iterator[Refusal]:
    for number, item in enumerate(responses_items(body)):
        for name in ("content", "output"):
            if isinstance(item.get(name), str):
                yield from too_long(("input", number, name), item[name], TEXT_CHARS_MAX)


def item_id(body: Body, _: Known) -> Iterator[Refusal]:
    """An item's id begins with what the item is."""
    for number, item in enumerate(responses_items(body)):
        prefixes, given = _PREFIXES.get(kind_of(item)), item.get("id")
        if prefixes is None or given is None:
            continue
        where = f"input[{number}].id"
        yield from too_long(("input", number, "id"), given, ID_CHARS_MAX)
        if not given.startswith(prefixes):
            yield Refusal(
                f"Invalid '{where}': '{given}'. Expected an ID that begins with '{prefixes[0].rstrip('_')}'.",
                where,
                "invalid_value",
            )


def item_twice(body: Body, _: Known) -> Iterator[Refusal]:
    seen: set[str] = set()
    for item in responses_items(body):
        given = item.get("id")
        if given is not None and given in seen:
            yield Refusal(
                f"Duplicate item found with id {given}. Remove duplicate items from your input and try "
                "again.",
                "input",
            )
        seen.add(given or "")


def call_id(body: Body, _: Known) -> Iterator[Refusal]:
    for number, item in enumerate(responses_items(body)):
        if kind_of(item) in ("function_call", "function_call_output"):
            path: Path = ("input", number, "call_id")
            yield from too_long(path, item["call_id"], ID_CHARS_MAX)
            if not item["call_id"]:
                yield Refusal(f"Invalid '{bracketed(path)}': empty string.", bracketed(path), "empty_string")


def call_id_twice(body: Body, _: Known) -> Iterator[Refusal]:
    seen: set[str] = set()
    for item in responses_items(body):
        if kind_of(item) == "function_call":
            if item["call_id"] in seen:
                yield Refusal(
                    f"Duplicate function call found with call_id {item['call_id']}.", "input", "invalid_value"
                )
            seen.add(item["call_id"])


def call_name(body: Body, _: Known) -> Iterator[Refusal]:
    for number, item in enumerate(responses_items(body)):
        if kind_of(item) == "function_call":
            yield from name_faults(("input", number, "name"), item["name"])


def answer_without_call(body: Body, _: Known) -> Iterator[Refusal]:
    calls: set[str] = set()
    for item in responses_items(body):
        if kind_of(item) == "function_call":
            calls.add(item["call_id"])
        if kind_of(item) == "function_call_output" and item["call_id"] not in calls:
            yield Refusal(
                f"No tool call found for function call output with call_id {item['call_id']}.", "input"
            )


def second_answer(body: Body, _: Known) -> Iterator[Refusal]:
    seen: set[str] = set()
    for item in responses_items(body):
        if kind_of(item) == "function_call_output":
            if item["call_id"] in seen:
                yield Refusal(
                    f"Duplicate function call output found with call_id {item['call_id']}.",
                    "input",
                    "invalid_value",
                )
            seen.add(item["call_id"])


def call_without_answer(body: Body, _: Known) -> Iterator[Refusal]:
    items = responses_items(body)
    answered = {item["call_id"] for item in items if kind_of(item) == "function_call_output"}
    for item in items:
        if kind_of(item) == "function_call" and item["call_id"] not in answered:
            yield Refusal(f"No tool output found for function call {item['call_id']}.", "input")


def reasoning_alone(body: Body, _: Known) -> Iterator[Refusal]:
    """Reasoning is followed by what it led to: a call or the assistant's words, of the same reply."""
    items = responses_items(body)
    for place, item in enumerate(items):
        if kind_of(item) != "reasoning":
            continue
        after = items[place + 1] if place + 1 < len(items) else {"role": "user"}
        foreign = owner(after) not in (None, item["id"])
        ours = (
            after.get("role") in ("user", "system", "developer") or kind_of(after) == "function_call_output"
        )
        if ours or foreign:
            yield _alone(item)


def _alone(item: Mapping[str, Any]) -> Refusal:
    return Refusal(
        f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.", "input"
    )


def reasoning_gone(body: Body, _: Known) -> Iterator[Refusal]:
    """An item with an id of a reply that reasoned needs the reasoning; without its id it may stand alone."""
    present: set[str] = set()
    for item in responses_items(body):
        if kind_of(item) == "reasoning":
            present.add(item["id"])
        needed = owner(item)
        if needed and needed not in present:
            yield Refusal(
                f"Item '{item['id']}' of type '{kind_of(item)}' was provided without its required "
                f"'reasoning' item: '{needed}'.",
                "input",
            )


def reasoning_unkept(body: Body, _: Known) -> Iterator[Refusal]:
    for item in responses_items(body):
        if kind_of(item) == "reasoning" and not item.get("encrypted_content"):
            yield Refusal(
                f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to "
                "false. Try again with `store` set to true, or remove this item from your input.",
                "input",
                status=404,
            )


def tool_name(body: Body, _: Known) -> Iterator[Refusal]:
    for number, tool in enumerate(listed(body.get("tools"))):
        if tool["type"] == "function":
            yield from name_faults(("tools", number, "name"), tool["name"])


def tool_twice(body: Body, _: Known) -> Iterator[Refusal]:
    yield from twice(("tools",), (t["name"] for t in listed(body.get("tools")) if t["type"] == "function"))


def tool_schema(body: Body, _: Known) -> Iterator[Refusal]:
    for number, tool in enumerate(listed(body.get("tools"))):
        if tool["type"] == "function":
            yield from schema_faults(("tools", number, "parameters"), tool["name"], tool["parameters"])


def tool_choice(body: Body, _: Known) -> Iterator[Refusal]:
    yield from only_with_tools(body, "tool_choice")
    choice = body.get("tool_choice")
    if isinstance(choice, str) and choice not in ("none", "auto", "required"):
        yield SAY.value(("tool_choice",), choice, ("none", "auto", "required"))
    named = choice.get("name") if isinstance(choice, dict) and choice.get("type") == "function" else None
    if named is not None and named not in {tool.get("name") for tool in listed(body.get("tools"))}:
        yield Refusal(
            f"Tool choice '{named}' not found in 'tools' parameter.", "tool_choice", "invalid_value"
        )


def output_limit(body: Body, _: Known) -> Iterator[Refusal]:
    most = body.get("max_output_tokens")
    if most is not None and most < OUTPUT_TOKENS_MIN:
        yield Refusal(
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= "
            f"{OUTPUT_TOKENS_MIN}, but got {most} instead.",
            "max_output_tokens",
            "integer_below_min_value",
        )


def media(body: Body, _: Known) -> Iterator[Refusal]:
    for number, item in enumerate(responses_items(body)):
        for name in ("content", "output"):
            for index, part in enumerate(listed(item.get(name))):
                if isinstance(part, dict) and part.get("type") == "input_image" and not part.get("file_id"):
                    yield from image_faults(
                        ("input", number, name, index, "image_url"), part.get("image_url")
                    )


def cache(body: Body, known: Known) -> Iterator[Refusal]:
    marked = [
        (("input", number, name, index, "prompt_cache_breakpoint"), part["prompt_cache_breakpoint"])
        for number, item in enumerate(responses_items(body))
        for name in ("content", "output")
        for index, part in enumerate(listed(item.get(name)))
        if isinstance(part, dict) and part.get("prompt_cache_breakpoint")
    ]
    yield from cache_settings(body, known, marked, ("30m", "12h"))


RESPONSES_RULES: Mapping[str, Check] = {
    "field": top_fields,
    "nothing kept": nothing_kept,
    "item field": item_fields,
    "tool field": tool_fields,
    "text too long": long_text,
    "item id unusable": item_id,
    "item twice": item_twice,
    "call id unusable": call_id,
    "call id not unique": call_id_twice,
    "call name unusable": call_name,
    "answer without call": answer_without_call,
    "second answer": second_answer,
    "call without answer": call_without_answer,
    "reasoning alone": reasoning_alone,
    "reasoning gone": reasoning_gone,
    "reasoning not kept": reasoning_unkept,
    "tool name unusable": tool_name,
    "tool declared twice": tool_twice,
    "tool schema": tool_schema,
    "tool choice": tool_choice,
    "output limit": output_limit,
    "media": media,
    "cache settings": cache,
}
"""Every rule by its stable name, in the order in which they are asked."""
