"""What a run cost and what of it was cached, from end to end: over the SDKs, as billed, to the cent (K2, K4).

The provider server bills in its own way on each wire; what a run's figures say is held against the server's
own counts and against sums done by hand from the price lists below.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from shiftbook.economics.cost import PriceList, Rate
from shiftbook.economics.price_book import known_prices
from shiftbook.entries import (
    AgentDeclared,
    Entry,
    ModelAnswered,
    ModelInterrupted,
    ReportAnswered,
    ReportAsked,
    ReportFailed,
    RunOpened,
)
from shiftbook.journal.open import open_store
from shiftbook.messages import Text, Usage
from shiftbook.providers.scripted import Scripted, call, calls, say
from shiftbook.run.agent import Agent
from shiftbook.run.loop import start
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.server import Exchange, ProviderServer, think
from shiftbook.tools.function import tool
from shiftbook.views import RunFigures, run_figures
from shiftbook.views.reported import Prices, Reported
from tests.providers.wires import ANTHROPIC, CHAT, RESPONSES, WIRES, Wire

D = Decimal
AT = datetime(2026, 1, 1, tzinfo=UTC)


def flat(uncached: str, read: str, written: str | None, output: str, hour: str | None = None) -> PriceList:
    """A price list without steps, USD per million tokens."""
    write = None if written is None else Rate(D(written))
    long = None if hour is None else Rate(D(hour))
    return PriceList("m", "by hand", AT, Rate(D(uncached)), Rate(D(output)), Rate(D(read)), write, long)


STEP = 12_000
STEPPED = PriceList(
    "m",
    "by hand",
    AT,
    Rate(D(2), ((STEP, D(4)),)),
    Rate(D(10), ((STEP, D(15)),)),
    Rate(D("0.2"), ((STEP, D("0.4")),)),
    Rate(D("2.5"), ((STEP, D(5)),)),
)
LISTS = {
    "writes paid": flat("3", "0.3", "3.75", "15", "6"),
    "writes as input": flat("1.25", "0.125", None, "10"),
    "stepped": STEPPED,
}


@tool(repeat="safe")
async def lookup(id: int) -> str:  # noqa: A002 - the model's word
    """Looks a number up."""
    return f"number {id}: " + "some words that a result has " * 20


def run_on(server: ProviderServer, wire: Wire, prices: Prices, **more: Any) -> RunFigures:
    """A run of the server's script, and its figures."""

    async def scenario() -> RunFigures:
        clock = SimulatedClock()
        store = await open_store(":memory:", clock=clock)
        try:
            agent = Agent(
                name="worker",
                model=wire.at(server, **more),
                instructions="Work. " * 900,
                tools=(lookup,),
                cap=900_000,
            )
            async with await start(store, agent, "Begin.", run="r", clock=clock) as run:
                assert (await run.finish()).state == "finished"
            return await run_figures(store, "r", prices=prices)
        finally:
            await store.close()

    return asyncio.run(scenario())


def by_hand(exchange: Exchange, name: str) -> Decimal:
    """What one request costs by the list of that name, from the server's own counts, in plain arithmetic."""
    count, output = exchange.count, exchange.output
    assert count is not None
    assert output is not None
    if name == "writes paid":
        micro = 3 * count.uncached + D("0.3") * count.read + D("3.75") * count.write_5m + 6 * count.write_1h
        return (micro + 15 * output.total) / 1_000_000
    if name == "writes as input":
        plain = count.uncached + count.write_5m + count.write_1h
        return (D("1.25") * plain + D("0.125") * count.read + 10 * output.total) / 1_000_000
    high = count.uncached + count.read + count.write_5m + count.write_1h > STEP
    rates = ("4", "0.4", "5", "15") if high else ("2", "0.2", "2.5", "10")
    sizes = (count.uncached, count.read, count.write_5m, output.total)
    return sum((D(rate) * size for rate, size in zip(rates, sizes, strict=True)), D(0)) / 1_000_000


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@pytest.mark.parametrize("name", LISTS)
def test_k2_k4_the_cost_of_a_run_to_the_cent_on_three_wires_by_three_lists(wire, name):
    replies = [calls(call("lookup", {"id": 2 * n}), call("lookup", {"id": 2 * n + 1})) for n in range(9)]
    script = [replies[0] if wire is CHAT else think("why", replies[0]), *replies[1:], say("Done.")]
    with ProviderServer(script) as server:
        figures = run_on(server, wire, lambda *_: LISTS[name])
    exchanges = server.exchanges
    assert len(exchanges) == 10
    counts = [each.count for each in exchanges if each.count is not None]
    whole = sum((by_hand(each, name) for each in exchanges), D(0))
    assert figures["cost"] == pytest.approx(float(whole), abs=1e-12)
    assert whole > D("0.01")
    if name == "stepped":
        assert {count.prompt > STEP for count in counts} == {True, False}, "both sides of the step"
    assert figures["cached_share"] == sum(c.read for c in counts) / sum(c.prompt for c in counts)
    assert figures["cached_share"] > 0.5


