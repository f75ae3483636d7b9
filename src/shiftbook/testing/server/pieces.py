"""A wire body as its vendor reads it: one piece for each tool, instruction and content block, in order.

Two things are decided by the pieces and by nothing else: what a cache may serve, and which prefix a reasoning
block is bound to. Both leave out what is no content (cache markers, null fields, an item's status), read a
string as the block that it is short for, and join neighbouring messages of one role, as the vendors do.
Order inside a call's input or a schema counts: a cache compares bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from shiftbook.economics.cache_request import Tier, Ttl
from shiftbook.testing.server.rule import Body, listed

REMEMBERED_MAX = 32_768
REMEMBERED_CHARS_MAX = 65_536
_NOT_SAID = frozenset({"cache_control", "prompt_cache_breakpoint", "status", "annotations", "logprobs"})
_NOT_COUNTED = frozenset({"signature", "encrypted_content", "data", "image_url", "file_data"})


_WITH_BYTES = _NOT_COUNTED | {"source", "file", "content", "output"}
"""Fields that may hold what is not counted, themselves or further in."""
_written = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Reasoned:
    """A reasoning block that came back: where, its words, and what the vendor had signed it with."""

    path: str
    words: str
    signature: str
    block: str = "thinking"
    id: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """One block. `digest` covers its exact content with its role, `counted` is what a meter counts of it."""

    tier: Tier
    digest: str
    counted: str
    media: int = 0
    marker: Ttl | None = None
    anchor: bool = False
    reasoned: Reasoned | None = None


def chain(pieces: Iterable[Piece], start: bytes = b"") -> list[bytes]:
    """The digest of everything before each piece, and last of all of everything."""
    states = [start]
    for piece in pieces:
        states.append(hashlib.sha256(states[-1] + piece.digest.encode()).digest())
    return states


# Anthropic Messages


def anthropic_pieces(body: Body) -> list[Piece]:
    """The pieces of a Messages body whose shape is right; a marker on the whole body falls on the last."""
    found = [_piece("tools", "", tool) for tool in listed(body.get("tools"))]
    found += [_piece("system", "system", block) for block in anthropic_blocks(body.get("system"))]
    for number, message in enumerate(body["messages"]):
        for index, piece in enumerate(_anthropic_message(message)):
            if piece.reasoned is not None:
                placed = replace(piece.reasoned, path=f"messages.{number}.content.{index}")
                piece = replace(piece, reasoned=placed)
            found.append(piece)
    whole = _ttl(body)
    for place in range(len(found) - 1, -1, -1):
        if whole and found[place].reasoned is None:
            found[place] = replace(found[place], marker=found[place].marker or whole)
            break
    return found


def _anthropic_message(message: Mapping[str, Any]) -> Sequence[Piece]:
    # A conversation sends its messages again and again: each is taken apart once, large ones excepted.
    text = _written(message["content"])
    if len(text) > REMEMBERED_CHARS_MAX:
        return _taken_apart(message["role"], text)
    return _remembered(message["role"], text)


def _taken_apart(role: str, text: str) -> tuple[Piece, ...]:
    return tuple(anthropic_piece(role, block) for block in anthropic_blocks(json.loads(text)))


_remembered = lru_cache(maxsize=REMEMBERED_MAX)(_taken_apart)


def anthropic_blocks(content: object) -> list[Any]:
    """A content field as a list of blocks: a string is one block of text."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else listed(content)


def anthropic_piece(role: str, block: Mapping[str, Any]) -> Piece:
    """The piece of one content block."""
    made = _piece("messages", role, block)
    if block["type"] == "thinking":
        back = Reasoned("", block["thinking"], block["signature"])
        return replace(made, counted=block["thinking"], reasoned=back)
    if block["type"] == "redacted_thinking":
        return replace(made, reasoned=Reasoned("", "", block["data"], "redacted_thinking"))
    return made


# OpenAI Chat Completions


def chat_pieces(body: Body) -> list[Piece]:
    """The pieces of a Chat body whose shape is right."""
    found = [_piece("tools", "", tool) for tool in listed(body.get("tools"))]
    leading = True
    for message in body["messages"]:
        role = message["role"]
        leading = leading and role in ("system", "developer")
        made = list(_chat_message(message, "system" if leading else "messages"))
        if made and role in ("user", "tool"):
            made[-1] = replace(made[-1], anchor=True)
        found += made
    return found


