"""What a vendor checks before it looks into a request: the key, the size, that the body is JSON at all."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from shiftbook.testing.server.exchange import Exchange
from shiftbook.testing.server.rule import Refusal
from shiftbook.testing.server.wires import Wire


def given_key(headers: Mapping[str, str]) -> str:
    """The key that a request carries, "" if none."""
    bearer = headers.get("authorization", "")
    return headers.get("x-api-key") or bearer.removeprefix("Bearer ").strip()


def at_the_door(wire: Wire, exchange: Exchange, keys: Collection[str] | None) -> Refusal | None:
    """Refuse a request by its headers and its size; `keys` None takes any key, but not none."""
    key = given_key(exchange.headers)
    if not key or (keys is not None and key not in keys):
        return wire.refusal(401, _key_message(wire, key), "key")
    if wire.name == "anthropic" and "anthropic-version" not in exchange.headers:
        return wire.refusal(400, "anthropic-version: header is required", "version header")
    if len(exchange.raw) > wire.body_bytes_max:
        return wire.refusal(413, "Request exceeds the maximum size", "size")
    return None


def _key_message(wire: Wire, key: str) -> str:
    if wire.name == "anthropic":
        return "invalid x-api-key" if key else "x-api-key header is required"
    return f"Incorrect API key provided: {key[:4]}***." if key else "You didn't provide an API key."


def parsed(wire: Wire, raw: bytes) -> Mapping[str, Any] | Refusal:
    """The body as an object. Refused: no JSON, no object, NaN, a surrogate without its other half."""
    try:
        body = json.loads(raw.decode("utf-8"), parse_constant=_no_such_number)
        if b"\\ud" in raw.lower():
            json.dumps(body, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as fault:
        return wire.refusal(400, f"The request body is not valid JSON: {fault}", "json")
    if not isinstance(body, dict):
        return wire.refusal(400, "The request body is not valid JSON: an object is expected", "json")
    return body


def _no_such_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def model_known(wire: Wire, body: Mapping[str, Any], models: Collection[str] | None) -> Refusal | None:
    """Refuse a model that is not served here; `models` None serves any."""
    model = body.get("model")
    if models is None or model in models:
        return None
    if wire.name == "anthropic":
        return wire.refusal(404, f"model: {model}", "model")
    message = f"The model `{model}` does not exist or you do not have access to it."
    return wire.refusal(404, message, "model")
