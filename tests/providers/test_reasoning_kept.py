"""Reasoning goes back verbatim, behind what it was given on, or not at all, whatever happens (J1, J4).

A run is led through changes drawn at random: cut streams, failures, deaths, resumes, other instructions,
other models and vendors, policies and caps that rebuild in the middle, results that are cut to fit. Servers
verify every signature against its exact prefix, every id, and refuse what a vendor would.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shiftbook.entries import ModelAnswered, ModelFailed
from shiftbook.errors import UnknownRun
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Store
from shiftbook.messages import Reply
from shiftbook.providers.anthropic_provider import Anthropic
from shiftbook.providers.openai_provider import OpenAIChat, OpenAIResponses
from shiftbook.providers.pace import Pace
from shiftbook.providers.scripted import call, calls
from shiftbook.run.agent import Agent
from shiftbook.run.book import read_entries
from shiftbook.run.limits import Limits
from shiftbook.run.loop import resume, start
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.crash import Crash, Dies, Seams
from shiftbook.testing.server import Cuts, Exchange, Fails, ProviderServer, Turn, think
from shiftbook.tools.function import tool
from shiftbook.verify import verify
from tests.providers.wires import ANTHROPIC, RESPONSES

MODELS: Mapping[str, tuple[Any, str]] = {
    "sonnet": (Anthropic, "claude-sonnet-5-5"),
    "opus": (Anthropic, "claude-opus-5"),
    "sol": (OpenAIResponses, "gpt-6-sol"),
    "old": (OpenAIResponses, "gpt-5"),
    "chat": (OpenAIChat, "gpt-6-sol"),
}


@tool(repeat="safe")
async def fetch(size: int) -> str:
    """Fetch a text of that size."""
    return f"{size} characters: " + "lorem ipsum dolor " * (size // 18)


@dataclass(frozen=True)
class Shift:
    """One process: its agent, how many turns it may add, and at which of its points it dies, if any."""

    model: str = "sonnet"
    policy: str = "window"
    cap: int = 4_000
    instructions: str = "Work."
    turns: int = 3
    dies_at: int | None = None
    message: bool = False


SHIFTS = st.builds(
    Shift,
    model=st.sampled_from(sorted(MODELS)),
    policy=st.sampled_from(["window", "transcript", "journal"]),
    cap=st.sampled_from([2_500, 4_000, 6_000, 60_000]),
    instructions=st.sampled_from(["Work.", "Work well."]),
    turns=st.integers(1, 4),
    dies_at=st.none() | st.integers(8, 60),
    message=st.booleans(),
)
KINDS = st.lists(
    st.sampled_from(["plain", "plain", "wide", "big", "words", "cut", "fails", "bare"]), min_size=8
)


@dataclass
class Vendor:
    """A server whose replies reason; `kinds` says what each request comes to, in the order they come."""

    kinds: list[str]
    asked: int = 0
    server: ProviderServer = field(init=False)

    def __post_init__(self) -> None:
        self.server = ProviderServer(self._answer)

    def _answer(self, exchange: Exchange) -> Turn:
        self.asked += 1
        kind = self.kinds[self.asked % len(self.kinds)]
        thought = f"thought {self.asked}"
        if kind == "fails":
            return Fails(529)
        reply: Reply = {
            "wide": calls(call("fetch", {"size": 90}), call("fetch", {"size": 400}), text="Two at once."),
            "big": call("fetch", {"size": 30_000}),
            "words": calls(call("fetch", {"size": 18}), text="I say what I do before I do it."),
        }.get(kind, call("fetch", {"size": 200}))
        if kind == "bare" or exchange.wire == "chat":
            return reply
        reasoned = think(thought, reply)
        return Cuts(reasoned, "reasoning") if kind == "cut" else reasoned


async def led(store: Store, clock: SimulatedClock, vendor: Vendor, shifts: list[Shift]) -> None:
    """Lead the run through the shifts."""
    for number, each in enumerate(shifts):
        provider, model = MODELS[each.model]
        server = vendor.server
        url = server.anthropic_url if provider is Anthropic else server.openai_url
        seams = Seams() if each.dies_at is None else Seams(Dies(each.dies_at))
        try:
            turns = max(e.what.turn for e in await read_entries(store, "r") if hasattr(e.what, "turn"))
        except (UnknownRun, ValueError):
            turns = 0
        agent = Agent(
            name="worker",
            model=provider(model, base_url=url, api_key="sk-test-key", pace=Pace()),
            instructions=each.instructions,
            tools=(fetch,),
            policy=each.policy,
            cap=each.cap,
            limits=Limits(turns=turns + each.turns, retries=50, interruptions=50, retry_ms_min=0),
        )
        agent = replace(agent, tools=tuple(map(seams.tool, agent.tools)))
        watched = seams.store(store)
        message = f"And {number} more." if each.message else None
        clock.advance(60_000)
        try:
            try:
                handle = await resume(watched, "r", agent, message, clock=clock)
            except UnknownRun:
                handle = await start(watched, agent, "Begin.", run="r", clock=clock)
            async with handle:
                await handle.finish()
        except Crash:
            continue


async def record_of(store: Store, *kinds: type) -> list[Any]:
    return [entry.what for entry in await read_entries(store, "r") if isinstance(entry.what, kinds)]


def kept(exchange: Exchange) -> int:
    """How many reasoning blocks a request carries."""
    return sum(piece.reasoned is not None for piece in exchange.pieces)


def judged(kinds: list[str], shifts: list[Shift]) -> tuple[Exchange, ...]:
    """Lead a run and hold the servers' verdicts against it."""
    vendor = Vendor(kinds)

    async def scenario() -> None:
        clock = SimulatedClock()
        store = await open_store(":memory:", clock=clock)
        try:
            await led(store, clock, vendor, [Shift(turns=1), *shifts])
            assert (await verify(store, "r")).ok
            refused = [each for each in await record_of(store, ModelFailed) if each.status == 400]
            assert refused == []
            answers = await record_of(store, ModelAnswered)
            assert len({each.turn for each in answers}) == len(answers)
        finally:
            await store.close()

    with vendor.server:
        asyncio.run(scenario())
    exchanges = vendor.server.exchanges
    assert [each.refusal for each in exchanges if each.refusal is not None] == []
    assert [each.number for each in exchanges if each.withheld] == [], (
        "nothing stale, not even dropped in silence"
    )
    return exchanges


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@example(["plain"] * 8, [Shift(turns=4), Shift("opus", turns=3), Shift("sonnet", turns=3)])
@example(["big", "wide", "cut", "words"] * 2, [Shift(cap=2_500, turns=4, dies_at=30), Shift(turns=4)])
@example(["wide"] * 8, [Shift("sol", turns=3), Shift("sonnet", turns=3), Shift("sol", turns=3)])
@example(["big", "wide", "words"] * 3, [Shift(policy="journal", cap=6_000, turns=9), Shift("sol", "journal")])
@given(KINDS, st.lists(SHIFTS, min_size=1, max_size=4))
def test_j1_j4_no_request_holds_a_stale_or_edited_block(kinds: list[str], shifts: list[Shift]) -> None:
    judged(kinds, shifts)


