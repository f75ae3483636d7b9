"""Sends what was planned, with whatever the script wants to go wrong on the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from shiftbook.errors import BadInput
from shiftbook.testing.server.events import Event, behind, garbled
from shiftbook.testing.server.exchange import Ended, Exchange
from shiftbook.testing.server.rule import Refusal
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
)
from shiftbook.testing.server.transport import Connection
from shiftbook.testing.server.vendor import Plan


@dataclass(slots=True)
class Delivery:
    """One plan on its way over one connection."""

    plan: Plan
    exchange: Exchange
    connection: Connection
    holds: list[Holds] = field(default_factory=list)

    async def run(self) -> Ended:
        """Send it; the answer says how it ended."""
        turn = self.plan.turn
        while isinstance(turn, Holds):
            if turn.where is None:
                await turn.gate.passed()
            else:
                self.holds.append(turn)
            turn = turn.then
        if self.plan.refusal is not None or isinstance(turn, Fails):
            return await self._error(self.plan.refusal)
        if isinstance(turn, Resets):
            self.connection.reset()
            return "cut"
        if isinstance(turn, Hangs):
            await self.connection.left()
            return "left"
        if isinstance(turn, Drops):
            self.connection.drop()
            return "cut"
        if isinstance(turn, Mistypes):
            return await self._answer(200, turn.page.encode(), turn.content_type)
        if self.plan.events is None:
            return await self._whole(turn)
        return await self._stream(turn, self.plan.events)

    async def _error(self, refusal: Refusal | None) -> Ended:
        if refusal is None:
            raise BadInput("An error has neither a status nor words; give `Fails` a status.")
        content = json.dumps(self.plan.wire.error_body(refusal, self.plan.request_id)).encode()
        return await self._answer(refusal.status, content)

    async def _whole(self, turn: Turn | None) -> Ended:
        for hold in self.holds:
            await hold.gate.passed()
        content = json.dumps(self.plan.body).encode()
        half = content[: len(content) // 2]
        if isinstance(turn, Breaks):
            return await self._error(self._broken(turn))
        if isinstance(turn, Garbles):
            return await self._answer(200, half)
        if isinstance(turn, Cuts):
            self.exchange.status = 200
            await self.connection.answer(200, self._headers("application/json"), half, promised=len(content))
            self.connection.drop()
            return "cut"
        return await self._answer(200, content)

    async def _stream(self, turn: Turn | None, events: Sequence[Event]) -> Ended:
        stops = {behind(events, hold.where): hold for hold in self.holds if hold.where is not None}
        spoilt = isinstance(turn, Cuts | Breaks | Garbles)
        last = behind(events, turn.where) if isinstance(turn, Cuts | Breaks | Garbles) else len(events)
        self.exchange.status = 200
        await self.connection.begin(self._headers("text/event-stream; charset=utf-8"))
        for number, event in enumerate(events[:last]):
            if number in stops:
                await stops[number].gate.passed()
            await self.connection.chunk(event.encoded())
        if isinstance(turn, Cuts):
            self.connection.drop()
            return "cut"
        if isinstance(turn, Breaks):
            broken = self.plan.wire.error_event(self._broken(turn), self.plan.request_id, last)
            await self.connection.chunk(broken.encoded())
        if isinstance(turn, Garbles):
            await self.connection.chunk(garbled(events[last]))
        await self.connection.chunk(b"")
        return "cut" if spoilt else "whole"

    def _broken(self, turn: Breaks) -> Refusal:
        message = turn.message or f"The script breaks this reply off with status {turn.status}."
        return self.plan.wire.refusal(turn.status, message, "on cue")

    async def _answer(self, status: int, content: bytes, kind: str = "application/json") -> Ended:
        self.exchange.status = status
        await self.connection.answer(status, self._headers(kind), content)
        return "whole"

    def _headers(self, kind: str) -> dict[str, str]:
        return {"content-type": kind, self.plan.wire.request_id: self.plan.request_id, **self.plan.headers}
