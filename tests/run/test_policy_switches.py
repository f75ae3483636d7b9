"""A run whose policy changes on the way: what stands comes back, and every resume comes out the same."""

from __future__ import annotations

from typing import Any

from shiftbook.entries import Warned
from shiftbook.messages import Request
from shiftbook.providers.scripted import call, say
from shiftbook.run.limits import Limits
from shiftbook.run.loop import resume, start
from shiftbook.tools.function import tool
from tests.run.book import RUN
from tests.run.desk import Desk, agent, run_async, said

RULE = "Count boxes only."
NOTED = "B7 is full to the top"


@tool(repeat="safe")
async def read(number: int) -> str:
    """Read a page."""
    return f"page {number}: " + "some words of it " * 60


SETTING: dict[str, Any] = {
    "tools": (read,),
    "cap": 6_000,
    "mark": 2_800,
    "book_tools": ("note",),
    "recall_point": 0,
    "recall_set": 0,
}
SETTING |= {"limits": Limits(snapshot_every=6), "rules": {"boxes": RULE}}


async def on(ground: Desk, policy: str, seen: list[list[str]], turns: int = 1) -> None:
    """So many turns under a policy, in a process of its own."""
    last = len(seen) + turns

    def answer(request: Request) -> Any:
        seen.append(list(said(request)))
        if request.turn == 1:
            return call("note", {"key": "shelf", "value": NOTED})
        return say("Read.") if len(seen) == last else call("read", {"number": request.turn})

    scripted = agent(answer, **(SETTING | {"policy": policy}))
    message = f"Go on with {policy}."
    if seen:
        run = await resume(ground.store, RUN, scripted, message, clock=ground.clock)
    else:
        run = await start(ground.store, scripted, message, run=RUN, clock=ground.clock)
    async with run:
        assert (await run.finish()).state == "finished"


def test_a_brief_of_what_no_prompt_showed_any_more_is_made_again_after_a_snapshot() -> None:
    async def main(ground: Desk) -> None:
        seen: list[list[str]] = []
        await on(ground, "window", seen, turns=30)
        assert not any(NOTED in text for text in seen[-1])
        for policy in ("journal", "journal", "window", "journal", "window"):
            await on(ground, policy, seen)
            assert any(NOTED in text for text in seen[-1]) == (policy == "journal")
            assert any(RULE in text for text in seen[-1])
        left = [each for each in await ground.whats(RUN, Warned) if each.what == "brief left"]
        assert len(left) == 2, "once for each time that the brief made way for the window"
        await ground.check(RUN)

    run_async(main)
