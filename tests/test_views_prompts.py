"""Prompts and figures, made again from the journal alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from statistics import median_low

import pytest

from shiftbook import BadInput, canonical, resume, start
from shiftbook.entries import ModelAsked
from shiftbook.errors import Damaged
from shiftbook.prompt.measure import block_tokens, fixed_tokens
from shiftbook.prompt.rederive import rederive
from shiftbook.providers.scripted import Step, call, say
from shiftbook.testing.clock import SimulatedClock
from shiftbook.tokens import BpeMeter
from shiftbook.verify.prompts import Prompts
from shiftbook.views import (
    entries_of,
    prompt_view,
    run_figures,
)
from tests import records
from tests.records import count, made, of


def test_the_prompt_of_each_turn_is_made_again(tmp_path: Path) -> None:
    async def check() -> None:
        place = await made(tmp_path)
        entries = await of(place.store, place.run)
        asks = [entry.what for entry in entries if isinstance(entry.what, ModelAsked)]
        for asked in asks:
            view = await prompt_view(place.store, place.run, asked.turn)
            assert (view["turn"], view["digest"], view["tokens"]) == (asked.turn, asked.digest, asked.tokens)
            assert (view["policy"], view["cap"]) == ("window", 3_400)
            assert view["fixed"] + sum(block["tokens"] for block in view["blocks"]) == asked.tokens
            assert view["instructions"] == "You keep the warehouse."
            assert view["tools"] == ["count", "long_list", "odd", "photo"]
            canonical.encode(view)
        assert [
            view["epoch"] for view in [await prompt_view(place.store, place.run, n) for n in (9, 10)]
        ] == [1, 2]
        first = await prompt_view(place.store, place.run, 2)
        assert first["messages"][0] == {"side": "user", "parts": [{"text": "Count the boxes."}]}
        assert [next(iter(part)) for part in first["messages"][2]["parts"]] == ["result", "result"]
        await place.store.close()

    asyncio.run(check())


def test_a_turn_that_was_not_asked_gets_one_sentence(tmp_path: Path) -> None:
    async def check() -> None:
        place = await made(tmp_path)
        for turn in (0, -1, 11):
            with pytest.raises(BadInput, match=f"no turn {turn}: turns 1 to 10 were asked"):
                await prompt_view(place.store, place.run, turn)
        async with await start(place.store, records.agent(), run="new", clock=SimulatedClock(9)):
            with pytest.raises(BadInput, match="no turn 1: no turn was asked yet"):
                await prompt_view(place.store, "new", 1)
        place.sql(
            "UPDATE entries SET payload = replace(payload, 'boxes', 'crates') WHERE id & 4294967295 = 3"
        )
        with pytest.raises(Damaged, match="has digest"):
            await prompt_view(place.store, place.run, 1)
        with pytest.raises(Damaged, match="has digest"):
            await run_figures(place.store, place.run)
        await place.store.close()

    asyncio.run(check())


def test_figures_are_counted_by_the_exact_meter(tmp_path: Path) -> None:
    """Each request, counted from nothing by the exact meter, against the sums that grow block by block."""

    async def check() -> None:
        place = await made(tmp_path)
        entries = await of(place.store, place.run)
        agent, meter = records.agent(), BpeMeter()
        tools = sorted((tool.schema for tool in agent.tools), key=lambda schema: schema.name)
        sizes = []
        for number, entry in enumerate(entries, start=1):
            if isinstance(entry.what, ModelAsked):
                prompt = rederive(entries[:number]).prompt
                assert prompt is not None
                blocks = sum(block_tokens(block, meter) for block in prompt.blocks)
                sizes.append(fixed_tokens(agent.instructions, tools, meter) + blocks)
                if entry.what.meter == meter.name:
                    assert sizes[-1] == entry.what.tokens
        figures = await run_figures(place.store, place.run)
        assert figures == {
            "run": place.run,
            "state": "finished",
            "turns": 9,
            "actions": 7,
            "cut_off": 1,
            "repeated": 0,
            "prompt_tokens": {"median": median_low(sizes), "max": max(sizes)},
            "cached_share": None,
            "cost": None,
        }
        await place.store.close()

    asyncio.run(check())


def test_figures_of_a_changed_agent_are_of_what_it_is_now(tmp_path: Path) -> None:
    """A change opens an epoch; while the bound fits, both epochs are counted here."""

    async def check() -> None:
        clock, meter, sizes = SimulatedClock(7), BpeMeter(), []
        place = await records.opened(tmp_path, clock=clock)
        script: list[Step] = [say("One."), say("Two."), say("Three.")]
        first = records.agent(script, cap=20_000)
        second = replace(first, instructions="You keep the yard, and the warehouse beside it.")
        async with await start(place.store, first, "Go", clock=clock, run="two") as run:
            await run.finish()
        for _ in range(2):
            async with await resume(place.store, "two", second, "On", clock=clock) as run:
                await run.finish()
        entries = await of(place.store, "two")
        tools = sorted((tool.schema for tool in first.tools), key=lambda schema: schema.name)
        for number, entry in enumerate(entries, start=1):
            if isinstance(entry.what, ModelAsked):
                assert entry.what.meter == "bytes"
                prompt = rederive(entries[:number]).prompt
                assert prompt is not None
                agent = first if prompt.epoch == 1 else second
                blocks = sum(block_tokens(block, meter) for block in prompt.blocks)
                sizes.append(fixed_tokens(agent.instructions, tools, meter) + blocks)
        figures = await run_figures(place.store, "two")
        assert figures["prompt_tokens"] == {"median": median_low(sizes), "max": max(sizes)}
        assert (await prompt_view(place.store, "two", 3))["epoch"] == 2
        await place.store.close()

    asyncio.run(check())


def test_a_run_that_asked_nothing_has_no_figures_of_prompts(tmp_path: Path) -> None:
    async def check() -> None:
        place = await records.opened(tmp_path)
        async with await start(place.store, records.agent(), clock=SimulatedClock(1), run="new"):
            figures = await run_figures(place.store, "new")
        assert figures["prompt_tokens"] == {"median": None, "max": None}
        await place.store.close()

    asyncio.run(check())


def long_script(turns: int) -> list[Step]:
    return [*[call("count", {"place": "ABCDEFGH"})] * turns, say("Done.")]


def test_e7_a_request_leaves_a_recipe_and_a_digest_not_a_prompt(tmp_path: Path) -> None:
    """E7: what a request writes does not grow with the prompt, so a run's bytes are linear in its turns."""

    async def check() -> None:
        clock = SimulatedClock(7)
        place = await records.opened(tmp_path, clock=clock)
        agent = records.agent(long_script(150), (count,), policy="transcript", cap=90_000)
        async with await start(place.store, agent, "Go", clock=clock, run="long") as run:
            await run.finish()
        sizes = [
            size
            for (size,) in place.sql(
                "SELECT length(payload) FROM entries WHERE kind = 6 ORDER BY id LIMIT 151"
            )
        ]
        assert len(sizes) == 151
        assert max(sizes) - min(sizes) < 20, "digits only"
        last = await prompt_view(place.store, "long", 151)
        assert len(canonical.encode(last["messages"])) > 100 * max(sizes)
        await place.store.close()

    asyncio.run(check())


def test_memory_holds_the_epoch_and_not_the_run(tmp_path: Path) -> None:
    async def check() -> None:
        clock = SimulatedClock(7)
        place = await records.opened(tmp_path, clock=clock)
        agent = records.agent(long_script(200), (count,), cap=2_000)
        async with await start(place.store, agent, "Go", clock=clock, run="long") as run:
            await run.finish()
        prompts, most, epochs = Prompts(place.store, "long"), 0, set()
        async for entry in entries_of(place.store, "long"):
            assert not await prompts.take(entry)
            most = max(most, prompts.held)
            epochs.add(prompts.prompt.epoch if prompts.prompt is not None else 0)
        assert len(epochs) > 5
        assert most < 200 < prompts.count * 2, "of some 400 entries that a model sees"
        await place.store.close()

    asyncio.run(check())
