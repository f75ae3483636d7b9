"""A model request as a prompt cache sees it: blocks of bytes with sizes, markers, and a time.

A cache knows nothing of words: it knows whether the bytes up to a point are the bytes it has seen. So a
block here is a digest of exact bytes and a number of tokens, and a prefix is the chained digest of the blocks
up to a point. Refused: markers out of order, out of range, or short-lived before long-lived ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from typing import Literal

from shiftbook.errors import BadInput
from shiftbook.messages import Usage

Ttl = Literal["5m", "1h"]
Tier = Literal["tools", "system", "messages"]
_RANKS: Mapping[Tier, int] = {"tools": 0, "system": 1, "messages": 2}


@dataclass(frozen=True, slots=True)
class CacheBlock:
    """One content block as the vendor counts them: a text, a call, a result, each by itself.

    `digest` covers its exact bytes, role and framing included; `tokens` is its size by any one meter.

    `anchor` says that a user or tool message ends here: OpenAI's own breakpoint may stand there.
    """

    digest: str
    tokens: int
    tier: Tier = "messages"
    anchor: bool = False


@dataclass(frozen=True, slots=True)
class Marker:
    """A cache breakpoint after block number `at` (from 0): the prefix up to and with it is to be kept."""

    at: int
    ttl: Ttl = "5m"


@dataclass(frozen=True, slots=True)
class CacheRequest:
    """One request at `at` seconds of any one clock.

    `scope` names what never shares a cache (model, organisation, cache key). `settings` is a digest of the
    parameters whose change spoils the messages but not tools and system: tool choice, images, reasoning.
    """

    at: float
    blocks: tuple[CacheBlock, ...]
    markers: tuple[Marker, ...] = ()
    scope: str = ""
    settings: str = ""

    def __post_init__(self) -> None:
        reached = 0
        for block in self.blocks:
            if block.tokens < 0:
                raise BadInput("A block of a request has a negative number of tokens; give its size or zero.")
            rank = _RANKS[block.tier]
            if rank < reached:
                raise BadInput("The blocks of a request must come as tools, then system, then messages.")
            reached = rank
        positions = [marker.at for marker in self.markers]
        if positions != sorted(set(positions)):
            raise BadInput("The cache markers of a request must stand at rising positions, one at each.")
        if positions and not 0 <= positions[0] <= positions[-1] < len(self.blocks):
            raise BadInput(
                f"A cache marker stands outside the request: it has {len(self.blocks)} blocks, "
                f"counted from 0, and markers at {positions}."
            )
        lives = [marker.ttl for marker in self.markers]
        if lives != sorted(lives):  # "1h" sorts before "5m", as the vendor demands
            raise BadInput("Markers that live 1h must come before those that live 5m; swap them.")

    @property
    def tokens(self) -> int:
        """Tokens of the whole prompt."""
        return sum(block.tokens for block in self.blocks)


@dataclass(frozen=True, slots=True)
class CacheCount:
    """Where the tokens of a prompt came from; the four parts add up to the prompt, each token once."""

    uncached: int = 0
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt."""
        return self.uncached + self.read + self.write_5m + self.write_1h

    def usage(self, output: int | None = None) -> Usage:
        """The same tokens in the normal form of usage, with the reply's `output` tokens."""
        return Usage(self.uncached, self.read, self.write_5m, self.write_1h, output)

    def __add__(self, other: CacheCount) -> CacheCount:
        return CacheCount(
            self.uncached + other.uncached,
            self.read + other.read,
            self.write_5m + other.write_5m,
            self.write_1h + other.write_1h,
        )


def prefix_digests(request: CacheRequest) -> list[bytes]:
    """The digest of every prefix, one for each block: equal if and only if all bytes up to it are equal."""
    digests: list[bytes] = []
    state = _hash(b"", request.scope)
    in_messages = False
    for block in request.blocks:
        if block.tier == "messages" and not in_messages:
            in_messages = True
            state = _hash(state, request.settings)
        state = _hash(state, block.digest)
        digests.append(state)
    return digests


def prefix_tokens(request: CacheRequest) -> list[int]:
    """Tokens up to and with each block."""
    return list(accumulate(block.tokens for block in request.blocks))


def four_markers(
    *, fixed_end: int | None, brief_end: int | None, previous_end: int | None, end: int, ttl: Ttl = "5m"
) -> tuple[Marker, ...]:
    """The four markers of a run, each the number of a block: where the fixed part, the brief, the previous
    request and this request end. Places that coincide or are absent (None) take one marker or none.
    """
    places: Sequence[int | None] = (fixed_end, brief_end, previous_end, end)
    return tuple(Marker(place, ttl) for place in sorted({place for place in places if place is not None}))


def _hash(state: bytes, text: str) -> bytes:
    return blake2b(state + text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
