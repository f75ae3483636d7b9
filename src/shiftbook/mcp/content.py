"""What a server answered to a call, as parts and blobs: whatever it is, it is recorded.

Text is text; images, sounds and the bytes of embedded resources are media in blobs; a link to a resource is
told in words and not followed. Structured content is left out where a text says the same, as the
specification asks servers to do. What is not of the shape that MCP describes is recorded as it came. The
size is bounded as for any tool.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from shiftbook import canonical
from shiftbook.errors import NotCanonical
from shiftbook.messages import Json, Missing, Text
from shiftbook.tools.contract import Output
from shiftbook.tools.plain import exact_text
from shiftbook.tools.results import File, to_output

NO_CONTENT = "the content: the server sent none"
INPUT_ASKED = (
    "The server did not complete this call: it asked for input from a person or a model in the middle of it, "
    "which is not given here."
)

Piece = Text | Missing | File | Json


def read_answer(answer: Json) -> Output:
    """The answer to a call, taken from its JSON. Never raises."""
    if not isinstance(answer, Mapping):
        return to_output(answer)
    if answer.get("resultType") == "input_required":
        return to_output(Text(INPUT_ASKED), is_error=True)
    content = answer.get("content", [])
    if not isinstance(content, list):
        return to_output(dict(answer), is_error=answer.get("isError") is True)
    pieces: list[Piece] = []
    for item in content:
        pieces.extend(_pieces(item))
    structured = answer.get("structuredContent")
    if structured is not None and not any(_says(item, structured) for item in content):
        pieces.append(Text(_text_of(structured)))
    # A part in the row makes it a row of parts; without one, a list of odd things would be one value.
    row = pieces or [Missing(NO_CONTENT)]
    return to_output(_row(row), is_error=answer.get("isError") is True)


def _row(pieces: list[Piece]) -> list[Piece]:
    return [piece if isinstance(piece, Text | Missing | File) else Text(_text_of(piece)) for piece in pieces]


def _pieces(item: Json) -> list[Piece]:
    kind = item.get("type") if isinstance(item, Mapping) else None
    if kind == "text" and isinstance(item.get("text"), str):
        return [Text(item["text"])]
    if kind in ("image", "audio") and isinstance(item.get("data"), str):
        return _media(item["data"], _named(item.get("mimeType")), None, kind)
    if kind == "resource" and isinstance(item.get("resource"), Mapping):
        return _resource(item["resource"])
    if kind == "resource_link" and isinstance(item.get("uri"), str):
        told = {name: value for name, value in item.items() if name not in ("type", "_meta", "icons")}
        return [Text(f"[A link to a resource, not read here: {_text_of(told)}]")]
    return [item]


def _resource(resource: Mapping[str, Json]) -> list[Piece]:
    uri = _named(resource.get("uri")) or "no address"
    if isinstance(resource.get("text"), str):
        return [Text(f"[Resource {uri}:]\n{resource['text']}")]
    if isinstance(resource.get("blob"), str):
        return _media(resource["blob"], _named(resource.get("mimeType")), uri, "resource")
    return [dict(resource)]


def _media(data: str, media_type: str | None, name: str | None, kind: str) -> list[Piece]:
    try:
        return [File(base64.b64decode(data, validate=True), media_type, name)]
    except (binascii.Error, ValueError):
        raw = File(data.encode("utf-8", "surrogatepass"), "text/plain", name)
        return [Missing(f"the {kind}: what the server sent is not base64; it is kept as it came"), raw]


def _named(value: Json) -> str | None:
    return exact_text(value) if isinstance(value, str) and value else None


def _says(item: Json, structured: Json) -> bool:
    """Whether a text holds the structured content and nothing else."""
    if not isinstance(item, Mapping) or not isinstance(item.get("text"), str):
        return False
    try:
        return _key(json.loads(item["text"])) == _key(structured)
    except (ValueError, RecursionError, NotCanonical):
        return False


def _key(value: Any) -> str:
    """Equal for equal JSON, whatever the order of keys: unlike `==`, true is not 1."""
    return json.dumps(value, sort_keys=True, allow_nan=False)


def _text_of(value: Json) -> str:
    try:
        return canonical.encode(value)
    except NotCanonical:
        parts = to_output(value).content
        return "\n".join(part.text for part in parts if isinstance(part, Text))