def _chat_message(message: Mapping[str, Any], tier: Tier) -> Iterator[Piece]:
    role = "\n".join(str(message.get(key, "")) for key in ("role", "name", "tool_call_id"))
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else listed(content)
    if message.get("refusal") is not None:
        parts = [*parts, {"type": "refusal", "refusal": message["refusal"]}]
    for part in (*parts, *listed(message.get("tool_calls"))):
        yield _piece(tier, role, part)


# OpenAI Responses


def responses_pieces(body: Body) -> list[Piece]:
    """The pieces of a Responses body whose shape is right."""
    found = [_piece("tools", "", tool) for tool in listed(body.get("tools"))]
    if body.get("instructions"):
        found.append(_piece("system", "instructions", {"type": "text", "text": body["instructions"]}))
    leading = True
    for number, item in enumerate(responses_items(body)):
        leading = leading and item.get("role") in ("system", "developer")
        made = list(responses_item_pieces(item, f"input[{number}]", "system" if leading else "messages"))
        if made and (item.get("role") == "user" or item.get("type") == "function_call_output"):
            made[-1] = replace(made[-1], anchor=True)
        found += made
    return found


def responses_items(body: Body) -> list[Any]:
    """The input as a list of items: a string is one user message."""
    given = body.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else listed(given)


def responses_item_pieces(
    item: Mapping[str, Any], path: str = "", tier: Tier = "messages"
) -> Iterator[Piece]:
    """One piece for each part of a message, one for any other item; ids of items are no content."""
    if "role" in item:
        kind = "output_text" if item["role"] == "assistant" else "input_text"
        content = item["content"]
        parts = [{"type": kind, "text": content}] if isinstance(content, str) else listed(content)
        for part in parts:
            yield _piece(tier, item["role"], part)
        return
    bare = {key: value for key, value in item.items() if key != "id"}
    made = _piece(tier, "", bare)
    if item.get("type") == "reasoning":
        words = "\n".join(part["text"] for part in item["summary"])
        back = Reasoned(path, words, item.get("encrypted_content") or "", "reasoning", item.get("id") or "")
        made = replace(made, counted=words, reasoned=back)
    yield made


# What all have in common


def _piece(tier: Tier, role: str, block: Mapping[str, Any]) -> Piece:
    said = _said(block)
    whole = written(said)
    if len(said) == 2 and isinstance(said.get("text"), str):
        counted = said["text"]
    elif _WITH_BYTES.isdisjoint(said):
        counted = whole
    else:
        counted = written(_counted(said))
    digest = hashlib.sha256(f"{tier}\n{role}\n{whole}".encode("utf-8", "surrogatepass")).hexdigest()
    return Piece(tier, digest, counted, _media(block), _ttl(block))


def written(value: object) -> str:
    """The fields of a block in the order of their names, and what is in them as it came."""
    if isinstance(value, dict):
        value = {key: value[key] for key in sorted(value)}
    return _written(value)


def _said(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block without what is not content; a result's own blocks and citations likewise, fields by name.

    The official SDK gives fields in an order of its own, so none can mind. Inputs and schemas stay whole.
    """
    said = {key: value for key, value in block.items() if value is not None and key not in _NOT_SAID}
    for key in ("content", "output", "citations"):
        if isinstance(said.get(key), list):
            inner = [_said(each) if isinstance(each, dict) else each for each in said[key]]
            said[key] = [dict(sorted(each.items())) if isinstance(each, dict) else each for each in inner]
    return said


def _counted(said: Mapping[str, Any]) -> dict[str, Any]:
    left = {key: value for key, value in said.items() if key not in _NOT_COUNTED}
    for key in ("source", "file"):
        if isinstance(left.get(key), dict):
            left[key] = _counted(left[key])
    for key in ("content", "output"):
        if isinstance(left.get(key), list):
            left[key] = [_counted(each) if isinstance(each, dict) else each for each in left[key]]
    return left


def _media(block: Mapping[str, Any]) -> int:
    own = block.get("type") in ("image", "document", "image_url", "file", "input_image", "input_file")
    inner = [*listed(block.get("content")), *listed(block.get("output"))]
    return int(own) + sum(_media(each) for each in inner if isinstance(each, dict))


def _ttl(block: Mapping[str, Any]) -> Ttl | None:
    marker = block.get("cache_control") or block.get("prompt_cache_breakpoint")
    for each in (*listed(block.get("content")), *listed(block.get("output"))):
        if isinstance(each, dict):
            marker = marker or each.get("cache_control") or each.get("prompt_cache_breakpoint")
    if not isinstance(marker, dict):
        return None
    return "1h" if marker.get("ttl") == "1h" else "5m"
