"""What the tests of book tools, observers and rules share: one run with its book tools on."""

from __future__ import annotations

from typing import Any

from shiftbook.entries import (
    ActionFinished,
)
from shiftbook.run.loop import resume, start
from tests.run.desk import Desk, agent

RUN = "book"


async def go(ground: Desk, script: Any, message: str | None = "Begin.", **changes: Any) -> Any:
    changes = {"book_tools": True} | changes
    async with await start(
        ground.store, agent(script, **changes), message, run=RUN, clock=ground.clock
    ) as run:
        return await run.finish()


async def again(ground: Desk, script: Any, message: str | None = None, **changes: Any) -> Any:
    changes = {"book_tools": True} | changes
    async with await resume(ground.store, RUN, agent(script, **changes), message, clock=ground.clock) as run:
        return await run.finish()


async def answers(ground: Desk) -> list[tuple[str, str]]:
    return [(w.outcome, w.content[0].text) for w in await ground.whats(RUN, ActionFinished)]
