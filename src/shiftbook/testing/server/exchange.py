"""One HTTP request and what became of it: what a test looks at afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from shiftbook.economics.cache_request import CacheCount
from shiftbook.messages import Reply, Usage
from shiftbook.testing.server.accounts import Output
from shiftbook.testing.server.pieces import Piece
from shiftbook.testing.server.rule import Refusal, WireName
from shiftbook.testing.server.script import Turn
from shiftbook.testing.server.signatures import Stale

Ended = Literal["open", "whole", "cut", "left"]
"""`whole`: all that the script wanted was sent; `cut`: the server ended it early; `left`: the client did."""


@dataclass(slots=True)
class Exchange:
    """A request, numbered from 1, and its answer. Filled in as the request goes its way; read it afterwards.

    `refusal` is set when the vendor's rules refused the request, `reply` when the model made one, whether or
    not the client got it. `answer` is the reply's body in its whole form, also where it was streamed.
    `withheld` is reasoning that was dropped rather than refused; `pieces` is the request block by block.
    """

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    wire: WireName | None = None
    body: Mapping[str, Any] | None = None
    refusal: Refusal | None = None
    turn: Turn | None = None
    reply: Reply | None = None
    answer: Mapping[str, Any] | None = None
    count: CacheCount | None = None
    output: Output | None = None
    withheld: tuple[Stale, ...] = ()
    pieces: Sequence[Piece] = ()
    status: int | None = None
    ended: Ended = "open"

    @property
    def said(self) -> Mapping[str, Any]:
        """The parsed body; an empty one if it could not be parsed."""
        return self.body or {}

    @property
    def streams(self) -> bool:
        """Whether the client asked for a stream."""
        return self.said.get("stream") is True

    @property
    def retry_count(self) -> int | None:
        """Which retry of the client's own this is (0 for the first try), None if it does not say."""
        given = self.headers.get("x-stainless-retry-count", "")
        return int(given) if given.isdecimal() else None

    @property
    def idempotency_key(self) -> str | None:
        """The key that the client sent, if any."""
        return self.headers.get("idempotency-key")

    @property
    def rule(self) -> str | None:
        """The name of the rule that refused the request, None if none did."""
        return self.refusal.rule if self.refusal else None

    @property
    def usage(self) -> Usage | None:
        """What was billed, in the normal form; None where no reply was made."""
        if self.count is None or self.output is None:
            return None
        return Usage(
            self.count.uncached,
            self.count.read,
            self.count.write_5m,
            self.count.write_1h,
            self.output.total,
            self.output.reasoning,
        )
