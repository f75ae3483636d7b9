"""A turn that the vendor paused is gone on with where it stopped: over the SDK, at the strict server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from shiftbook.entries import EpochOpened, ModelAsked, Warned
from shiftbook.journal.open import open_store
from shiftbook.messages import Reply, Text
from shiftbook.prompt.wording import PAUSED
from shiftbook.providers.scripted import say
from shiftbook.run.limits import Limits
from shiftbook.run.loop import resume, start
from shiftbook.run.mail import post
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.server import Exchange, ProviderServer, think, vendor_block
from shiftbook.verify import verify
from tests.providers.over import CLAUDE
from tests.providers.test_runs_over_wires import agent, entries
from tests.providers.wires import ANTHROPIC

SEARCH = [{"type": "web_search_20250305", "name": "web_search"}]
LATER_MS = 3_600_000


def used(number: int) -> Any:
    return vendor_block(
        {
            "type": "server_tool_use",
            "id": f"srvtoolu_{number}",
            "name": "web_search",
            "input": {"query": f"tea {number}", "also": ["b", "a"]},
        }
    )


def found(number: int, size: int = 40) -> Any:
    page = {"type": "web_search_result", "url": "u", "title": "Tea", "encrypted_content": "Zm9v" * size}
    return vendor_block(
        {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{number}", "content": [page]}
    )


def cited(text: str) -> Any:
    where = {"type": "web_search_result_location", "url": "u", "title": "Tea", "encrypted_index": "RW8="}
    return vendor_block({"type": "text", "text": text, "citations": [{**where, "cited_text": "tea is dear"}]})


FIRST = think(
    "Where to look?", Reply((Text("I look."), used(1), found(1), cited("Tea is dear."), used(2)), "pause")
)
SECOND = Reply((found(2), Text("And now the price."), used(3), found(3)), "pause")
LAST = say("Four euros.")


def sent(exchange: Exchange) -> list[dict[str, Any]]:
    """The messages of a request without cache markers and with what is no content left out."""
    made: list[dict[str, Any]] = json.loads(json.dumps(exchange.said["messages"]))
    for message in made:
        for block in message["content"]:
            block.pop("cache_control", None)
    return made


def answer(exchange: Exchange) -> list[dict[str, Any]]:
    assert exchange.answer is not None
    return [{k: v for k, v in block.items() if v is not None} for block in exchange.answer["content"]]


@pytest.mark.parametrize("policy", ["transcript", "window", "masking", "notes", "journal"])
def test_a_paused_turn_goes_back_as_it_came_over_a_resume_and_a_cold_cache(policy):
    """A resume goes on as if it had not been, and no rebuild that only spares comes between."""

    async def scenario(server: ProviderServer) -> None:
        clock = SimulatedClock()
        store = await open_store(":memory:", clock=clock)
        settings: dict[str, Any] = {"policy": policy, "cap": 20_000, "mark": 2_000}
        model = ANTHROPIC.at(server, server_tools=SEARCH)
        try:
            one = agent(model, limits=Limits(turns=1), **settings)
            async with await start(store, one, "What is tea? " * 1_500, run="run7", clock=clock) as run:
                assert (await run.finish()).state == "limited"
            clock.advance(LATER_MS)
            async with await resume(store, "run7", agent(model, **settings), clock=clock) as run:
                summary = await run.finish()
                assert (summary.state, summary.turns) == ("finished", 3), summary.why
            asked = await entries(store, "run7", ModelAsked)
            forms = [[pick.form for pick in each.blocks] for each in asked]
            assert [each[-1:] for each in forms[1:]] == [["paused"], ["paused"]]
            assert len(await entries(store, "run7", EpochOpened)) == 1
            assert (await verify(store, "run7")).ok
        finally:
            await store.close()

    with ProviderServer([FIRST, SECOND, LAST]) as server:
        asyncio.run(scenario(server))
    first, second, third = server.exchanges
    assert [each.refusal for each in server.exchanges] == [None] * 3
    (user, back) = sent(second)
    assert (user, back["role"]) == (sent(first)[0], "assistant")
    assert back["content"] == answer(first)
    assert list(back["content"][2]["input"]) == ["query", "also"], "what the model wrote keeps its order"
    assert sent(third)[1]["content"] == answer(first) + answer(second), "and so it stays"


async def ask_all(server: ProviderServer, model: Any, message: str = "", **settings: Any) -> Any:
    """The run's forms of its requests and its warnings; `message` comes after the first turn."""
    clock = SimulatedClock()
    store = await open_store(":memory:", clock=clock)
    try:
        one = agent(model, **{**settings, "limits": Limits(turns=1, retry_ms_min=0)})
        async with await start(store, one, "What is tea?", run="run7", clock=clock) as run:
            await run.finish()
        if message:
            await post(store, "run7", message)
        async with await resume(store, "run7", agent(model, **settings), clock=clock) as run:
            assert (await run.finish()).state == "finished"
        assert (await verify(store, "run7")).ok
        asked = await entries(store, "run7", ModelAsked)
        warned = [each.what for each in await entries(store, "run7", Warned)]
        return [[pick.form for pick in each.blocks] for each in asked], warned
    finally:
        await store.close()


@pytest.mark.parametrize("policy", ["transcript", "window", "journal"])
def test_a_paused_turn_too_big_for_the_cap_is_shown_without_what_it_cannot_go_on_with(policy):
    """P2, W3: the cap is hard, the run goes on, and what was given up is a warning."""
    big = Reply((Text("I look."), used(1), found(1, 20_000)), "pause")
    with ProviderServer([big, LAST]) as server:
        model = ANTHROPIC.at(server, server_tools=SEARCH)
        forms, warned = asyncio.run(ask_all(server, model, policy=policy, cap=8_000, mark=4_000))
    assert [each.refusal for each in server.exchanges] == [None, None]
    assert forms[1] == ["kept"]
    assert warned == ["pause given up"]
    answered, notice = sent(server.exchanges[1])[1:]
    assert answered["content"] == [{"type": "text", "text": "I look."}]
    assert notice["role"] == "user"


def test_a_message_that_came_meanwhile_ends_the_pause():
    with ProviderServer([FIRST, LAST]) as server:
        model = ANTHROPIC.at(server, server_tools=SEARCH)
        forms, warned = asyncio.run(ask_all(server, model, "And coffee?"))
    assert [each.refusal for each in server.exchanges] == [None, None]
    assert (forms[1], warned) == (["whole"], [])
    last = sent(server.exchanges[1])[-1]
    assert [block["text"] for block in last["content"]] == [PAUSED, "And coffee?"]


def test_over_the_bridge_the_model_begins_anew_behind_a_notice():
    """What pydantic-ai sends of such blocks is not what came, so it is no turn to go on with."""
    paused = Reply((Text("I look."), used(1)), "pause")
    with ProviderServer([paused, LAST]) as server:
        forms, _ = asyncio.run(ask_all(server, CLAUDE.at(server)))
    assert [each.refusal for each in server.exchanges] == [None, None]
    assert forms[1] == ["whole"]
