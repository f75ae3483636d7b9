"""The cached share of a run that nobody billed, held against a server that bills by the same rules."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shiftbook.economics.cache import Serving, serve_all, share
from shiftbook.economics.cache_request import CacheBlock, CacheRequest, Marker
from shiftbook.economics.cache_rules import MarkerRule
from shiftbook.errors import BadInput
from shiftbook.journal.open import open_store
from shiftbook.providers.scripted import call, calls, say
from shiftbook.run.agent import Agent
from shiftbook.run.loop import start
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.server import ProviderServer, think
from shiftbook.tokens import BpeMeter
from shiftbook.tools.function import tool
from shiftbook.views import OwnRequests, RunFigures, run_figures
from tests.cli.program import run as program
from tests.providers.wires import ANTHROPIC
from tests.rerun import recordings

MINUTE_MS = 60_000


def billed(*, turns: int, policy: str, cap: int, gap_ms: int = 0, reasons: bool = True) -> tuple[float, Any]:
    """The share that the server billed for a run, and the run's own requests through each life."""
    clock = SimulatedClock()

    @tool(repeat="safe")
    async def count(shelf: int) -> str:
        """Count a shelf, which takes its time."""
        clock.advance(gap_ms if shelf % 24 == 0 else 0)
        return f"Shelf {shelf}: {shelf * 7919 % 997} crates, {shelf * 31 % 89} of them open. " * 12

    script = []
    for turn in range(turns - 1):
        reply = calls(call("count", {"shelf": 3 * turn}), call("count", {"shelf": 3 * turn + 1}))
        script.append(think(f"step {turn}", reply) if reasons else reply)

    async def scenario(server: ProviderServer) -> dict[str, RunFigures]:
        store = await open_store(":memory:", clock=clock)
        try:
            agent = Agent(
                name="counter",
                model=ANTHROPIC.at(server),
                instructions="Count every shelf and say when all are counted. " * 500,
                tools=(count,),
                policy=policy,
                cap=cap,
            )
            async with await start(store, agent, "Begin.", run="r", clock=clock) as run:
                assert (await run.finish()).state == "finished"
            lives: Any = {"5m": "5m", "1h": "1h", "none": None}
            return {
                name: await run_figures(store, "r", own=OwnRequests(life)) for name, life in lives.items()
            }
        finally:
            await store.close()

    with ProviderServer([*script, say("Done.")], clock=clock, meter=BpeMeter()) as server:
        figures = asyncio.run(scenario(server))
    counts = [each.count for each in server.exchanges if each.count is not None]
    assert len(counts) == turns
    return sum(each.read for each in counts) / sum(each.prompt for each in counts), figures


@pytest.mark.parametrize(
    ("policy", "cap", "gap_ms"),
    [("transcript", 200_000, 0), ("transcript", 200_000, 6 * MINUTE_MS), ("window", 14_000, 6 * MINUTE_MS)],
)
def test_the_share_by_our_model_is_the_share_that_a_vendor_bills(policy, cap, gap_ms):
    server, figures = billed(turns=24, policy=policy, cap=cap, gap_ms=gap_ms)
    assert figures["5m"]["cached_share"] == pytest.approx(server, abs=0.02)
    assert 0.5 < server < 0.99
    assert figures["5m"]["cost"] is None, "nobody billed these requests"
    if gap_ms:
        assert figures["5m"]["cached_share"] < figures["1h"]["cached_share"] - 0.02
    assert figures["1h"]["cached_share"] == pytest.approx(figures["none"]["cached_share"])


def request(at: float, *names: str) -> CacheRequest:
    blocks = tuple(CacheBlock(name, 1_000) for name in names)
    return CacheRequest(at, blocks, (Marker(len(names) - 1),))


def test_a_serving_is_the_sequence_at_once():
    sequence = [request(0, "a"), request(10, "a", "b"), request(400, "a", "b", "c"), request(900, "x")]
    rule = MarkerRule(1_000)
    serving = Serving(rule)
    assert tuple(serving.take(each) for each in sequence) == serve_all(rule, sequence)
    for ttl in ("5m", "1h", None):
        serving = Serving(rule, ttl)
        for each in sequence:
            serving.take(each)
        assert serving.shares == share(sequence, rule, ttl)
    assert share(sequence, rule, "5m").count.read == 1_000
    assert share(sequence, rule, "1h").count.read == 3_000
    serving = Serving(rule, "1h")
    for each in sequence:
        serving.take(each)
    with pytest.raises(BadInput, match="Request 5 is 895 s earlier"):
        serving.take(request(5, "a"))


def test_a_rerun_tells_its_share_the_life_used_and_no_cost(tmp_path):
    recordings.tangled().write(tmp_path / "tape.jsonl")
    shares = {}
    for ttl in ("5m", "1h", "none"):
        told = program(tmp_path, "rerun", "tape.jsonl", "--fixed", "9000", "--ttl", ttl, "--json").json
        assert told["cost"] is None
        assert told["cache"] == {"rules": "anthropic", "minimum": told["cache"]["minimum"], "ttl": ttl}
        shares[ttl] = told["cached_share"]
    assert 0 <= shares["5m"] <= shares["1h"] <= shares["none"] < 1
    assert shares["none"] > 0.5
    ran = program(tmp_path, "rerun", "tape.jsonl", "--fixed", "9000")
    assert f"{shares['5m']:.1%} cached" in ran.out
    assert "--ttl 5m" in ran.out
    refused = program(tmp_path, "rerun", "tape.jsonl", "--ttl", "2h")
    assert (refused.code, refused.out) == (2, "")
    assert "--ttl 2h is no life of a cache: give one of 5m, 1h, none." in refused.err
