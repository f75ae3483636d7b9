"""The fields that Anthropic Messages takes, block by block.

Read from the types of the official SDK (anthropic 2.14). Tools that the vendor runs are let through with any
fields beside their name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from shiftbook.testing.server.pieces import REMEMBERED_CHARS_MAX, REMEMBERED_MAX, anthropic_blocks
from shiftbook.testing.server.rule import Body, Known, Path, Refusal, Shape, listed, misshapen, shape

_MARKED = "cache_control:object"
_TOP = shape(
    "model max_tokens:integer messages:list",
    "system:string|list tools:list tool_choice:object thinking:object temperature:number top_p:number "
    "top_k:integer stop_sequences:list stream:boolean metadata:object service_tier cache_control:object "
    "container:string|object output_config:object inference_geo speed diagnostics:object user_profile_id "
    "workspace_id",
)
_BETA_TOP = frozenset({"context_management", "mcp_servers", "betas"})
_MESSAGE = shape("role content:string|list")
_TOOL = shape(
    "name input_schema:object",
    f"description {_MARKED} type strict:boolean defer_loading:boolean eager_input_streaming:boolean "
    "input_examples:list allowed_callers:list",
)
_VENDOR_RESULT = shape("tool_use_id content:any", f"{_MARKED} caller:object")
_BLOCKS: Mapping[str, Shape] = {
    "text": shape("text", f"{_MARKED} citations:list"),
    "image": shape("source:object", f"{_MARKED} transformations:object"),
    "document": shape("source:object", f"{_MARKED} citations:object context title"),
    "search_result": shape("source title content:list", f"{_MARKED} citations:object"),
    "tool_use": shape("id name input:object", f"{_MARKED} caller:object toolset_name"),
    "tool_result": shape("tool_use_id", f"content:string|list is_error:boolean toolset_name {_MARKED}"),
    "thinking": shape("thinking signature"),
    "redacted_thinking": shape("data"),
    "server_tool_use": shape("id name input:object", f"{_MARKED} caller:object"),
    "web_search_tool_result": _VENDOR_RESULT,
    "web_fetch_tool_result": _VENDOR_RESULT,
    "code_execution_tool_result": _VENDOR_RESULT,
    "bash_code_execution_tool_result": _VENDOR_RESULT,
    "text_editor_code_execution_tool_result": _VENDOR_RESULT,
    "tool_search_tool_result": _VENDOR_RESULT,
    "container_upload": shape("file_id", _MARKED),
}
_ALL = frozenset(_BLOCKS)
_written = json.JSONEncoder().encode
_IN_RESULT = frozenset({"text", "image", "document", "search_result"})
_SOURCES: Mapping[str, Shape] = {
    "base64": shape("type media_type data"),
    "url": shape("type url"),
    "file": shape("type file_id"),
    "text": shape("type media_type data"),
    "content": shape("type content:string|list"),
}
_MARKER = shape("type", "ttl")
_CHOICES: Mapping[str, Shape] = {
    "auto": shape("type", "disable_parallel_tool_use:boolean"),
    "any": shape("type", "disable_parallel_tool_use:boolean"),
    "tool": shape("type name", "disable_parallel_tool_use:boolean"),
    "none": shape("type"),
}
_THINKING: Mapping[str, Shape] = {
    "enabled": shape("type budget_tokens:integer", "display"),
    "adaptive": shape("type", "display"),
    "between_tools": shape("type"),
    "disabled": shape("type"),
}


def dotted(path: Path) -> str:
    """A path as Anthropic writes it: messages.0.content."""
    return ".".join(str(step) for step in path)


class Words:
    """Anthropic's words for a field that is not as it should be."""

    _KINDS: Mapping[str, str] = {"object": "dictionary", "integer": "integer", "boolean": "boolean"}

    def missing(self, path: Path) -> Refusal:
        return Refusal(f"{dotted(path)}: Field required")

    def unknown(self, path: Path) -> Refusal:
        return Refusal(f"{dotted(path)}: Extra inputs are not permitted")

    def wrong(self, path: Path, kind: str) -> Refusal:
        first = kind.partition("|")[0]
        return Refusal(f"{dotted(path)}: Input should be a valid {self._KINDS.get(first, first)}")


