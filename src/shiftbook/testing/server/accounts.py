"""What a request costs in tokens, earned by its own blocks and markers under the vendor's cache rules.

A wire body becomes a `CacheRequest` of `shiftbook.economics`, one block a content block; the rule of the
model serves it from what earlier requests left. Sizes are by a meter of ours, not the vendor's count: the
shares are what means something. A model whose cache rule is not known reads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from shiftbook.economics.cache import Cache, serve
from shiftbook.economics.cache_request import CacheBlock, CacheCount, CacheRequest, Marker
from shiftbook.economics.cache_rules import BreakpointRule, CacheRule, PrefixRule
from shiftbook.messages import Call, Reasoning, Reply, Text
from shiftbook.testing.server.pieces import REMEMBERED_MAX, Piece, written
from shiftbook.testing.server.rule import Body, WireName
from shiftbook.testing.server.script import arguments_text
from shiftbook.tokens import Meter, Tokens

MEDIA_TOKENS = 1600
"""An image or a document, whatever its size: about what Anthropic counts for a large image."""
REDACTED_TOKENS = 64
"""Output tokens of reasoning whose words are withheld."""
_DAY_S, _HALF_DAY_S = 86_400.0, 43_200.0


class FlatMeter:
    """Every block is so many tokens, whatever is in it: for tests that do sums in the head."""

    name = "flat"

    def __init__(self, tokens: int) -> None:
        self._tokens = Tokens(tokens)

    def count(self, text: str) -> Tokens:
        return self._tokens


class _Remembering:
    """A meter that counts a text once: a conversation sends its texts again and again."""

    def __init__(self, meter: Meter) -> None:
        self.name = meter.name
        self.count = lru_cache(maxsize=REMEMBERED_MAX)(meter.count)


@dataclass(frozen=True, slots=True)
class Output:
    """Tokens of a reply; `reasoning` is part of `total`."""

    total: int
    reasoning: int


class Accounts:
    """The caches of one vendor, all scopes of them."""

    def __init__(self, meter: Meter) -> None:
        self._meter = _Remembering(meter)
        self._cache = Cache()

    def charge(
        self,
        rule: CacheRule | None,
        wire: WireName,
        body: Body,
        pieces: Sequence[Piece],
        *,
        at_s: float,
        key: str,
    ) -> CacheCount:
        """Serve a request at that second of the clock, and keep what it leaves in the cache."""
        request = cache_request(wire, body, pieces, self._meter, at_s=at_s, key=key)
        if rule is None:
            return CacheCount(uncached=request.tokens)
        count, self._cache = serve(rule_for(rule, body), self._cache, request)
        return count

    def output(self, reply: Reply) -> Output:
        """What a reply is counted as: at least one token."""
        total = reasoning = 0
        for part in reply.parts:
            if isinstance(part, Reasoning):
                told = self._meter.count(part.text) if part.text else REDACTED_TOKENS
                reasoning += told
                total += told
            elif isinstance(part, Text):
                total += self._meter.count(part.text)
            elif isinstance(part, Call):
                total += self._meter.count(part.tool + arguments_text(part))
        return Output(max(1, total), reasoning)


def rule_for(rule: CacheRule, body: Body) -> CacheRule:
    """The rule with what the request itself asks for: explicit breakpoints only, a longer life."""
    options = body.get("prompt_cache_options") or {}
    if isinstance(rule, BreakpointRule):
        life = _HALF_DAY_S if options.get("ttl") == "12h" else rule.life
        return replace(rule, implicit=rule.implicit and options.get("mode") != "explicit", life=life)
    if isinstance(rule, PrefixRule) and body.get("prompt_cache_retention") == "24h":
        return replace(rule, life=_DAY_S)
    return rule


def cache_request(
    wire: WireName, body: Body, pieces: Sequence[Piece], meter: Meter, *, at_s: float = 0.0, key: str = ""
) -> CacheRequest:
    """A wire body as a cache sees it. `key` is the account: accounts share nothing."""
    blocks = tuple(
        CacheBlock(
            piece.digest, meter.count(piece.counted) + MEDIA_TOKENS * piece.media, piece.tier, piece.anchor
        )
        for piece in pieces
    )
    markers = tuple(Marker(n, piece.marker) for n, piece in enumerate(pieces) if piece.marker)
    return CacheRequest(at_s, blocks, markers, _scope(wire, body, key), _settings(wire, body, pieces))


def _scope(wire: WireName, body: Body, key: str) -> str:
    """What shares no cache at all. OpenAI reckons output form and effort to the prefix."""
    if wire == "anthropic":
        return written([key, body["model"]])
    names = (
        "model",
        "prompt_cache_key",
        "reasoning_effort",
        "reasoning",
        "verbosity",
        "response_format",
        "text",
    )
    return written([key, *(body.get(name) for name in names)])


def _settings(wire: WireName, body: Body, pieces: Sequence[Piece]) -> str:
    """What spoils the messages and leaves tools and system: Anthropic's tool choice, thinking, any image."""
    if wire != "anthropic":
        return ""
    return written([body.get("tool_choice"), body.get("thinking"), any(piece.media for piece in pieces)])
