"""What servers say of their tools, as definitions that are the same whatever order it was said in.

Names are mapped to what models take; a name that several tools would have gets its server's name in front,
and where even that is shared, a piece of the digest of the name that the server uses. A schema is passed on
as it is, its keys in one order. Left out, and told: a tool whose schema is no object's, or one that has no
canonical text. Annotations are a server's word about itself, and are taken from servers that are trusted.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shiftbook import canonical
from shiftbook.errors import NotCanonical
from shiftbook.messages import Json
from shiftbook.tools.contract import Repeat, stable_schema
from shiftbook.tools.plain import exact_text

NAME_CHARS_MAX = 64
_BAD = re.compile(r"[^A-Za-z0-9_-]")
_LONE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool as its server has it: `name` is the server's own; `text` is the canonical text of all of it."""

    server: str
    name: str
    description: str
    parameters: Mapping[str, Json]
    repeat: Repeat
    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Definition) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def read_listing(
    server: str, tools: Iterable[Mapping[str, Json]], repeat: Mapping[str, Repeat], *, trusted: bool
) -> tuple[tuple[Definition, ...], tuple[str, ...]]:
    """The definitions in one order, and a sentence for each tool that cannot be used.

    `repeat` is the author's word by the server's own tool names; it goes before any annotation.
    """
    found: dict[str, Definition] = {}
    left_out: list[str] = []
    for tool in tools:
        name = exact_text(str(tool.get("name", "")))
        try:
            made = _definition(server, name, tool, repeat, trusted)
        except (NotCanonical, ValueError) as fault:
            left_out.append(f"The tool {name!r} of MCP server {server!r} is left out: {fault}")
            continue
        other = found.get(name)
        # Twice under one name: the same one of them is taken, however they came.
        if other is None or made.text < other.text:
            found[name] = made
    return tuple(found[name] for name in sorted(found)), tuple(left_out)


def _definition(
    server: str, name: str, tool: Mapping[str, Json], repeat: Mapping[str, Repeat], trusted: bool
) -> Definition:
    schema = tool.get("inputSchema")
    if not isinstance(schema, Mapping):
        raise ValueError("it has no input schema.")
    stable = stable_schema({"type": "object", **schema})
    if stable["type"] != "object":
        raise ValueError("its input schema is not that of an object.")
    # Lone surrogates cannot go to any model, and a description is words for one.
    description = _LONE.sub("\ufffd", exact_text(str(tool.get("description") or "")))
    policy = repeat.get(name) or (policy_of(tool.get("annotations")) if trusted else "ask")
    text = canonical.encode([server, name, description, stable, policy])
    return Definition(server, name, description, stable, policy, text)


def policy_of(annotations: Json) -> Repeat:
    """What may be done after a cut, by the server's hints and the specification's defaults for them.

    A tool that only reads may be repeated, and one that is idempotent and not destructive; a hint that is
    left out counts as MCP says: not read-only, destructive, not idempotent. "keyed" is never concluded: no
    hint says that a server honours a key.
    """
    hints = annotations if isinstance(annotations, Mapping) else {}
    if hints.get("readOnlyHint") is True:
        return "safe"
    if hints.get("idempotentHint") is True and hints.get("destructiveHint") is False:
        return "safe"
    return "ask"


def tool_names(definitions: Sequence[Definition], *, taken: Iterable[str] = ()) -> list[str]:
    """A name for each definition that models take: unique, and the same in whatever order they come.

    `taken` are names that are used already, by tools of the agent's own.
    """
    plain = [mapped(item.name) for item in definitions]
    used = Counter([*plain, *taken])
    prefixed = [
        name if used[name] == 1 else mapped(f"{item.server}_{item.name}")
        for name, item in zip(plain, definitions, strict=True)
    ]
    used = Counter([*prefixed, *taken])
    return [
        name if used[name] == 1 else _with_digest(name, f"{item.server}\n{item.name}")
        for name, item in zip(prefixed, definitions, strict=True)
    ]


def mapped(name: str) -> str:
    """The name in 1 to 64 letters, digits, _ and -. A piece of its digest ends a long one, and one of which
    nothing is left."""
    plain = _BAD.sub("_", name)
    if not plain.strip("_-"):
        return _with_digest("tool", name)
    return plain if len(plain) <= NAME_CHARS_MAX else _with_digest(plain, name)


def _with_digest(name: str, whole: str) -> str:
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: NAME_CHARS_MAX - 9]}_{digest}"
