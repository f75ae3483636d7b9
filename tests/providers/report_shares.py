"""What a provider's cache serves of the requests for reports: `python -m tests.providers.report_shares`.

A journal run with reports by its own model, over the official SDK to the provider server, which earns its
figures by the vendor's rules and refuses what the vendor refuses. Tokens are bytes here.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from dataclasses import dataclass
from typing import Any

from shiftbook.journal.open import open_store
from shiftbook.providers.scripted import call, say
from shiftbook.run.agent import Agent
from shiftbook.run.loop import start
from shiftbook.testing.server import Exchange, ProviderServer, Turn, think
from shiftbook.verify import verify
from tests.providers.shares import count
from tests.providers.wires import CHAT, WIRES, Wire

RUN = "reports"
TURNS, CAP = 120, 20_000
CAPS = (6_000, 10_000, 20_000)
ANSWERED = re.compile(r"^(\d+): done ", re.MULTILINE)
ASKED = "[From the engine that keeps this run's journal, not from a person."


@dataclass(frozen=True)
class ReportShares:
    """What the server billed. `reports` is pooled over the reports' requests, `least` the lowest."""

    wire: str
    cap: int
    requests: int
    reports: float
    least: float
    whole: float
    refused: tuple[Any, ...]

    def __str__(self) -> str:
        return (
            f"{self.wire:17} cap {self.cap:6,} {self.requests:3} requests for reports: {self.reports:6.1%} "
            f"of their prompts cached, at least {self.least:6.1%}; of all prompts {self.whole:6.1%}"
        )


def asked_in(exchange: Exchange) -> str:
    """The words of a request for a report; "" where it is a turn's."""
    text = json.dumps(exchange.body, ensure_ascii=False)
    return text[text.rindex(ASKED) :].replace("\\n", "\n") if ASKED in text else ""


def measure(wire: Wire, turns: int = TURNS, cap: int = CAP) -> ReportShares:
    """Run it, and read the server's bills."""
    taken = iter(range(turns))

    def answer(exchange: Exchange) -> Turn:
        if words := asked_in(exchange):
            lines = [{"text": "A shelf was counted.", "cites": [int(at)]} for at in ANSWERED.findall(words)]
            return say(json.dumps(lines[:20]))
        turn = next(taken, None)
        if turn is None:
            return say("All counted.")
        reply = call("count", {"shelf": turn, "note": "of it " * 40})
        return reply if wire is CHAT else think(f"After step {turn} comes the next.", reply)

    with ProviderServer(answer) as server:
        asyncio.run(_run(wire, server, cap))
        exchanges = server.exchanges
    counts = [(bool(asked_in(each)), each.count) for each in exchanges if each.count is not None]
    reports = [(bill.read, bill.prompt) for is_report, bill in counts if is_report]
    return ReportShares(
        wire.name,
        cap,
        len(reports),
        sum(read for read, _ in reports) / sum(prompt for _, prompt in reports),
        min(read / prompt for read, prompt in reports),
        sum(bill.read for _, bill in counts) / sum(bill.prompt for _, bill in counts),
        tuple(each.refusal for each in exchanges if each.refusal is not None),
    )


async def _run(wire: Wire, server: ProviderServer, cap: int) -> None:
    store = await open_store(":memory:")
    try:
        agent = Agent(
            name="counter",
            model=wire.at(server),
            instructions="Count every shelf, and say when all are counted. " * 40,
            tools=(count,),
            policy="journal",
            cap=cap,
            report="model",
        )
        async with await start(store, agent, "Begin.", run=RUN) as run:
            assert (await run.finish()).state == "finished"
        assert (await verify(store, RUN)).ok
    finally:
        await store.close()


def main() -> int:
    """A line for each wire and cap; 1 where one is below 90%."""
    found = [measure(wire, cap=cap) for cap in CAPS for wire in WIRES]
    for each in found:
        sys.stdout.write(f"{each}\n")
    return int(any(each.least < 0.9 for each in found))


if __name__ == "__main__":
    sys.exit(main())
