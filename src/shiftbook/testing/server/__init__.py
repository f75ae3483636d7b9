"""A model provider on this machine for tests: three wires, a script, the vendors' strictness.

See `provider.ProviderServer`. The parts that judge are plain functions and may be used alone: the rules of
each wire (`ANTHROPIC_RULES`, `CHAT_RULES`, `RESPONSES_RULES`, `first_refusal`), reasoning (`stale`), the view
of a cache (`cache_request`).
"""

from shiftbook.testing.server.accounts import FlatMeter, cache_request
from shiftbook.testing.server.anthropic_rules import ANTHROPIC_RULES
from shiftbook.testing.server.chat_rules import CHAT_RULES
from shiftbook.testing.server.exchange import Exchange
from shiftbook.testing.server.gate import Gate
from shiftbook.testing.server.pieces import anthropic_pieces, chat_pieces, responses_pieces
from shiftbook.testing.server.provider import ProviderServer
from shiftbook.testing.server.responses_rules import RESPONSES_RULES
from shiftbook.testing.server.rule import Known, Refusal, first_refusal
from shiftbook.testing.server.script import (
    Breaks,
    Cuts,
    Drops,
    Fails,
    Garbles,
    Hangs,
    Holds,
    Mistypes,
    Resets,
    Turn,
    Where,
    think,
    vendor_block,
)
from shiftbook.testing.server.signatures import Stale, stale

__all__ = [
    "ANTHROPIC_RULES",
    "CHAT_RULES",
    "RESPONSES_RULES",
    "Breaks",
    "Cuts",
    "Drops",
    "Exchange",
    "Fails",
    "FlatMeter",
    "Garbles",
    "Gate",
    "Hangs",
    "Holds",
    "Known",
    "Mistypes",
    "ProviderServer",
    "Refusal",
    "Resets",
    "Stale",
    "Turn",
    "Where",
    "anthropic_pieces",
    "cache_request",
    "chat_pieces",
    "first_refusal",
    "responses_pieces",
    "stale",
    "think",
    "vendor_block",
]
