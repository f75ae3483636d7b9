"""Whole runs over the official SDKs: a journal in between, a warm cache, another vendor on the way."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest

from shiftbook.canonical import decode
from shiftbook.entries import AgentDeclared, EpochOpened, ModelFailed
from shiftbook.errors import AgentUnusable, UnknownRun
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Store
from shiftbook.messages import Reply
from shiftbook.providers.scripted import call, calls, say
from shiftbook.run.agent import Agent, declare
from shiftbook.run.book import read_entries
from shiftbook.run.limits import Limits
from shiftbook.run.loop import resume, start
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.server import Breaks, Cuts, Exchange, Fails, ProviderServer, Turn, think
from shiftbook.tools.function import tool
from shiftbook.verify import verify
from tests.providers.wires import ANTHROPIC, CHAT, PNG, WIRES, images, markers

EACH = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
DONE = say("All done.")


@tool(repeat="safe")
async def lookup(id: int, note: str = "") -> str:  # noqa: A002 - the model's word
    """Looks a number up."""
    return f"number {id}: " + "some words that a result has " * 8


@tool(repeat="safe")
async def shoot(id: int) -> bytes:  # noqa: A002 - the model's word
    """Takes a picture of the screen."""
    return PNG + bytes([id])


def work(turns: int, width: int, *, reasons: bool = True) -> list[Reply]:
    """So many turns of so many calls each, and an end."""
    made = []
    for turn in range(turns):
        reply = calls(*(call("lookup", {"id": turn * width + n, "note": "n" * 20}) for n in range(width)))
        made.append(think(f"step {turn} leads on", reply) if reasons else reply)
    return [*made, DONE]


def agent(model: Any, **changes: Any) -> Agent:
    settings: dict[str, Any] = {
        "name": "worker",
        "instructions": "Work. " * 400,
        "tools": (lookup, shoot),
        "cap": 900_000,
    }
    return Agent(model=model, **(settings | {"limits": Limits(retry_ms_min=0)} | changes))


async def entries(store: Store, run: str, *kinds: type) -> list[Any]:
    return [each.what for each in await read_entries(store, run) if isinstance(each.what, kinds)]


def share(exchanges: tuple[Exchange, ...]) -> float:
    """The cached share of all prompts but the first, pooled over tokens, as the server billed it."""
    counts = [each.count for each in exchanges[1:] if each.count is not None]
    return sum(each.read for each in counts) / sum(each.prompt for each in counts)


@pytest.mark.parametrize("width", [1, 5, 25])
@EACH
def test_the_cache_is_warm_with_any_number_of_calls_and_after_a_resume(wire, width):
    turns = {1: 60, 5: 40, 25: 24}[width]
    script = work(turns, width, reasons=wire is not CHAT)

    async def scenario(server: ProviderServer) -> int:
        clock = SimulatedClock()
        store = await open_store(":memory:", clock=clock)
        try:
            one = agent(wire.at(server), limits=Limits(turns=turns // 2, parallel=32))
            async with await start(store, one, "Begin.", run="run7", clock=clock) as run:
                await run.finish()
            before = len(server.exchanges)
            other = agent(wire.at(server), limits=Limits(parallel=32))
            async with await resume(store, "run7", other, clock=clock) as run:
                summary = await run.finish()
            assert summary.state == "finished", summary.why
            assert (await verify(store, "run7")).ok
            return before
        finally:
            await store.close()

    with ProviderServer(script) as server:
        before = asyncio.run(scenario(server))
    assert [each.refusal for each in server.exchanges] == [None] * (turns + 1)
    count = server.exchanges[before].count
    assert count is not None
    assert count.read > 0.8 * count.prompt, "the first request after the resume finds what was cached"
    late = server.exchanges[len(server.exchanges) // 2 :]
    grown = [each.count for each in late if each.count is not None]
    for earlier, later in pairwise(grown):
        assert later.read >= 0.95 * earlier.prompt, "all of the request before is read"
    assert all(len(markers(dict(each.said))) <= 4 for each in server.exchanges)
    if wire is ANTHROPIC:
        assert share(server.exchanges) > {1: 0.95, 5: 0.9, 25: 0.88}[width]


@EACH
def test_b14_b18_retries_are_ours_recorded_and_start_at_the_turn_that_failed(wire):
    ran = []

    @tool(repeat="ask")
    async def effect(n: int) -> str:
        """Has an effect."""
        ran.append(n)
        return "done"

    script: list[Turn] = [call("effect", {"n": 1}), Fails(500), Breaks(DONE, "start", 529), Fails(429), DONE]

    async def scenario(server: ProviderServer) -> None:
        clock = SimulatedClock()
        store = await open_store(":memory:", clock=clock)
        try:
            async with await start(store, agent(wire.at(server), tools=(effect,)), "Go.", clock=clock) as run:
                summary = await run.finish()
                failed = await entries(store, run.id, ModelFailed)
            assert summary.state == "finished", summary.why
            assert [each.attempt for each in failed] == [1, 2, 3]
            assert {each.turn for each in failed} == {2}
        finally:
            await store.close()

    with ProviderServer(script) as server:
        asyncio.run(scenario(server))
    assert len(server.exchanges) == 5, "one HTTP request an attempt"
    assert ran == [1], "a failed request never repeats an action"
    bodies = [each.raw for each in server.exchanges[1:]]
    assert bodies.count(bodies[0]) == 4, "the same bytes at every attempt"


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_a_run_changes_its_vendor_on_the_way_and_no_reasoning_or_id_crosses(order):
    async def scenario(servers: list[ProviderServer]) -> None:
        clock = SimulatedClock()
        store = await open_store(":memory:", clock=clock)
        try:
            state = ""
            for step, place in enumerate(order):
                model = WIRES[place].at(servers[step])
                one = agent(model, limits=Limits(turns=3 * (step + 1) if step < 2 else None))
                handle = (
                    start(store, one, "Go.", run="r", clock=clock)
                    if not step
                    else resume(store, "r", one, clock=clock)
                )
                async with await handle as run:
                    state = (await run.finish()).state
            assert state == "finished"
            assert len(await entries(store, "r", EpochOpened)) == 3
            assert len(await entries(store, "r", ModelFailed)) == 0
            assert (await verify(store, "r")).ok
        finally:
            await store.close()

    parts = [think(f"secret of {n}", calls(call("lookup", {"id": n}), call("lookup"))) for n in range(9)]
    with (
        ProviderServer(parts[:3]) as a,
        ProviderServer(parts[3:6]) as b,
        ProviderServer([*parts[6:], DONE]) as c,
    ):
        asyncio.run(scenario([a, b, c]))
    for server in (a, b, c):
        assert [each.refusal for each in server.exchanges] == [None] * len(server.exchanges)
    for earlier, later in ((a, b), (b, c)):
        given = json.dumps([each.answer for each in earlier.exchanges])
        ids = {
            word
            for word in given.replace('"', " ").split()
            if word.startswith(("toolu_", "call_", "rs_", "fc_"))
        }
        for each in later.exchanges:
            told = each.raw.decode()
            assert not [name for name in ids if name in told]
            assert not [n for n in range(3) if f"secret of {n}" in told]
    assert len(c.exchanges) == 4


@EACH
def test_i9_the_declaration_holds_what_goes_out_beside_the_prompt(wire):
    def declared(**changes):
        settings = {"api_key": "sk-1", "parameters": {"temperature": 0.5}} | changes
        return declare(agent(wire.provider(wire.model, **settings)))

    one = declared()
    assert declared(api_key="sk-2", base_url="http://localhost:1/v1").blob == one.blob, (
        "not how it is reached"
    )
    assert declared(max_tokens=99).blob != one.blob
    assert declared(parameters={"temperature": 0.6}).blob != one.blob
    assert b"sk-1" not in one.blob
    told: Any = decode(one.blob.decode())
    assert told["provider"]["parameters"] == {"temperature": 0.5}


@EACH
def test_i9_a_changed_setting_is_a_new_declaration_and_a_new_epoch(wire):
    async def scenario(server: ProviderServer) -> None:
        clock = SimulatedClock()
        store = await open_store(":memory:", clock=clock)
        try:
            for turns, more in ((1, {}), (2, {}), (None, {"max_tokens": 4_000})):
                one = agent(wire.at(server, **more), limits=Limits(turns=turns))
                handle = (
                    start(store, one, "Go.", run="r", clock=clock)
                    if turns == 1
                    else resume(store, "r", one, clock=clock)
                )
                async with await handle as run:
                    await run.finish()
            assert len(await entries(store, "r", AgentDeclared)) == 2
            assert len(await entries(store, "r", EpochOpened)) == 2
        finally:
            await store.close()

    with ProviderServer(work(2, 1)) as server:
        asyncio.run(scenario(server))


@EACH
def test_e10_twenty_screenshots_are_references_in_the_journal_and_images_on_the_wire(wire):
    script: list[Turn] = [*(call("shoot", {"id": n}) for n in range(20)), DONE]

    async def scenario(server: ProviderServer) -> None:
        clock = SimulatedClock()
        store = await open_store(":memory:", clock=clock)
        try:
            async with await start(store, agent(wire.at(server)), "Go.", run="r", clock=clock) as run:
                summary = await run.finish()
            assert summary.state == "finished", summary.why
            rows = await store.entries.read("r", 0, 1_000)
            assert all(len(str(row)) < 9_000 for row in rows), "no row holds an image"
        finally:
            await store.close()

    with ProviderServer(script) as server:
        asyncio.run(scenario(server))
    assert [each.refusal for each in server.exchanges] == [None] * 21
    assert len(images(dict(server.exchanges[-1].said))) == 20


@EACH
def test_a_reply_cut_in_the_middle_of_a_call_never_runs_it(wire):
    ran = []

    @tool(repeat="ask")
    async def effect(n: int) -> str:
        """Has an effect."""
        ran.append(n)
        return "done"

    script: list[Turn] = [
        Cuts(calls(call("effect", {"n": 1}), text="I act."), "call"),
        call("effect", {"n": 2}),
        DONE,
    ]

    async def scenario(server: ProviderServer) -> None:
        clock = SimulatedClock()
        store = await open_store(":memory:", clock=clock)
        try:
            async with await start(store, agent(wire.at(server), tools=(effect,)), "Go.", clock=clock) as run:
                summary = await run.finish()
            assert summary.state == "finished", summary.why
        finally:
            await store.close()

    with ProviderServer(script) as server:
        asyncio.run(scenario(server))
    assert ran == [2]
    assert [each.refusal for each in server.exchanges] == [None] * 3


@EACH
def test_a_missing_key_stops_before_anything_is_written(wire, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    async def scenario() -> None:
        store = await open_store(":memory:")
        try:
            with pytest.raises(AgentUnusable, match="needs a key"):
                await start(store, agent(wire.provider(wire.model)), "Go.", run="r")
            with pytest.raises(UnknownRun):
                await store.entries.head("r")
        finally:
            await store.close()

    asyncio.run(scenario())
