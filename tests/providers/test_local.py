"""A real model over real HTTP on both vendors' wires, and a real prefix cache at work.

Skipped where it is not installed (`make local-model`); `.ci/run` installs it.
"""

from __future__ import annotations

import asyncio
import importlib.util
from itertools import pairwise
from typing import Any

import pytest

import shiftbook
from shiftbook.entries import ModelAnswered
from shiftbook.errors import AgentUnusable
from shiftbook.messages import Usage
from shiftbook.providers import local
from shiftbook.providers.anthropic_provider import Anthropic
from shiftbook.providers.openai_provider import OpenAIChat
from shiftbook.run.book import read_entries

TOLD = ["My name is Ana.", "I live in Graz.", "I like maps."]
SHORT = {"max_tokens": 3, "temperature": 0}


@pytest.fixture(scope="module")
def server():
    if not local.is_installed():
        pytest.skip(
            "THE LOCAL MODEL IS NOT INSTALLED, so no real cache was looked at: run `make local-model`"
        )
    with local.LocalServer() as found:
        yield found
        pid = found.pid
    assert pid is not None
    assert found.pid is None


async def usages(model: Any) -> list[Usage]:
    """The usage that each request of a conversation reported, as the journal holds it."""
    store = await shiftbook.open_store(":memory:")
    agent = shiftbook.Agent(
        name="guest", model=model, instructions="Be brief. " * 8, parameters=SHORT, conversational=True
    )
    async with await shiftbook.start(store, agent, "Hello.") as run:
        await run.finish()
        for text in TOLD:
            await run.say(text)
            await run.finish()
        entries = await read_entries(store, run.id)
    await store.close()
    return [entry.what.usage for entry in entries if isinstance(entry.what, ModelAnswered)]


WIRES = {
    "openai-chat": lambda at: OpenAIChat("local", base_url=at.openai_url),
    "anthropic": lambda at: Anthropic("local", base_url=at.anthropic_url),
}


@pytest.mark.parametrize("wire", WIRES)
def test_what_the_cache_gives_back_grows_with_the_prompt(server, wire):
    """A prompt that only grows at its end is read whole from the cache at the next request."""
    found = asyncio.run(usages(WIRES[wire](server)))
    assert len(found) == 1 + len(TOLD)
    for earlier, later in pairwise(found):
        assert earlier.prompt is not None
        assert later.cache_read is not None
        assert later.prompt is not None
        assert earlier.prompt <= later.cache_read < later.prompt


def test_without_the_packages_one_sentence_says_what_to_do(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(AgentUnusable, match="run `make local-model`"):
        local.LocalServer().start()