_SAY = Words()


def top_fields(body: Body, known: Known) -> Iterator[Refusal]:
    """The body's own fields; some are there only for those who ask for a beta."""
    bare = {key: value for key, value in body.items() if not (known.betas and key in _BETA_TOP)}
    yield from misshapen(_SAY, bare, (), _TOP)
    yield from _by_type(body.get("tool_choice"), ("tool_choice",), _CHOICES)
    thinking = body.get("thinking")
    if known.betas and isinstance(thinking, dict):
        thinking = {key: value for key, value in thinking.items() if key != "block_binding"}
    yield from _by_type(thinking, ("thinking",), _THINKING)


def block_fields(body: Body, _: Known) -> Iterator[Refusal]:
    """The fields of every message and every block, also of those inside a result."""
    for number, message in enumerate(body["messages"]):
        path: Path = ("messages", number)
        yield from misshapen(_SAY, message, path, _MESSAGE)
        if not _sound(message["content"]):
            yield from _content(message["content"], (*path, "content"), _ALL)
    yield from _content(body.get("system"), ("system",), frozenset({"text"}))


def _sound(content: object) -> bool:
    # What was sound in the last request is so in this one: a conversation is looked through once.
    text = _written(content)
    return len(text) <= REMEMBERED_CHARS_MAX and _found_sound(text)


@lru_cache(maxsize=REMEMBERED_MAX)
def _found_sound(text: str) -> bool:
    return not any(_content(json.loads(text), (), _ALL))


def tool_fields(body: Body, _: Known) -> Iterator[Refusal]:
    """The fields of tools that the client runs; the vendor's own have a type and a name."""
    for number, tool in enumerate(listed(body.get("tools"))):
        path: Path = ("tools", number)
        if isinstance(tool, dict) and tool.get("type") not in (None, "custom"):
            if not isinstance(tool.get("name"), str):
                yield _SAY.missing((*path, "name"))
            continue
        yield from misshapen(_SAY, tool, (*path, "custom"), _TOOL)
        yield from _marker(tool, path)


def _content(content: object, path: Path, allowed: frozenset[str]) -> Iterator[Refusal]:
    for index, block in enumerate(anthropic_blocks(content)):
        here = (*path, index)
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str) or kind not in allowed:
            expected = ", ".join(f"'{name}'" for name in sorted(allowed))
            yield Refusal(
                f"{dotted(here)}: Input tag '{kind}' found using 'type' does not match any of the "
                f"expected tags: {expected}"
            )
            continue
        bare = {key: value for key, value in block.items() if key != "type"}
        yield from misshapen(_SAY, bare, (*here, kind), _BLOCKS[kind])
        yield from _marker(block, here)
        if kind in ("image", "document"):
            yield from _by_type(block["source"], (*here, kind, "source"), _SOURCES)
        if kind == "tool_result":
            yield from _content(block.get("content"), (*here, kind, "content"), _IN_RESULT)


def _marker(block: Mapping[str, Any], path: Path) -> Iterator[Refusal]:
    marker = block.get("cache_control")
    if marker is not None:
        yield from misshapen(_SAY, marker, (*path, "cache_control"), _MARKER)


def _by_type(value: object, path: Path, shapes: Mapping[str, Shape]) -> Iterator[Refusal]:
    if value is None:
        return
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in shapes:
        expected = ", ".join(f"'{name}'" for name in shapes)
        yield Refusal(
            f"{dotted(path)}: Input tag '{kind}' found using 'type' does not match any of the expected "
            f"tags: {expected}"
        )
        return
    yield from misshapen(_SAY, value, (*path, kind), shapes[kind])
