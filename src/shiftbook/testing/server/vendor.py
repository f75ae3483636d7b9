"""The vendor behind the wire: takes a request through the checks, asks the script, makes and bills the reply.

No network here: a request goes in as an `Exchange`, a `Plan` comes out that says what to send. State is what
a vendor keeps: its caches, where replies paused, and how far the script is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any, Literal

from shiftbook.clock import Clock
from shiftbook.economics.cache_rules import BreakpointRule, CacheRule
from shiftbook.economics.cache_vendors import cache_rule
from shiftbook.errors import BadInput
from shiftbook.messages import Reply
from shiftbook.testing.server.accounts import Accounts
from shiftbook.testing.server.doors import at_the_door, given_key, model_known, parsed
from shiftbook.testing.server.events import Event
from shiftbook.testing.server.exchange import Exchange
from shiftbook.testing.server.making import Making
from shiftbook.testing.server.pieces import Piece, chain
from shiftbook.testing.server.rule import Known, Refusal, first_refusal
from shiftbook.testing.server.script import Fails, Turn, reply_of
from shiftbook.testing.server.signatures import SECRET, stale
from shiftbook.testing.server.wires import Wire

Script = Sequence[Turn] | Callable[[Exchange], Turn]
Stance = Literal["refused", "dropped"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What a vendor is like. See `ProviderServer` for the meaning of each."""

    clock: Clock
    models: Collection[str] | None = None
    keys: Collection[str] | None = None
    rule: CacheRule | None = None
    stale_reasoning: Stance = "refused"
    waived: frozenset[str] = frozenset()
    secret: bytes = SECRET


@dataclass(frozen=True, slots=True)
class Plan:
    """What to send: an error (`refusal`), or a reply (`body`, and `events` of it if a stream was asked for).

    `turn` says what else happens on the way; None when the request never got to the script.
    """

    wire: Wire
    request_id: str
    turn: Turn | None = None
    refusal: Refusal | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    events: tuple[Event, ...] | None = None


class Vendor:
    """Answers exchanges one by one, in the order in which they are given."""

    def __init__(self, script: Script, accounts: Accounts, terms: Terms) -> None:
        self.failures: list[Exception] = []
        self._script = script
        self._accounts = accounts
        self._terms = terms
        self._asked = 0
        self._paused: frozenset[bytes] = frozenset()

    def plan(self, wire: Wire, exchange: Exchange) -> Plan:
        """Take one request through everything up to the sending, and note in the exchange what came of it."""
        request_id = f"req_{exchange.number:06d}"
        exchange.wire = wire.name
        exchange.refusal = refusal = self._refuse(wire, exchange)
        if refusal is not None:
            return Plan(wire, request_id, refusal=refusal)
        try:
            exchange.turn = turn = self._next(exchange)
            return self._play(wire, exchange, request_id, turn)
        except Exception as fault:  # noqa: BLE001 - the test's own code: told when the server stops
            self.failures.append(fault)
            exchange.refusal = wire.refusal(400, f"The script cannot go on: {fault}", "script")
            return Plan(wire, request_id, refusal=exchange.refusal)

    def _refuse(self, wire: Wire, exchange: Exchange) -> Refusal | None:
        at_door = at_the_door(wire, exchange, self._terms.keys)
        if at_door is not None:
            return at_door
        body = parsed(wire, exchange.raw)
        if isinstance(body, Refusal):
            return body
        exchange.body = body
        betas = frozenset(
            each.strip() for each in exchange.headers.get("anthropic-beta", "").split(",") if each
        )
        known = Known(betas, self._rule(body), self._paused)
        rules = {name: rule for name, rule in wire.rules.items() if name not in self._terms.waived}
        found = model_known(wire, body, self._terms.models) or first_refusal(rules, body, known)
        return found or self._stale(wire, exchange, body)

    def _stale(self, wire: Wire, exchange: Exchange, body: Mapping[str, Any]) -> Refusal | None:
        exchange.pieces = wire.pieces(body)
        found = stale(self._terms.secret, body["model"], exchange.pieces)
        thinking = body.get("thinking") if wire.name == "anthropic" else None
        asked = (thinking or {}).get("block_binding") or {}
        drops = (
            self._terms.stale_reasoning == "dropped" or asked.get("prefix_mismatch_behavior") == "drop_block"
        )
        for each in found:
            if each.why == "edited" or not drops:
                return wire.stale_refusal(each)
        exchange.withheld = tuple(found)
        return None

    def _next(self, exchange: Exchange) -> Turn:
        self._asked += 1
        if callable(self._script):
            return self._script(exchange)
        if self._asked > len(self._script):
            raise BadInput(
                f"The script has {len(self._script)} turns and was asked for number {self._asked}; add one."
            )
        return self._script[self._asked - 1]

    def _play(self, wire: Wire, exchange: Exchange, request_id: str, turn: Turn) -> Plan:
        reply = reply_of(turn)
        if reply is None:
            fails = _inner(turn)
            refusal = self._failure(wire, fails) if isinstance(fails, Fails) else None
            headers = self._retry_after(fails) if isinstance(fails, Fails) else {}
            return Plan(wire, request_id, turn, refusal, headers)
        return self._make(wire, exchange, request_id, turn, reply)

    def _make(self, wire: Wire, exchange: Exchange, request_id: str, turn: Turn, reply: Reply) -> Plan:
        body = exchange.said
        pieces = exchange.pieces
        withheld = {each.piece for each in exchange.withheld}
        shown: list[Piece] = [piece for number, piece in enumerate(pieces) if number not in withheld]
        rule, at_s = self._rule(body), self._terms.clock.steady_ms() / 1000
        count = self._accounts.charge(
            rule, wire.name, body, shown, at_s=at_s, key=given_key(exchange.headers)
        )
        making = Making(
            reply,
            exchange.number,
            body["model"],
            chain(pieces)[-1],
            self._terms.secret,
            count,
            self._accounts.output(reply),
            self._terms.clock.now_ms() // 1000,
            isinstance(rule, BreakpointRule),
        )
        made = wire.whole(making, body, exchange.withheld)
        if making.stop == "pause":
            self._paused |= {made.after}
        exchange.reply, exchange.answer = reply, made.body
        exchange.count, exchange.output = count, making.output
        events = tuple(wire.streamed(made, body)) if exchange.streams else None
        return Plan(wire, request_id, turn, body=made.body, events=events)

    def _rule(self, body: Mapping[str, Any]) -> CacheRule | None:
        model = body.get("model")
        return self._terms.rule or (cache_rule(model) if isinstance(model, str) else None)

    def _failure(self, wire: Wire, fails: Fails) -> Refusal:
        message = fails.message or f"The script answers this request with status {fails.status}."
        return wire.refusal(fails.status, message, "on cue", kind=fails.kind, code=fails.code)

    def _retry_after(self, fails: Fails) -> dict[str, str]:
        if fails.retry_after_s is None:
            return {}
        if fails.as_date:
            at = self._terms.clock.now_ms() / 1000 + fails.retry_after_s
            return {"retry-after": formatdate(at, usegmt=True)}
        return {"retry-after": f"{fails.retry_after_s:g}"}


def _inner(turn: Turn) -> Turn:
    return turn if not hasattr(turn, "then") else _inner(turn.then)
