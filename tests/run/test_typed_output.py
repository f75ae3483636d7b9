"""A typed answer: the reply that ends a task is what the agent declares, or the model is asked again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator

from shiftbook.canonical import decode
from shiftbook.entries import (
    AgentDeclared,
    LimitReached,
    ModelAnswered,
    ModelAsked,
    PersonSaid,
    RunRested,
)
from shiftbook.errors import AgentMistake
from shiftbook.messages import Emit, Reply, Request
from shiftbook.providers.scripted import call, say
from shiftbook.run.agent import Agent
from shiftbook.run.answer import shape_of
from shiftbook.run.limits import Limits
from shiftbook.run.loop import Run, resume, start
from shiftbook.run.summary import Summary
from shiftbook.testing.crash import Crash, Dies, Seams
from tests.run.desk import LEASE_MS, Desk, agent, desk, run_async, said

RUN = "typed"


class Count(BaseModel):
    """A count of crates."""

    place: str
    crates: int = Field(ge=0)

    @field_validator("place")
    @classmethod
    def known(cls, value: str) -> str:
        """Only places that there are."""
        if value == "nowhere":
            raise ValueError("there is no such place")
        return value


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"place": {"type": "string"}, "crates": {"type": "integer", "minimum": 0}},
    "required": ["place", "crates"],
    "additionalProperties": False,
}
GOOD = '{"place":"A","crates":12}'
VALUE = {"place": "A", "crates": 12}


async def told(ground: Desk, script: Any, **changes: Any) -> Summary:
    """A run of one message, to its rest."""
    values = {"output": Count} | changes
    async with await start(
        ground.store, agent(script, **values), "Count A.", run=RUN, clock=ground.clock
    ) as run:
        return await run.finish()


@pytest.mark.parametrize("output", [Count, SCHEMA], ids=["model", "schema"])
@pytest.mark.parametrize("text", [GOOD, f"\n{GOOD}\n", f"```json\n{GOOD}\n```", f"```\n{GOOD}\n```"])
def test_a_fitting_reply_ends_the_task_and_its_value_is_handed_out(output: Any, text: str) -> None:
    async def main(ground: Desk) -> None:
        summary = await told(ground, [say(text)], output=output)
        assert (summary.state, summary.output, summary.turns) == ("finished", VALUE, 1)
        assert len(await ground.whats(RUN, PersonSaid)) == 1
        await ground.check(RUN)

    run_async(main)


@pytest.mark.parametrize("output", [Count, SCHEMA], ids=["model", "schema"])
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("There are twelve.", "not one JSON value"),
        (f"Here you are: {GOOD}", "not one JSON value"),
        (f"{GOOD}\n{GOOD}", "not one JSON value"),
        ('{"place":"A","crates":NaN}', "NaN is not JSON"),
        ('{"place":"A","crates":1e999}', "not one JSON value"),
        ('{"place":"\\udc88","crates":1}', "not one JSON value"),
        ("[" * 100_000, "not one JSON value"),
        ('{"place":"A","crates":-1}', "crates"),
        ('{"place":"A"}', "crates"),
        ("null", "does not fit"),
        ("   ", "holds no text"),
    ],
)
def test_an_unfitting_reply_is_told_to_the_model_as_the_authors_word(
    output: Any, text: str, names: str
) -> None:
    async def main(ground: Desk) -> None:
        asked: list[list[str]] = []

        def script(request: Request) -> Any:
            asked.append(list(said(request)))
            return say(text if request.turn == 1 else GOOD)

        summary = await told(ground, script, output=output)
        assert (summary.state, summary.output, summary.turns) == ("finished", VALUE, 2)
        first, repair = await ground.whats(RUN, PersonSaid)
        assert (first.author, repair.author) == ("person", "author")
        assert names in repair.content[0].text
        assert len(repair.content[0].text) < 3_000
        # The words are not put into a person's mouth, and they are the last thing said.
        assert asked[1][-2:] == [
            "[From the author of this agent, not from the user:]",
            repair.content[0].text,
        ]
        await ground.check(RUN)

    run_async(main)


def test_a_validator_of_the_authors_own_is_heard() -> None:
    async def main(ground: Desk) -> None:
        summary = await told(ground, [say('{"place":"nowhere","crates":1}'), say(GOOD)])
        assert summary.output == VALUE
        assert "there is no such place" in (await ground.whats(RUN, PersonSaid))[1].content[0].text

    run_async(main)


def test_repairs_are_bounded_and_a_raised_limit_or_a_message_takes_the_run_up_again() -> None:
    async def main(ground: Desk) -> None:
        summary = await told(ground, lambda request: say("no"), limits=Limits(repairs=2))
        assert (summary.state, summary.turns, summary.output) == ("limited", 3, None)
        assert summary.why.startswith("repairs: It is not one JSON value")
        assert await ground.whats(RUN, LimitReached) == [LimitReached("repairs", 2, 2)]

        def good_at_last(request: Request) -> Any:
            return say("no" if request.turn == 4 else GOOD)

        more = agent(good_at_last, output=Count, limits=Limits(repairs=4))
        async with await resume(ground.store, RUN, more, clock=ground.clock) as run:
            summary = await run.finish()
            assert (summary.state, summary.turns, summary.output) == ("finished", 5, VALUE)
            # Another task begins another count.
            await run.say("And again.")
            assert (await run.finish()).turns == 6
        await ground.check(RUN)

    run_async(main)


def test_a_message_that_waits_comes_before_a_repair() -> None:
    class Interrupted:
        """A model that hears somebody speak to the run while it thinks."""

        name = "interrupted"
        run: Run

        async def reply(self, request: Request, emit: Emit) -> Reply:
            if request.turn == 1:
                await self.run.say("Never mind the place.")
            return say("no" if request.turn == 1 else GOOD)

    async def main(ground: Desk) -> None:
        model = Interrupted()
        counter = Agent(name="counter", model=model, output=Count)
        async with await start(ground.store, counter, "Count A.", run=RUN, clock=ground.clock) as run:
            model.run = run
            assert (await run.finish()).output == VALUE
        assert [what.author for what in await ground.whats(RUN, PersonSaid)] == ["person", "person"]
        await ground.check(RUN)

    run_async(main)


def test_the_schema_is_declared_and_the_model_is_told_it_with_its_instructions() -> None:
    async def main(ground: Desk) -> None:
        asked: list[str] = []

        def script(request: Request) -> Any:
            asked.append(request.instructions)
            return say(GOOD)

        await told(ground, script, instructions="Count.")
        (declared,) = await ground.whats(RUN, AgentDeclared)
        plain: Any = decode((await ground.store.blobs.get(RUN, declared.declaration)).decode())
        assert plain["output"] == shape_of(Count).schema
        assert plain["instructions"] == asked[0]
        assert asked[0].startswith("Count.\n\n")
        assert '"crates"' in asked[0]

    run_async(main)


def test_i6_the_order_of_a_schemas_keys_does_not_matter() -> None:
    turned = {name: SCHEMA[name] for name in reversed(SCHEMA)}
    turned["properties"] = {name: SCHEMA["properties"][name] for name in reversed(SCHEMA["properties"])}
    assert shape_of(turned).told("x") == shape_of(SCHEMA).told("x")


def test_calls_come_before_the_answer_and_are_not_judged() -> None:
    async def main(ground: Desk) -> None:
        summary = await told(ground, [call("look", {"place": "A"}, text="let me see"), say(GOOD)])
        assert (summary.output, summary.actions, summary.turns) == (VALUE, 1, 2)

    run_async(main)


def test_a_reply_cut_at_the_output_limit_is_not_an_answer() -> None:
    async def main(ground: Desk) -> None:
        # The piece that came reads as JSON by itself: it is the stop that tells.
        summary = await told(ground, [say(GOOD, stop="length"), say('{"place":"B","crates":1}')])
        assert summary.output == {"place": "B", "crates": 1}
        assert "cut at the output limit" in (await ground.whats(RUN, PersonSaid))[1].content[0].text

    run_async(main)


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ({"type": "no such type"}, "no valid JSON schema"),
        (object(), "has no JSON schema"),
    ],
)
def test_an_output_that_cannot_be_checked_is_refused_in_one_sentence(output: Any, says: str) -> None:
    with pytest.raises(AgentMistake, match=says):
        agent([], output=output)


def test_a_conversational_agent_has_no_typed_output() -> None:
    with pytest.raises(AgentMistake, match="leave out one of the two"):
        agent([], output=Count, conversational=True)


def test_a_reference_that_leads_elsewhere_is_not_fetched() -> None:
    async def main(ground: Desk) -> None:
        summary = await told(
            ground, lambda _: say(GOOD), output={"$ref": "http://127.0.0.1:9/x"}, limits=Limits(repairs=0)
        )
        assert summary.state == "limited"
        assert "cannot be checked" in summary.why

    run_async(main)


async def once(ground: Desk, seams: Seams, script: Any, *, begun: bool) -> Summary:
    """One process of the run."""
    store, mine = seams.store(ground.store), seams.agent(agent(script, output=Count))
    if begun:
        opened = resume(store, RUN, mine, clock=ground.clock, lease_ms=LEASE_MS)
    else:
        opened = start(store, mine, "Count A.", run=RUN, clock=ground.clock, lease_ms=LEASE_MS)
    async with await opened as run:
        return await run.finish()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a4_a_death_at_any_commit_goes_on_along_the_same_path(moment: Any) -> None:
    paid: list[int] = []

    def script(request: Request) -> Any:
        paid.append(request.turn)
        return call("look", {"place": "A"}) if request.turn == 1 else say("no" if request.turn == 2 else GOOD)

    def commits(seams: Seams) -> int:
        return sum(point.seam == "entries.append" and point.moment == moment for point in seams.passed)

    async def dies(at: int) -> None:
        async with desk() as ground:
            paid.clear()
            with pytest.raises(Crash):
                await once(ground, Seams(Dies(at, moment, "entries.append")), script, begun=False)
            ground.expire()
            answered = {what.turn for what in await ground.whats(RUN, ModelAnswered)}
            before = len(paid)
            summary = await once(ground, Seams(), script, begun=True)
            assert (summary.state, summary.output) == ("finished", VALUE)
            # A journaled answer is never asked for again.
            assert not answered & set(paid[before:])
            assert [what.author for what in await ground.whats(RUN, PersonSaid)] == ["person", "author"]
            assert [what.turn for what in await ground.whats(RUN, ModelAsked)] == [1, 2, 3]
            assert [what.state for what in await ground.whats(RUN, RunRested)] == ["finished"]
            await ground.check(RUN)

    async def main() -> None:
        async with desk() as ground:
            seams = Seams()
            await once(ground, seams, script, begun=False)
        # Before the first commit there is no run to resume.
        first = 2 if moment == "before" else 1
        for at in range(first, commits(seams) + 1):
            await dies(at)

    asyncio.run(main())
