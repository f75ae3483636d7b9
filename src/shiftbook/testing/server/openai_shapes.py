"""What OpenAI's two wires have in common: words for a bad field, names, schemas, data URLs, breakpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shiftbook.economics.cache_rules import BreakpointRule
from shiftbook.testing.server.rule import (
    IMAGE_TYPES,
    Body,
    Known,
    Path,
    Refusal,
    is_base64,
    listed,
    looks_like,
    shape,
)

TEXT_CHARS_MAX = 10_485_760
BREAKPOINT = shape("mode", "ttl")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)


def bracketed(path: Path) -> str:
    """A path as OpenAI writes it: messages[0].content."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


class Words:
    """OpenAI's words for a field that is not as it should be."""

    def missing(self, path: Path) -> Refusal:
        name = bracketed(path)
        return Refusal(f"Missing required parameter: '{name}'.", name, "missing_required_parameter")

    def unknown(self, path: Path) -> Refusal:
        name = bracketed(path)
        return Refusal(f"Unknown parameter: '{name}'.", name, "unknown_parameter")

    def wrong(self, path: Path, kind: str) -> Refusal:
        name, wanted = bracketed(path), " or ".join(kind.split("|"))
        return Refusal(f"Invalid type for '{name}': expected {wanted}.", name, "invalid_type")

    def value(self, path: Path, given: object, supported: Iterable[str]) -> Refusal:
        name, known = bracketed(path), ", ".join(f"'{each}'" for each in supported)
        return Refusal(f"Invalid value: '{given}'. Supported values are: {known}.", name, "invalid_value")


SAY = Words()


def name_faults(path: Path, name: str) -> Iterator[Refusal]:
    """A function's name: 1 to 64 letters, digits, underscores, hyphens."""
    where = bracketed(path)
    if not _NAME.fullmatch(name):
        yield Refusal(
            f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$' with a maximum length of 64.",
            where,
            "invalid_value",
        )


def schema_faults(path: Path, name: str, parameters: object) -> Iterator[Refusal]:
    """A function's parameters: a JSON schema of type object."""
    given = parameters.get("type") if isinstance(parameters, dict) else None
    if parameters is not None and given != "object":
        yield Refusal(
            f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got "
            f"'type: \"{given}\"'.",
            bracketed(path),
            "invalid_function_parameters",
        )


def twice(path: Path, names: Iterable[str]) -> Iterator[Refusal]:
    """Function names that are declared more than once."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield Refusal(f"Duplicate function name: '{name}'.", bracketed(path), "invalid_value")
        seen.add(name)


def too_long(path: Path, text: str, most: int) -> Iterator[Refusal]:
    """A string above its greatest length."""
    if len(text) > most:
        where = bracketed(path)
        yield Refusal(
            f"Invalid '{where}': string too long. Expected a string with maximum length {most}, but got a "
            f"string with length {len(text)} instead.",
            where,
            "string_above_max_length",
        )


def image_faults(path: Path, address: object) -> Iterator[Refusal]:
    """An image is a web address or a data URL: a media type that is known, base64 that is sound."""
    where = bracketed(path)
    if not isinstance(address, str):
        yield SAY.wrong(path, "string")
        return
    if re.match(r"https?://", address):
        return
    found = _DATA_URL.fullmatch(address)
    if not found:
        yield Refusal(
            f"Invalid '{where}'. Expected a valid URL or a base64-encoded data URL with an image MIME type "
            "(e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=').",
            where,
            "invalid_value",
        )
    elif found[1] not in IMAGE_TYPES:
        yield Refusal(
            "You uploaded an unsupported image. Please make sure your image is valid and has one of the "
            f"following formats: {', '.join(each.partition('/')[2] for each in IMAGE_TYPES)}.",
            where,
            "invalid_image_format",
        )
    elif not is_base64(found[2]) or not looks_like(found[1], found[2]):
        yield Refusal(
            "The image data you provided does not represent a valid image.", where, "invalid_base64"
        )


def cache_settings(
    body: Body, known: Known, marked: Iterable[tuple[Path, Mapping[str, Any]]], lives: tuple[str, ...]
) -> Iterator[Refusal]:
    """Breakpoints and their options: only where the model has them, and of a known kind."""
    options = body.get("prompt_cache_options")
    has = isinstance(known.cache, BreakpointRule)
    if options is not None:
        if not has:
            yield SAY.unknown(("prompt_cache_options",))
        if options.get("mode") not in (None, "implicit", "explicit"):
            yield SAY.value(("prompt_cache_options", "mode"), options["mode"], ("implicit", "explicit"))
        if options.get("ttl") not in (None, *lives):
            yield SAY.value(("prompt_cache_options", "ttl"), options["ttl"], lives)
    for path, marker in marked:
        if not has:
            yield SAY.unknown(path)
        if marker.get("mode") != "explicit":
            yield SAY.value((*path, "mode"), marker.get("mode"), ("explicit",))
    if body.get("prompt_cache_retention") not in (None, "in_memory", "24h"):
        yield SAY.value(("prompt_cache_retention",), body["prompt_cache_retention"], ("in_memory", "24h"))


def only_with_tools(body: Body, *fields: str) -> Iterator[Refusal]:
    """Settings that mean something only beside tools."""
    for field in fields:
        if body.get(field) is not None and not listed(body.get("tools")):
            yield Refusal(f"'{field}' is only allowed when 'tools' are specified.", field)