@pytest.mark.parametrize("model", ["sonnet", "sol"])
def test_j1_within_an_epoch_every_block_of_reasoning_goes_back(model: str) -> None:
    long = Shift(model, "transcript", 60_000, turns=4)
    exchanges = judged(["plain"] * 8, [replace(long, model=model), replace(long, dies_at=25), long])
    counts = [kept(each) for each in exchanges]
    assert max(counts) >= 7, counts
    rises = sum(later == earlier + 1 for earlier, later in pairwise(counts))
    assert rises >= 6, counts


@pytest.mark.parametrize(
    "change",
    [
        {"instructions": "Work well."},
        {"model": "opus"},
        {"model": "sol"},
        {"model": "chat"},
        {"policy": "window", "cap": 1_500},
        {"policy": "journal", "cap": 6_000},
    ],
    ids=str,
)
def test_j1_j4_across_a_rebuild_no_reasoning_and_no_id_of_the_vendor_goes_on(change: Any) -> None:
    before = Shift("sonnet", "transcript", 60_000, turns=4)
    exchanges = judged(["words"] * 8, [before, replace(before, **change, turns=3)])
    epoch = exchanges[5:]
    assert kept(exchanges[4]) == 3
    assert kept(epoch[0]) == 0
    ids = {part["id"] for each in exchanges[:5] for part in (each.answer or {})["content"] if "id" in part}
    assert len(ids) == 5
    for each in epoch:
        assert not [name for name in ids if name in each.raw.decode()]
        assert not [n for n in range(1, 6) if f"thought {n}" in each.raw.decode()]


@pytest.mark.parametrize("wire", [ANTHROPIC, RESPONSES], ids=lambda wire: wire.name)
def test_a_switch_of_vendor_maps_the_same_run_to_the_same_bytes(wire: Any) -> None:
    other = "sol" if wire is ANTHROPIC else "sonnet"
    first = "sonnet" if wire is ANTHROPIC else "sol"

    def bodies() -> list[Any]:
        shifts = [Shift(first, "transcript", 60_000, turns=3), Shift(other, "transcript", 60_000, turns=3)]
        found = judged(["wide", "words"] * 4, [*shifts, replace(shifts[0], turns=2)])
        return [json.loads(each.raw) for each in found]

    one, again = bodies(), bodies()
    assert len(one) == 9
    assert one == again
    assert {"messages" in body for body in one} == {True, False}, "both vendors were asked"
