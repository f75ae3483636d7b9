"""The one door for code without an event loop."""

from __future__ import annotations

import asyncio

from shiftbook.errors import BadInput
from shiftbook.journal.open import open_store
from shiftbook.run.agent import Agent
from shiftbook.run.loop import resume, start
from shiftbook.run.summary import Summary


def run_sync(
    agent: Agent, message: str | None = None, *, db: str = "shiftbook.db", run: str | None = None
) -> Summary:
    """Start a run of `agent` in the database `db`, or take up `run`, and go on until it rests.

    Inside a running event loop this raises `BadInput`: use `await` with `start` or `resume` there.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_run(agent, message, db, run))
    raise BadInput(
        "run_sync was called inside a running event loop: use `await shiftbook.start(...)` instead."
    )


async def _run(agent: Agent, message: str | None, db: str, run: str | None) -> Summary:
    store = await open_store(db)
    try:
        if run is None:
            handle = await start(store, agent, message)
        else:
            handle = await resume(store, await store.catalogue.find(run), agent, message)
        async with handle:
            return await handle.finish()
    finally:
        await store.close()
