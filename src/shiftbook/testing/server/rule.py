"""How a vendor says no: a rule is a small function of the parsed body, under a stable name.

A rule yields what it finds wrong; the first finding of the first rule is the answer, as with the vendors.
Rules about shape come first, so that the later ones may trust it. The words follow the vendors' own where
these are known, for those who match on them; tests should go by the rule's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from shiftbook.economics.cache_rules import CacheRule

Body = Mapping[str, Any]
Path = tuple[str | int, ...]
WireName = Literal["anthropic", "chat", "responses"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """One finding: the rule's name, and what the error body says."""

    message: str
    param: str | None = None
    code: str | None = None
    status: int = 400
    kind: str = "invalid_request_error"
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """What a vendor knows beside the body: asked-for betas, the model's cache, and where replies paused.

    `paused` holds the chained digests of conversations whose last reply was a pause: only these may go on
    with the assistant's turn last.
    """

    betas: frozenset[str] = frozenset()
    cache: CacheRule | None = None
    paused: frozenset[bytes] = frozenset()


Check = Callable[[Body, Known], Iterable[Refusal]]


def first_refusal(rules: Mapping[str, Check], body: Body, known: Known) -> Refusal | None:
    """The first thing that any rule finds wrong, in the order of the rules."""
    for name, check in rules.items():
        for found in check(body, known):
            return replace(found, rule=name)
    return None


@dataclass(frozen=True, slots=True)
class Shape:
    """Fields of an object and what each may be: words of `KINDS` joined by `|`. Others are refused.

    A field that need not be there may also be null.
    """

    required: Mapping[str, str]
    optional: Mapping[str, str]


def shape(required: str, optional: str = "") -> Shape:
    """`shape("id name input:object", "cache_control:object")`; a field without a kind is a string."""
    return Shape(_fields(required), _fields(optional))


def _fields(text: str) -> dict[str, str]:
    return {name: kind or "string" for name, _, kind in (each.partition(":") for each in text.split())}


KINDS: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "list": list,
    "object": dict,
    "any": object,
    "null": type(None),
}


class Dialect(Protocol):
    """A vendor's words for a field that is missing, not known or of the wrong kind."""

    def missing(self, path: Path) -> Refusal: ...

    def unknown(self, path: Path) -> Refusal: ...

    def wrong(self, path: Path, kind: str) -> Refusal: ...


def misshapen(say: Dialect, value: object, path: Path, wanted: Shape) -> Iterator[Refusal]:
    """What is wrong with an object's fields."""
    if not isinstance(value, dict):
        yield say.wrong(path, "object")
        return
    for name in value:
        if name not in wanted.required and name not in wanted.optional:
            yield say.unknown((*path, name))
    for name, kind in wanted.required.items():
        if name not in value:
            yield say.missing((*path, name))
        elif not fits(value[name], kind):
            yield say.wrong((*path, name), kind)
    for name, kind in wanted.optional.items():
        if value.get(name) is not None and not fits(value[name], kind):
            yield say.wrong((*path, name), kind)


def fits(value: object, kind: str) -> bool:
    """Whether a value is of one of the kinds in `kind`; true and false are no numbers."""
    return any(
        isinstance(value, KINDS[each]) and (each in ("boolean", "any") or not isinstance(value, bool))
        for each in kind.split("|")
    )


def listed(value: object) -> list[Any]:
    """The value if it is a list, else an empty one: for the many fields that may be absent or null."""
    return value if isinstance(value, list) else []


_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_MAGIC: Mapping[str, str] = {
    "image/jpeg": "/9j/",
    "image/png": "iVBORw0KGgo",
    "image/gif": "R0lGOD",
    "image/webp": "UklGR",
}
"""How the base64 text of a file of that type begins."""

IMAGE_TYPES = tuple(_MAGIC)


def is_base64(data: str) -> bool:
    """Whether the text is base64 with its padding, without breaks, and not empty."""
    return bool(data) and _BASE64.fullmatch(data) is not None


def looks_like(media_type: str, data: str) -> bool:
    """Whether base64 data begins as a file of that media type does."""
    return data.startswith(_MAGIC.get(media_type, ""))
