"""What share of a long run's prompts comes from the vendor's cache: `python -m tests.providers.shares`.

A transcript run over the official SDK to the provider server, which earns its figures by the vendor's rules
and refuses what the vendor refuses. Half-way its process ends; another one takes the run up from its file.
Tokens are bytes here: the shares mean something. `make cache-shares` prints the table for 300 turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shiftbook.errors import UnknownRun
from shiftbook.journal.open import open_store
from shiftbook.providers.scripted import call, calls, say
from shiftbook.run.agent import Agent
from shiftbook.run.limits import Limits
from shiftbook.run.loop import resume, start
from shiftbook.testing.server import Exchange, ProviderServer, Turn, think
from shiftbook.tools.function import tool
from tests.providers.wires import ANTHROPIC, CHAT, RESPONSES, Wire

RUN = "shares"
WIDTHS = (1, 5, 25)
BY_NAME = {wire.name: wire for wire in (ANTHROPIC, CHAT, RESPONSES)}


@tool(repeat="safe")
async def count(shelf: int, note: str = "") -> str:
    """Count the crates on a shelf."""
    return f"Shelf {shelf}: {shelf * 7919 % 997} crates, {shelf * 31 % 89} of them open. " * 2


@dataclass(frozen=True)
class Shares:
    """What the server billed. `whole` is pooled over all prompts; `resumed` is of the first prompt of the
    second process, `carried` what of the prompt before it was read again there (1.0: all of it)."""

    wire: str
    turns: int
    width: int
    whole: float
    resumed: float
    carried: float

    def __str__(self) -> str:
        return (
            f"{self.wire:17} {self.turns:4} turns of {self.width:2} calls: {self.whole:6.1%} cached; "
            f"first prompt of the new process {self.resumed:6.1%}, of the prompt before {self.carried:6.1%}"
        )


def script(turns: int, width: int, *, reasons: bool) -> list[Turn]:
    """So many turns of so many calls each, and an end."""
    made: list[Turn] = []
    for turn in range(turns - 1):
        reply = calls(*(call("count", {"shelf": turn * width + n, "note": "of it"}) for n in range(width)))
        made.append(think(f"After step {turn} comes the next.", reply) if reasons else reply)
    return [*made, say("All counted.")]


def measure(wire: Wire, turns: int, width: int, place: Path) -> Shares:
    """Run it in two processes, one after the other, and read the server's bills."""
    reasons = wire is not CHAT
    with ProviderServer(script(turns, width, reasons=reasons)) as server:
        url = server.anthropic_url if wire is ANTHROPIC else server.openai_url
        first, second = turns // 2, turns
        _process(wire, url, place, first)
        before = len(server.exchanges)
        _process(wire, url, place, second)
        exchanges = server.exchanges
    faults = [each.refusal for each in exchanges if each.refusal is not None]
    if faults or len(exchanges) != turns or before != first:
        raise AssertionError(f"{len(exchanges)} requests ({before} by the first process), refused: {faults}")
    read, prompt = _count(exchanges)
    one, other = exchanges[before - 1].count, exchanges[before].count
    assert one is not None
    assert other is not None
    return Shares(wire.name, turns, width, read / prompt, other.read / other.prompt, other.read / one.prompt)


def _count(exchanges: Sequence[Exchange]) -> tuple[int, int]:
    counts = [each.count for each in exchanges if each.count is not None]
    return sum(each.read for each in counts), sum(each.prompt for each in counts)


def _process(wire: Wire, url: str, place: Path, turns: int) -> None:
    words = [
        sys.executable,
        "-m",
        "tests.providers.shares",
        "--shift",
        wire.name,
        url,
        str(place),
        str(turns),
    ]
    subprocess.run(words, check=True)


async def shift(wire: Wire, url: str, place: Path, turns: int) -> None:
    """What one process does: begin the run or take it up, and rest at so many turns."""
    agent = Agent(
        name="counter",
        model=wire.provider(wire.model, base_url=url, api_key="sk-test-key-1234"),
        instructions="Count every shelf, and say when all are counted. " * 100,
        tools=(count,),
        cap=100_000_000,
        limits=Limits(turns=turns, parallel=32),
    )
    store = await open_store(str(place))
    try:
        try:
            handle = await resume(store, RUN, agent)
        except UnknownRun:
            handle = await start(store, agent, "Begin.", run=RUN)
        async with handle:
            await handle.finish()
    finally:
        await store.close()


def main() -> int:
    """The table, or one process of a measure."""
    parser = argparse.ArgumentParser(prog="python -m tests.providers.shares", description=__doc__)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--wire", choices=sorted(BY_NAME), default=ANTHROPIC.name)
    parser.add_argument("--shift", nargs=4, metavar=("WIRE", "URL", "DB", "TURNS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.shift:
        name, url, place, turns = given.shift
        asyncio.run(shift(BY_NAME[name], url, Path(place), int(turns)))
        return 0
    low = []
    for width in WIDTHS:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(BY_NAME[given.wire], given.turns, width, Path(folder) / "book.db")
        print(found, flush=True)
        if found.whole < 0.95 or found.resumed < 0.95:
            low.append(width)
    if low:
        print(json.dumps({"below 95%": low}), file=sys.stderr)
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
