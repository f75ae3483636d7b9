"""A prompt that cannot be made loses nothing: what an action gave back is on record before that is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

import shiftbook
from shiftbook.entries import ActionFinished, Entry
from shiftbook.policies import registry
from shiftbook.policies.transcript import Transcript
from shiftbook.prompt.epoch import Budget, Choice, EpochPrompt
from shiftbook.providers.scripted import Scripted, call, say
from shiftbook.run.book import read_entries


class Broken(Transcript):
    """Makes the first prompt and no other."""

    name = "broken"

    def choose(self, prompt: EpochPrompt, fresh: Sequence[Entry], budget: Budget) -> Choice:
        if any(isinstance(entry.what, ActionFinished) for entry in fresh):
            raise ValueError("this policy is broken")
        return super().choose(prompt, fresh, budget)


def test_a1_an_answer_is_on_record_although_the_next_prompt_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(registry.POLICIES, "broken", Broken)
    sent: list[str] = []

    @shiftbook.tool(repeat="safe")
    async def send(to: str) -> str:
        """Send it."""
        sent.append(to)
        return "sent"

    def agent(policy: str) -> shiftbook.Agent:
        script = [call("send", {"to": "Ann"}), say("Done.")]
        return shiftbook.Agent(name="desk", model=Scripted(script), tools=[send], policy=policy)

    async def main() -> None:
        store = await shiftbook.open_store(":memory:")
        async with await shiftbook.start(store, agent("broken"), "Send it.") as run:
            with pytest.raises(ValueError, match="this policy is broken"):
                await run.finish()
        kinds = [entry.kind for entry in await read_entries(store, run.id)]
        assert kinds[-1] == "ActionFinished"
        async with await shiftbook.resume(store, run.id, agent("transcript")) as run:
            assert (await run.finish()).reply == "Done."
        assert sent == ["Ann"]
        await store.close()

    asyncio.run(main())
