"""Odd values keep their bytes: what a live turn saw is what a reloaded one sees."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

import shiftbook
from shiftbook.messages import Request
from shiftbook.prompt.digest import block_text
from shiftbook.providers.scripted import Scripted, call, say

ARGUMENTS: list[Mapping[str, object]] = [
    {"zebra": 1, "alpha": 2},
    {"b": {"z": 1, "a": [{"y": 0, "x": 0}]}, "a": None},
    {"long": 2**70, "nul": "a\x00b", "lone": "\udc88", "": 1.0},
]


@shiftbook.tool(repeat="safe")
def take(what: object = None) -> str:
    """Take anything."""
    return "taken"


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_f6_a_live_prompt_and_a_reloaded_one_are_equal_to_the_byte(
    arguments: Mapping[str, object], tmp_path: Path
) -> None:
    seen: list[list[str]] = []

    def look(request: Request) -> None:
        seen.append([block_text(block) for block in request.blocks])

    script = [call("take", arguments), say("one"), say("two")]
    agent = shiftbook.Agent(name="odd", model=Scripted(script, check=look), tools=[take])
    db = str(tmp_path / "odd.db")

    async def live() -> str:
        store = await shiftbook.open_store(db)
        async with await shiftbook.start(store, agent, "Go.") as run:
            await run.finish()
        await store.close()
        return run.id

    async def reloaded(name: str) -> None:
        store = await shiftbook.open_store(db)
        await store.cache.drop()
        async with await shiftbook.resume(store, name, agent, "Again.") as run:
            await run.finish()
        await store.close()

    name = asyncio.run(live())
    asyncio.run(reloaded(name))
    before, after = seen[1], seen[2]
    assert after[: len(before)] == before
    # The arguments stand in their own order, not in an alphabetical one.
    keys = [f'"{key}":' for key in arguments if key.isascii() and key.isalpha()]
    told = before[1]
    assert [told.index(key) for key in keys] == sorted(told.index(key) for key in keys)
