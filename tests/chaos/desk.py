"""The agent of the storm: a scripted model, and charges through an HTTP service that honours keys.

How many turns a run has, and how long each charge takes, follows from the run's id, so that every worker
process says the same. Waits go by the machine's clock: the storm is about processes that die in the middle.
"""

from __future__ import annotations

import asyncio
import os
from hashlib import sha256

from shiftbook import Agent, Context, tool
from shiftbook.clock import SystemClock
from shiftbook.messages import Reply, Request
from shiftbook.providers.scripted import Scripted, call, calls, say
from shiftbook.run.limits import Limits
from tests.crash.receiver import post

RECEIVER = "CHAOS_RECEIVER"
PACE = "CHAOS_PACE_MS"
"""Environment: the service's address, and the longest that half a charge takes."""


def drawn(*names: object, below: int) -> int:
    """A number that follows from names: the same in every process."""
    return int.from_bytes(sha256(repr(names).encode()).digest()[:4], "big") % below


def turns_of(run: str) -> int:
    """Turns of a run's first task."""
    return 5 + drawn(run, "turns", below=6)


@tool(repeat="keyed")
async def charge(amount: int, context: Context) -> str:
    """Charge a card through the service."""
    clock, pace = SystemClock(), int(os.environ[PACE])
    await clock.sleep_ms(drawn(context.key, "before", below=pace))
    answer = await asyncio.to_thread(post, f"{os.environ[RECEIVER]}/{context.run}", amount, context.headers())
    await clock.sleep_ms(drawn(context.key, "after", below=pace))
    return answer


def _script(request: Request) -> Reply:
    run, turn = request.run, request.turn
    last = turns_of(run)
    if turn % (last + 1) == 0:
        return say(f"Done after {turn} turns.")
    one = call("charge", {"amount": drawn(run, turn, below=90) + 10})
    return one if drawn(run, turn, "two", below=4) else calls(one, call("charge", {"amount": 7}))


agent = Agent(
    name="storm",
    model=Scripted(_script),
    instructions="Charge what is asked for.",
    tools=(charge,),
    cap=100_000,
    limits=Limits(attempts=1_000, snapshot_every=10),
)
