"""Book tools in a run: exact, once, in one commit, and known to `verify`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from shiftbook import canonical
from shiftbook.entries import (
    ActionFinished,
    ActionStarted,
    AgentDeclared,
    EpochOpened,
    ModelAnswered,
    ModelAsked,
    PlanChanged,
    Recalled,
    StatementMade,
    TallyChanged,
)
from shiftbook.errors import AgentMistake
from shiftbook.messages import Call
from shiftbook.observers import JsonFact
from shiftbook.projections.knowledge import learn_all, plan_items
from shiftbook.providers.scripted import call, calls, say
from shiftbook.run.booktools import BOOK_TOOLS
from shiftbook.run.limits import Limits
from shiftbook.run.loop import start
from shiftbook.testing.crash import Crash, Dies, Seams
from shiftbook.tools.function import tool
from shiftbook.verify.conduct import Conduct
from tests.run.book import RUN, again, answers, go
from tests.run.desk import LEASE_MS, Desk, agent, run_async, said

POLICIES = pytest.mark.parametrize("policy", ["transcript", "window"])


@POLICIES
def test_a_reply_that_mixes_book_tools_with_actions_is_kept_and_checked(policy: str) -> None:
    async def main(ground: Desk) -> None:
        script = [
            calls(
                call("look", {"place": "A"}),
                call("note", {"key": "gate", "value": {"open": True}, "about": "yard"}),
                call("tally", {"key": "boxes", "operation": "set", "amount": "1,234", "place": "A"}),
                call("pay", {"amount": 5}),
                call("decide", {"key": "supplier", "decision": "Ann, she is cheaper"}),
                call("plan", {"items": [{"text": "Count"}, {"text": "Pay", "state": "doing"}]}),
            ),
            calls(
                call("tally", {"key": "boxes", "operation": "add", "amount": "0.50", "place": "A"}),
                call("plan", {"items": [{"id": "1", "state": "done"}], "change": True}),
                call("note", {"key": "gate", "value": "shut"}),
            ),
            say("Done."),
        ]
        summary = await go(ground, script, policy=policy)
        assert summary.state == "finished"
        known = learn_all(await ground.entries(RUN))
        assert known.tallies["boxes", "A"].total == Decimal("1234.50")
        assert [(item.text, item.state) for item in plan_items(known)] == [
            ("Count", "done"),
            ("Pay", "doing"),
        ]
        (first, second) = [w for w in await ground.whats(RUN, StatementMade) if w.key == "gate"]
        entries = await ground.entries(RUN)
        (made, replaced) = [e.position for e in entries if e.what in (first, second)]
        assert (first.sort, first.origin, second.supersedes) == ("fact", "model", made)
        assert isinstance(entries[first.sources[0] - 1].what, ModelAnswered)
        assert {w.call for w in await ground.whats(RUN, ActionStarted)} == {"1.1", "1.4"}
        told = [text for _, text in await answers(ground)]
        assert f"On record as entry {replaced}, instead of entry {made}." in told
        assert "boxes at A: 1234.50 now" in " ".join(told)
        await ground.check(RUN)

    run_async(main)


def test_p4_the_models_view_of_a_book_call_is_a_call_with_one_answer_and_the_entry_behind_it() -> None:
    async def main(ground: Desk) -> None:
        seen: list[Any] = []

        def script(request: Any) -> Any:
            seen.append(request)
            if request.turn == 1:
                return calls(
                    call("tally", {"key": "n", "operation": "add", "amount": 3}), call("look", {"place": "A"})
                )
            return say("Done.")

        await go(ground, script)
        kinds = [block.kind for block in seen[1].blocks]
        assert kinds[-4:] == ["ModelAnswered", "ActionFinished", "ActionFinished", "TallyChanged"]
        assert said(seen[1])[-1].startswith("[Tally, kept by code: n: add 3 (by the model, entry ")
        assert {schema.name for schema in seen[0].tools} >= set(BOOK_TOOLS)

    run_async(main)


BAD = [
    ("tally", {"key": "n", "operation": "add", "amount": 1.5}, "floating-point number"),
    ("tally", {"key": "n", "operation": "add", "amount": True}, "whole number"),
    ("tally", {"key": "n", "operation": "add", "amount": "a dozen"}, "is not a number"),
    ("tally", {"key": "n", "operation": "twice", "amount": 1}, "'operation'"),
    ("tally", {"key": "a\nb", "operation": "add", "amount": 1}, "line break"),
    ("tally", {"key": "n", "operation": "add", "amount": 1, "place": 7}, "'place' has to be a text"),
    ("note", {"key": "k"}, "'value' is missing"),
    ("note", {"key": "k", "value": "x" * 5_000}, "at most 4000"),
    ("note", {"key": "k", "value": 1, "rule": True}, "'rule' is not known"),
    ("note", {"key": "k" * 200, "value": 1}, "at most 120"),
    ("decide", {"key": "k", "decision": " "}, "'decision'"),
    ("plan", {"items": "all"}, "has to be a list"),
    ("plan", {"items": [{"text": "x", "state": "maybe"}]}, "open, doing, done or dropped"),
    ("plan", {"items": [{"id": "9", "state": "done"}], "change": True}, "needs a text"),
    ("plan", {"items": [{"id": "1", "text": "x"}, {"id": "1", "text": "y"}]}, "same id"),
    ("plan", {"items": [{"text": "x"}] * 201}, "at most 200"),
    ("recall", {"query": ""}, "'query'"),
    ("recall", {"query": "x", "limit": 99}, "at most 8"),
    ("read_entry", {"position": 0}, "at least 1"),
    ("read_entry", {"position": "1"}, "whole number"),
    ("read_entry", {"position": 10**30}, "is not there"),
    ("read_entry", {"position": 1}, "holds nothing that was said"),
]


@pytest.mark.parametrize(("name", "arguments", "why"), BAD)
def test_what_does_not_fit_is_refused_with_a_sentence_and_writes_nothing(
    name: str, arguments: dict[str, Any], why: str
) -> None:
    async def main(ground: Desk) -> None:
        await go(ground, [call(name, arguments), say("I see.")])
        ((outcome, text),) = await answers(ground)
        assert outcome == "failed"
        assert why in text
        assert await ground.whats(RUN, StatementMade, TallyChanged, PlanChanged, Recalled) == []
        await ground.check(RUN)

    run_async(main)


WORK = [
    calls(
        call("note", {"key": "gate", "value": "shut"}),
        call("pay", {"amount": 5}),
        call("tally", {"key": "paid", "operation": "add", "amount": 5}),
    ),
    calls(
        call("recall", {"query": "amount begin"}),
        call("tally", {"key": "paid", "operation": "add", "amount": 2}),
    ),
    call("plan", {"items": [{"text": "Rest"}]}),
    say("done"),
]  # fmt: skip
WRITTEN = (StatementMade, TallyChanged, PlanChanged, Recalled, ActionFinished)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 12))
def test_a_crash_at_a_commit_leaves_the_entries_of_a_book_call_exactly_once(number: int, moment: Any) -> None:
    async def main(ground: Desk) -> None:
        limits = Limits(snapshot_every=3)
        observers = (JsonFact("look", "never"),)
        seams = Seams(Dies(number, moment, "entries.append"))
        first = seams.agent(agent(WORK, book_tools=True, limits=limits, observers=observers))
        try:
            async with await start(
                seams.store(ground.store), first, "Begin.", run=RUN, clock=ground.clock, lease_ms=LEASE_MS
            ) as run:
                await run.finish()
        except Crash:
            ground.expire()
        if not (number == 1 and moment == "before"):
            summary = await again(ground, WORK, limits=limits, observers=observers)
        else:
            summary = await go(ground, WORK, limits=limits, observers=observers)
        assert summary.state == "finished"
        written = [
            (type(what).__name__, getattr(what, "key", getattr(what, "call", "")))
            for what in await ground.whats(RUN, *WRITTEN)
        ]
        assert sorted(written) == sorted(
            [
                ("StatementMade", "gate"),
                *[("TallyChanged", "paid")] * 2,
                ("PlanChanged", ""),
                ("Recalled", ""),
                *[("ActionFinished", name) for name in ("1.1", "1.2", "1.3", "2.1", "2.2", "3.1")],
            ]
        )
        assert learn_all(await ground.entries(RUN)).tallies["paid", ""].total == 7
        assert summary.repeated == 0
        await ground.check(RUN)

    run_async(main)


def test_p7_another_set_of_book_tools_is_another_agent() -> None:
    async def main(ground: Desk) -> None:
        script = [say("one"), call("note", {"key": "k", "value": 1}), say("two"), say("three")]
        await go(ground, script, book_tools=False)
        await again(ground, script, "More.", book_tools=["note"])
        await again(ground, script, "More.", book_tools=["note"])
        declared = await ground.whats(RUN, AgentDeclared)
        assert [sorted(set(each.contracts) & set(BOOK_TOOLS)) for each in declared] == [[], ["note"]]
        assert declared[1].contracts["note"].startswith("book-")
        assert len(await ground.whats(RUN, EpochOpened)) == 2
        await ground.check(RUN)

    run_async(main)


def test_a3_a_book_call_left_open_is_not_kept_by_an_agent_without_that_tool() -> None:
    async def main(ground: Desk) -> None:
        script = [calls(call("note", {"key": "k", "value": 1}), call("look", {"place": "A"})), say("done")]
        seams = Seams(Dies(1, "before", "tool.look"))
        first = seams.agent(agent(script, book_tools=True))
        with pytest.raises(Crash):
            async with await start(
                seams.store(ground.store), first, "Begin.", run=RUN, clock=ground.clock, lease_ms=LEASE_MS
            ) as run:
                await run.finish()
        ground.expire()
        await again(ground, script, book_tools=False)
        assert len(await ground.whats(RUN, StatementMade)) == 1
        await ground.check(RUN)

    run_async(main)


def test_book_tools_are_off_unless_they_are_named_and_their_names_are_taken() -> None:
    assert agent([]).own_book == ()
    assert [each.name for each in agent([], book_tools="tally").own_book] == ["tally"]
    assert len(agent([], book_tools=True).all_tools) == 3 + len(BOOK_TOOLS)
    with pytest.raises(AgentMistake, match="no book tool 'rule'"):
        agent([], book_tools=["rule"])

    @tool(repeat="safe")
    async def note(text: str) -> str:
        """Mine."""
        return text

    with pytest.raises(AgentMistake, match="so is a book tool"):
        agent([], tools=(note,), book_tools=True)
    assert agent([], tools=(note,), book_tools=["tally"]).own_book
    with pytest.raises(AgentMistake, match="A rule cannot be set"):
        agent([], rules={"a\nb": "x"})
    with pytest.raises(AgentMistake, match="has no text"):
        agent([], rules={"a": " "})


def test_verify_tells_a_book_call_that_was_started_and_a_plain_call_that_was_not() -> None:
    """A tool that is merely called like a book tool gets no leave."""

    async def main(ground: Desk) -> None:
        await go(ground, [call("note", {"key": "k", "value": 1}), say("done")])
        entries = await ground.entries(RUN)
        assert [fault for state in [Conduct(RUN)] for entry in entries for fault in state.take(entry)] == []
        plain = [
            entry
            if not isinstance(entry.what, AgentDeclared)
            else type(entry)(
                entry.position,
                entry.at_ms,
                entry.epoch,
                AgentDeclared(**{**fields(entry.what), "contracts": {"note": "0" * 16}}),
            )
            for entry in entries
        ]
        told = [fault for state in [Conduct(RUN)] for entry in plain for fault in state.take(entry)]
        assert told == ["Call '1.1' is done, but was never started."]

    run_async(main)


def fields(what: Any) -> dict[str, Any]:
    return {name: getattr(what, name) for name in type(what).__dataclass_fields__}


def test_a_snapshot_keeps_what_is_known() -> None:
    async def main(ground: Desk) -> None:
        script = [
            *(call("tally", {"key": "n", "operation": "add", "amount": n}) for n in range(1, 10)),
            say("one"),
            call("tally", {"key": "n", "operation": "add", "amount": 100}),
            say("two"),
        ]
        limits = Limits(snapshot_every=2)
        await go(ground, script, limits=limits)
        await again(ground, script, "More.", limits=limits)
        assert (await answers(ground))[-1][1].startswith("n: 145 now")
        assert len(await ground.whats(RUN, ModelAsked)) == 12
        await ground.check(RUN)

    run_async(main)


def test_calls_of_book_tools_hold_what_the_model_wrote() -> None:
    async def main(ground: Desk) -> None:
        arguments = {"key": "n", "operation": "add", "amount": 1}
        await go(ground, [call("tally", arguments), say("done")])
        (reply, _) = await ground.whats(RUN, ModelAnswered)
        (asked,) = [part for part in reply.parts if isinstance(part, Call)]
        assert canonical.encode(dict(asked.arguments or {})) == canonical.encode(arguments)

    run_async(main)
