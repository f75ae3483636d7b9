"""The workload that every figure here is about, after a published comparison of agent engines.

A turn is one reply with a short text and one call, and a tool result of exactly 1,024 bytes. A block is one
message of a person, ten turns and a final reply without a call; its cost is charged to its ten turns. Model
and tool answer at once, in the process, so that what is measured is the engine and its database.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from shiftbook import Agent, tool
from shiftbook.messages import Call, Emit, Json, Reply, Request, Text, TextDelta, Usage

TURNS_PER_BLOCK = 10
RESULT_BYTES = 1024
_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 "
_POOL = "".join(random.Random(7).choices(_CHARACTERS, k=64 * 1024))


def result_text(number: int) -> str:
    """1,024 seeded pseudo-random ASCII characters, different from call to call."""
    at = (number * 997) % (len(_POOL) - RESULT_BYTES)
    return _POOL[at : at + RESULT_BYTES]


@tool(repeat="safe")
async def lookup(q: str) -> str:
    """Look up an item.

    Args:
        q: The item's name, "item-" and its number.
    """
    return result_text(int(q.rpartition("-")[2]))


class WorkloadModel:
    """Answers at once: ten calls, then one reply without a call, over and over."""

    name = "workload"

    async def reply(self, request: Request, emit: Emit) -> Reply:
        """One reply of the workload, by turn number alone."""
        turn = request.turn
        usage = Usage(uncached=100, cache_read=900, output=20)
        if turn % (TURNS_PER_BLOCK + 1) == 0:
            emit(TextDelta("done"))
            return Reply((Text("done"),), "end", usage)
        text = f"Step {turn}: I will look up item {turn}."
        emit(TextDelta(text))
        arguments: Mapping[str, Json] = {"q": f"item-{turn}"}
        return Reply((Text(text), Call(f"call_{turn}", "lookup", arguments)), "calls", usage)


def message(block: int) -> str:
    """The person's message of a block, about 80 bytes."""
    return f"Please go through the next ten items of list {block:06d} and tell me when it is done."


def workload_agent(policy: str = "window", cap: int = 100_000) -> Agent:
    """The workload's agent under a policy and a cap."""
    return Agent(
        name="workload",
        model=WorkloadModel(),
        instructions="Look up every item.",
        tools=[lookup],
        policy=policy,
        cap=cap,
    )
