"""Runs at the least caps and with the oddest results: the cap is hard, a refusal is one sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from shiftbook.entries import LimitReached, ModelAsked, Warned
from shiftbook.errors import CapTooSmall
from shiftbook.messages import Request
from shiftbook.policies import POLICIES
from shiftbook.providers.scripted import Step, call, calls, say
from shiftbook.run.loop import start
from shiftbook.tools.function import tool
from tests.run.desk import Desk, agent, run_async

WRITTEN = ("notes", "journal")
WAYS = [
    (name, report)
    for name in sorted(POLICIES)
    for report in ("mechanical", "model")
    if report == "mechanical" or name in WRITTEN
]
ODD = {
    "one word": "x" * 150_000,
    "joined emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 12_000,
    "lone surrogates": "\ud800 lone \udfff " * 4_000,
    "no characters": "\0\x01\x7f" * 20_000,
    "digits": "0123456789" * 12_000,
}


@tool(repeat="safe")
async def fetch(name: str) -> str:
    """Fetch something."""
    return ODD.get(name, f"{name}: " + "a few words " * 20)


def writes(steps: Sequence[Step]) -> Any:
    """The steps by turn; a report of one line where something can be cited."""

    def step(request: Request) -> Step:
        if request.purpose == "report":
            words = "\n".join(part.text for part in request.blocks[-1].parts if hasattr(part, "text"))
            found = re.findall(r"^(\d+): done ", words, re.MULTILINE)
            return say(f'[{{"text": "Things were fetched.", "cites": [{found[0]}]}}]' if found else "[]")
        return steps[request.turn - 1] if request.turn <= len(steps) else say("Done.")

    return step


async def work(
    ground: Desk, run_id: str, steps: Sequence[Step], message: str = "Begin.", **values: Any
) -> str:
    """The state in which such a run rests; its prompts are within the cap, its record without fault."""
    made = agent(writes(steps), tools=(fetch,), **values)
    async with await start(ground.store, made, message, run=run_id, clock=ground.clock) as run:
        state = (await run.finish()).state
    asked = await ground.whats(run_id, ModelAsked)
    assert all(each.tokens <= values["cap"] for each in asked)
    await ground.check(run_id)
    return state


@pytest.mark.parametrize(("policy", "report"), WAYS)
def test_h6_caps_a_little_above_the_least_that_is_allowed(policy: str, report: str) -> None:
    """Who has no room even for a notice stops at the cap and says so; with 100 tokens each goes on."""

    async def main(ground: Desk) -> None:
        steps: list[Step] = [call("fetch", {"name": f"box {number}"}) for number in range(6)]
        values: dict[str, Any] = {"policy": policy, "report": report}
        with pytest.raises(CapTooSmall, match=r"Raise --cap or shorten them\.$") as refused:
            await start(ground.store, agent(writes(steps), tools=(fetch,), cap=1, **values), run="r")
        least = refused.value.fixed
        with pytest.raises(CapTooSmall):
            await start(ground.store, agent(writes(steps), tools=(fetch,), cap=least - 1, **values), run="r")
        state = ""
        for more in (0, 1, 10, 40, 100):
            state = await work(ground, f"r{more}", steps, cap=least + more, **values)
            stopped = await ground.whats(f"r{more}", LimitReached)
            assert (state == "limited") is bool(stopped)
            assert state == "limited" or (state == "finished" and more >= 10)
        assert state == "finished" or policy == "transcript"

    run_async(main)


@pytest.mark.parametrize("odd", sorted(ODD))
def test_h11_an_odd_result_of_any_size_enters_every_policys_prompt(odd: str) -> None:
    async def main(ground: Desk) -> None:
        for policy, report in WAYS:
            steps = [call("fetch", {"name": odd}), call("fetch", {"name": "box"}), say("Done.")]
            for message in ("Begin.", ODD[odd]):
                run_id = f"{policy}-{report}-{message[:1] == 'B'}"
                values: dict[str, Any] = {"policy": policy, "report": report, "cap": 8_000, "mark": 3_200}
                assert await work(ground, run_id, steps, message, **values) == "finished"
            cut = [each.what for each in await ground.whats(f"{policy}-{report}-False", Warned)]
            assert "words cut" in cut

    run_async(main)


@pytest.mark.parametrize(("policy", "report"), WAYS)
def test_three_hundred_calls_of_one_reply_are_dropped_together_where_they_do_not_fit(
    policy: str, report: str
) -> None:
    async def main(ground: Desk) -> None:
        many = calls(*(call("fetch", {"name": f"box {number}"}) for number in range(300)))
        values: dict[str, Any] = {"policy": policy, "report": report, "cap": 8_000, "mark": 3_200}
        state = await work(ground, "r", [many, call("fetch", {"name": "box"}), say("Done.")], **values)
        assert state == ("limited" if policy == "transcript" else "finished")
        dropped = [each for each in await ground.whats("r", Warned) if each.what == "entry dropped"]
        assert len(dropped) == (0 if policy == "transcript" else 301)

    run_async(main)
