"""The three wires side by side: where each is, how it is read and answered, in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shiftbook.testing.server import anthropic_wire, chat_wire, openai_errors, responses_wire
from shiftbook.testing.server.anthropic_rules import ANTHROPIC_RULES
from shiftbook.testing.server.chat_rules import CHAT_RULES
from shiftbook.testing.server.events import Event
from shiftbook.testing.server.making import Made, Making
from shiftbook.testing.server.pieces import Piece, anthropic_pieces, chat_pieces, responses_pieces
from shiftbook.testing.server.responses_rules import RESPONSES_RULES
from shiftbook.testing.server.rule import Body, Check, Refusal, WireName
from shiftbook.testing.server.signatures import Stale

_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Wire:
    """One vendor's way to ask for a reply; a body above `body_bytes_max` is refused."""

    name: WireName
    path: str
    rules: Mapping[str, Check]
    pieces: Callable[[Body], list[Piece]]
    whole: Callable[[Making, Mapping[str, Any], Sequence[Stale]], Made]
    streamed: Callable[[Made, Mapping[str, Any]], list[Event]]
    error_body: Callable[[Refusal, str], dict[str, Any]]
    error_event: Callable[[Refusal, str, int], Event]
    stale_refusal: Callable[[Stale], Refusal]
    kinds: Mapping[int, str]
    codes: Mapping[int, str]
    other_kind: str
    request_id: str
    body_bytes_max: int

    def refusal(self, status: int, message: str, rule: str, **given: str | None) -> Refusal:
        """A refusal of that status, with the vendor's kind and code for it unless given."""
        kind = given.get("kind") or self.kinds.get(status, self.other_kind)
        return Refusal(
            message, code=given.get("code") or self.codes.get(status), status=status, kind=kind, rule=rule
        )


ANTHROPIC = Wire(
    "anthropic",
    "/v1/messages",
    ANTHROPIC_RULES,
    anthropic_pieces,
    anthropic_wire.whole,
    anthropic_wire.streamed,
    anthropic_wire.error_body,
    anthropic_wire.error_event,
    anthropic_wire.stale_refusal,
    anthropic_wire.KINDS,
    {},
    "api_error",
    anthropic_wire.REQUEST_ID,
    32 * _MEBIBYTE,
)
CHAT = Wire(
    "chat",
    "/v1/chat/completions",
    CHAT_RULES,
    chat_pieces,
    chat_wire.whole,
    chat_wire.streamed,
    openai_errors.error_body,
    chat_wire.error_event,
    openai_errors.stale_refusal,
    openai_errors.KINDS,
    openai_errors.CODES,
    "server_error",
    openai_errors.REQUEST_ID,
    50 * _MEBIBYTE,
)
RESPONSES = Wire(
    "responses",
    "/v1/responses",
    RESPONSES_RULES,
    responses_pieces,
    responses_wire.whole,
    responses_wire.streamed,
    openai_errors.error_body,
    responses_wire.error_event,
    openai_errors.stale_refusal,
    openai_errors.KINDS,
    openai_errors.CODES,
    "server_error",
    openai_errors.REQUEST_ID,
    50 * _MEBIBYTE,
)
WIRES: Mapping[str, Wire] = {wire.path: wire for wire in (ANTHROPIC, CHAT, RESPONSES)}