def test_k2_a_cache_life_of_an_hour_is_billed_as_one():
    script = [call("lookup", {"id": 1}), say("Done.")]
    with ProviderServer(script) as server:
        figures = run_on(server, ANTHROPIC, lambda *_: LISTS["writes paid"], ttl="1h")
    assert sum(each.count.write_1h for each in server.exchanges if each.count) > 1_000
    assert figures["cost"] == pytest.approx(
        float(sum((by_hand(each, "writes paid") for each in server.exchanges), D(0)))
    )


def test_prices_are_found_by_the_reference_of_the_model_and_of_no_other_vendor():
    at_ms = int(AT.timestamp() * 1000)

    def found(reference: str, replied: str | None = None) -> str | None:
        prices = known_prices(reference, replied, at_ms)
        return None if prices is None else prices.model

    assert found("anthropic:claude-sonnet-4-5", "claude-sonnet-4-5-20250929") == "claude-sonnet-4-5"
    assert found("openai:gpt-6-sol") == found("openai-chat:gpt-6-sol") == "gpt-6-sol"
    assert found("bridge:google:gemini-2.5-pro") == "gemini-2.5-pro"
    assert found("openai-chat:claude-sonnet-4-5") is None, "at an endpoint of its own nobody knows the price"
    assert found("openai-chat:qwen3-coder") is None
    assert [found(name) for name in ("scripted", "rerun", "bridge:gemini-2.5-pro", "")] == [None] * 4
    assert known_prices("openai:gpt-6-sol", None, 10**20) is None


FULL = Usage(100, 50, 10, 0, 7)


def told(*usages: Usage, cut: bool = False, prices: PriceList | None = LISTS["writes paid"]) -> Reported:
    """The sums over a run of such answers."""
    sums = Reported(lambda *_: prices)
    whats: list[Any] = [RunOpened("r", "a", "1"), AgentDeclared("a", "d", "anthropic:m", "transcript", 1)]
    whats += [ModelAnswered(n, (), "end", usage) for n, usage in enumerate(usages, 1)]
    whats += [ModelInterrupted(9, (Text("I was"),), "cut")] if cut else []
    for position, what in enumerate(whats, 1):
        sums.take(Entry(position, 0, 1, what))
    return sums


def test_k4_missing_is_never_zero():
    assert (told().cost, told().cached_share) == (None, None)
    one = told(FULL).cost
    assert one == (3 * 100 + D("0.3") * 50 + D("3.75") * 10 + 15 * 7) / 1_000_000
    assert told(FULL, FULL).cost == 2 * one
    assert told(FULL, Usage()).cost is None
    assert told(FULL, Usage(100, 50, 10, 0, None)).cost is None
    assert told(FULL, prices=None).cost is None
    assert told(FULL, cut=True).cost is None, "billed and not reported"
    assert told(FULL).cached_share == 50 / 160
    assert told(FULL, Usage(100, 50, 10, 0, None)).cached_share == 100 / 320
    assert told(FULL, Usage(100, None, 10, 0, 7)).cached_share is None
    assert told(FULL, cut=True).cached_share == 50 / 160


def test_reports_are_paid_for_at_their_writers_price_and_counted_in_the_share():
    lists = {"anthropic:m": LISTS["writes paid"], "openai:scribe": LISTS["writes as input"]}
    sums = Reported(lambda reference, *_: lists[reference])
    whats: list[Any] = [
        AgentDeclared("a", "d", "anthropic:m", "journal", 1),
        ModelAnswered(1, (), "end", FULL),
        ReportAsked((1,), "openai:scribe", 1, "d", 1, "bytes"),
        ReportAnswered((), "end", Usage(100, 100, 0, 0, 10)),
    ]
    for position, what in enumerate(whats, 1):
        sums.take(Entry(position, 0, 1, what))
    report = (D("1.25") * 100 + D("0.125") * 100 + 10 * 10) / 1_000_000
    answers = told(FULL).cost
    assert answers is not None
    assert sums.cost == answers + report
    assert sums.cached_share == 150 / 360
    sums.take(Entry(9, 0, 1, ReportFailed(1, "the connection broke", part='[{"text')))
    assert sums.cost is None, "billed and not reported"


def test_a_run_without_reported_usage_has_neither_cost_nor_share(tmp_path: Path):
    async def scenario() -> RunFigures:
        store = await open_store(":memory:")
        try:
            agent = Agent(name="a", model=Scripted([say("Done.")]))
            async with await start(store, agent, "Begin.", run="r") as run:
                await run.finish()
            return await run_figures(store, "r")
        finally:
            await store.close()

    figures = asyncio.run(scenario())
    assert figures["cost"] is None


@pytest.mark.parametrize("wire", [ANTHROPIC, RESPONSES], ids=lambda wire: wire.name)
def test_the_figures_of_a_known_model_hold_its_list_price(wire):
    with ProviderServer([say("Done.")]) as server:
        figures = run_on(server, wire, known_prices)
    count, output = server.exchanges[0].count, server.exchanges[0].output
    assert count is not None
    assert output is not None
    assert count.write_5m > 1_000
    # Both models' lists of 2026-01-01: 2 in, 2.50 written for five minutes, 10 out.
    micro = 2 * count.uncached + D("2.5") * count.write_5m + 10 * output.total
    assert figures["cost"] == pytest.approx(float(micro / 1_000_000))
