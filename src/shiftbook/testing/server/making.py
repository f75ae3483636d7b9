"""What a reply is made with: whose it is, what it follows, what it is signed and named by.

Ids come from the prefix and the number of the request, never from chance: a script run again gives the same
bytes, and no conversation holds an id twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shiftbook.economics.cache_request import CacheCount
from shiftbook.messages import Call, Reply, StopReason
from shiftbook.testing.server.accounts import Output
from shiftbook.testing.server.signatures import sign


@dataclass(frozen=True, slots=True)
class Making:
    """One reply in the making. `before` is the digest of the request, `at_s` seconds since 1970."""

    reply: Reply
    number: int
    model: str
    before: bytes
    secret: bytes
    count: CacheCount
    output: Output
    at_s: int
    writes_told: bool = False

    def id(self, name: str) -> str:
        """24 hex digits for that name in this reply."""
        told = f"{self.number}\n{name}\n".encode() + self.before
        return hashlib.sha256(told).hexdigest()[:24]

    def signature(self, before: bytes, words: str) -> str:
        """The signature of reasoning of this reply."""
        return sign(self.secret, self.model, before, words)

    @property
    def stop(self) -> StopReason:
        """Why the reply ended; one with calls ends for them unless the script says otherwise."""
        calls = any(isinstance(part, Call) for part in self.reply.parts)
        return "calls" if calls and self.reply.stop == "end" else self.reply.stop


@dataclass(frozen=True, slots=True)
class Made:
    """A reply on the wire: the whole body, the digest behind it, the argument texts of its calls by id."""

    body: dict[str, Any]
    after: bytes
    arguments: Mapping[str, str] = field(default_factory=dict)
