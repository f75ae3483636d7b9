"""Reports by a model in a run: through the warm prompt, checked line by line, and by rule when it fails."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from shiftbook.entries import (
    EpochOpened,
    LimitReached,
    LineStruck,
    ModelAsked,
    PersonSaid,
    ReportAnswered,
    ReportAsked,
    ReportFailed,
    ReportWritten,
    Warned,
)
from shiftbook.errors import AgentMistake
from shiftbook.messages import Reasoning, Reply, Request, Usage
from shiftbook.policies.cold import TTL_MS
from shiftbook.prompt.report import MECHANICAL
from shiftbook.providers.scripted import Scripted, Step, fails, hangs, say
from shiftbook.run.limits import Limits
from shiftbook.run.loop import resume, start
from shiftbook.run.mail import post
from shiftbook.testing.crash import Crash, Dies, Seams
from shiftbook.testing.validator import check_request
from shiftbook.views import run_figures, standing_of
from tests.run.book import RUN, again, go
from tests.run.desk import LEASE_MS, Desk, agent, run_async
from tests.run.reports import SMALL, faithful, read, script, writes

TOOLS = {**SMALL, "tools": (read,)}


class Writer:
    """A model for reports that remembers what it was asked."""

    def __init__(self, answer: Any = faithful) -> None:
        self.requests: list[Request] = []
        self._answer = answer

    def __call__(self, request: Request) -> Step:
        self.requests.append(request)
        step: Step = self._answer(request)
        return step


def test_a_report_extends_the_prompt_as_it_was_sent_and_nothing_else_changes() -> None:
    """I3, I4: what a provider has in its cache is the request but for its last block."""

    async def main(ground: Desk) -> None:
        sent: list[Request] = []
        writer = Writer()

        def answer(request: Request) -> Step:
            sent.append(request)
            return writer(request)

        steps = script(40)

        def turn(request: Request) -> Step:
            if request.purpose == "report":
                return answer(request)
            sent.append(request)
            step: Step = steps[request.turn - 1]
            return step

        await go(ground, turn, **TOOLS)
        assert len(writer.requests) > 3
        for before, asked in pairwise(sent):
            if asked.purpose != "report":
                continue
            assert list(asked.blocks[:-1]) == list(before.blocks)
            assert (asked.instructions, asked.tools, asked.parameters, asked.model) == (
                before.instructions,
                before.tools,
                before.parameters,
                before.model,
            )
            assert asked.marks[-1] == len(before.blocks), "the end of the request before is a direct hit"
        await ground.check(RUN)

    run_async(main)


def test_its_lines_stand_and_cite_and_the_cap_holds_for_its_request_too() -> None:
    """P2 for the report's own request, answer included; H14: it is told as an account by that model."""

    async def main(ground: Desk) -> None:
        await go(ground, writes(Writer(), script(60)), **TOOLS)
        written = await ground.whats(RUN, ReportWritten)
        assert len(written) > 4
        assert {each.writer for each in written} == {"scripted"}
        for each in written:
            assert all(line.text.startswith("Page ") for line in each.lines)
        asked = await ground.whats(RUN, ReportAsked)
        opened = (await ground.whats(RUN, EpochOpened))[1:]
        assert len(asked) == len(written) == len(opened)
        for request in asked:
            assert request.tokens + request.chars // 4 <= 6_000
        exact = [each for each in await ground.whats(RUN, ModelAsked) if each.meter != "bytes"]
        assert all(each.tokens <= 6_000 - opened[0].numbers["kept_free"] for each in exact)
        assert {each.numbers["cap"] for each in opened} == {6_000}
        assert await ground.whats(RUN, LineStruck, Warned) == []
        figures = await run_figures(ground.store, RUN)
        assert figures["prompt_tokens"]["max"] == max(each.tokens for each in asked)
        await ground.check(RUN)

    run_async(main)


def test_a_provider_that_comes_back_writes_the_report_after_all() -> None:
    """W2: attempts are entries, the wait doubles, and the report is paid for once."""

    async def main(ground: Desk) -> None:
        def flaky(request: Request) -> Step:
            return fails(status=529, times=2, then=faithful(request))

        await go(ground, writes(flaky, script(16)), **TOOLS)
        (asked,) = await ground.whats(RUN, ReportAsked)
        assert [each.attempt for each in await ground.whats(RUN, ReportFailed)] == [1, 2]
        assert [each.attempt for each in await ground.whats(RUN, ReportAnswered)] == [3]
        assert [each.writer for each in await ground.whats(RUN, ReportWritten)] == [asked.model]
        await ground.check(RUN)

    run_async(main)


def test_a_persons_words_are_told_by_rule_also_beside_a_models_lines() -> None:
    """H14: nobody's paraphrase takes the place of what a person said."""

    async def main(ground: Desk) -> None:
        words = "Please mind gate {}, " + "and the rest of the yard too " * 60
        steps = script(60)
        wide = TOOLS | {"cap": 10_000, "mark": 6_000}
        async with await start(
            ground.store,
            agent(writes(Writer(), steps), book_tools=True, **wide),
            "Begin.",
            run=RUN,
            clock=ground.clock,
        ) as run:
            for gate in range(7):
                await run.say(words.format(gate))
            await run.finish()
        told = [
            each.writer
            for each in await ground.whats(RUN, ReportWritten)
            if any("Please mind gate " in line.text for line in each.lines)
        ]
        assert "scripted" in told
        await ground.check(RUN)

    run_async(main)


@pytest.mark.parametrize("moment", ["before", "inside", "after"])
def test_a4_a_report_that_is_in_the_journal_is_never_asked_for_again(moment: Any) -> None:
    """Die at each await of the model and the store around the first report, and resume."""

    async def main(ground: Desk) -> None:
        asked: list[tuple[int, int]] = []

        def counts(request: Request) -> Step:
            asked.append((request.turn, request.attempt))
            return faithful(request)

        made = agent(writes(counts, script(14)), book_tools=True, limits=Limits(snapshot_every=1), **TOOLS)
        at = 0
        while True:
            at += 1
            run = f"{RUN}{at}"
            asked.clear()
            seams = Seams(Dies(at, moment, "entries.append" if moment != "inside" else "model"))
            try:
                async with await start(
                    seams.store(ground.store),
                    seams.agent(made),
                    "Begin.",
                    run=run,
                    clock=ground.clock,
                    lease_ms=LEASE_MS,
                ) as handle:
                    await handle.finish()
            except Crash:
                pass
            else:
                assert at > 10
                break
            paid = len(asked)
            in_journal = len(await ground.whats(run, ReportAnswered)) if await _exists(ground, run) else 0
            ground.expire()
            async with await _taken_up(ground, run, made) as handle:
                assert (await handle.finish()).state == "finished"
            assert len(asked) <= paid + 1 - in_journal
            assert len(await ground.whats(run, ReportAnswered)) == 1
            assert [each.writer for each in await ground.whats(run, ReportWritten)] == ["scripted"]
            await ground.check(run)

    run_async(main)


async def _exists(ground: Desk, run: str) -> bool:
    return (await ground.store.entries.head(run)).position > 0


async def _taken_up(ground: Desk, run: str, made: Any) -> Any:
    if await _exists(ground, run):
        return await resume(ground.store, run, made, clock=ground.clock, lease_ms=LEASE_MS)
    return await start(ground.store, made, "Begin.", run=run, clock=ground.clock, lease_ms=LEASE_MS)


def test_mail_that_comes_during_a_report_is_in_the_next_prompt() -> None:
    async def main(ground: Desk) -> None:
        handles: list[Any] = []
        steps = script(16)

        class Slow(Scripted):
            async def reply(self, request: Request, emit: Any) -> Any:
                if request.purpose == "report" and not handles:
                    handles.append(await post(ground.store, RUN, "Mind gate 7.", clock=ground.clock))
                return await super().reply(request, emit)

        made = replace(
            agent([], book_tools=True, **TOOLS), model=Slow(writes(Writer(), steps), check=check_request)
        )
        async with await start(ground.store, made, "Begin.", run=RUN, clock=ground.clock) as run:
            await run.finish()
        assert handles
        entries = await ground.entries(RUN)
        mail = [e.position for e in entries if isinstance(e.what, PersonSaid) and e.what.item == handles[0]]
        answered = [e.position for e in entries if isinstance(e.what, ReportAnswered)]
        opened = [e.position for e in entries if isinstance(e.what, EpochOpened)]
        assert len(mail) == len(answered) == 1, "the report was not paid for again"
        assert answered[0] < mail[0] < opened[1]
        await ground.check(RUN)

    run_async(main)


@pytest.mark.parametrize("wish", ["stop", "cancel"])
def test_a_person_cuts_a_report_short(wish: str) -> None:
    async def main(ground: Desk) -> None:
        begun = asyncio.Event()
        tries: list[int] = []

        def hanging(request: Request) -> Step:
            tries.append(request.attempt)
            begun.set()
            return hangs(part='[{"text": "Page', then=faithful(request))

        made = agent(writes(hanging, script(16)), book_tools=True, **TOOLS)
        async with await start(ground.store, made, "Begin.", run=RUN, clock=ground.clock) as run:
            work = asyncio.ensure_future(run.finish())
            await begun.wait()
            for _ in range(20):
                await asyncio.sleep(0)
            getattr(run, wish)()
            summary = await work
            assert summary.state == ("paused" if wish == "stop" else "cancelled")
            await ground.check(RUN)
            await run.say("Go on.")
            assert (await run.finish()).state == "finished"
        (written,) = await ground.whats(RUN, ReportWritten)
        assert written.writer == ("scripted" if wish == "stop" else MECHANICAL)
        parts = [each.part for each in await ground.whats(RUN, ReportFailed)]
        assert '[{"text": "Page' in parts, "what was paid for is on record"
        await ground.check(RUN)

    run_async(main)


def test_what_a_report_took_counts_towards_the_limit_of_tokens() -> None:
    async def main(ground: Desk) -> None:
        def dear(request: Request) -> Step:
            reply = faithful(request)
            assert isinstance(reply, Reply)
            return replace(reply, usage=Usage(uncached=10**9, output=1))

        summary = await go(ground, writes(dear, script(16)), limits=Limits(tokens=10**8), **TOOLS)
        assert (summary.state, summary.why) == ("limited", "tokens")
        (reached,) = await ground.whats(RUN, LimitReached)
        assert reached.value > 10**9
        assert (await standing_of(ground.store, RUN)).used.uncached > 10**9  # type: ignore[operator]
        summary = await again(ground, writes(dear, script(16)), **TOOLS)
        assert len(await ground.whats(RUN, ReportAnswered)) == 1, "it was paid for, and is used"
        await ground.check(RUN)

    run_async(main)


def test_a_cold_cache_or_another_agent_is_no_reason_to_pay_for_a_report() -> None:
    """I3, I8: a request that nothing of is in the cache is not made."""

    async def main(ground: Desk) -> None:
        small = TOOLS | {"cap": 9_000}
        await go(ground, writes(Writer(), script(16)), **small)
        ground.clock.advance(TTL_MS + 1)
        writer = Writer()
        await again(ground, writes(writer, [*script(16), say("Good morning.")]), "Good morning.", **small)
        assert writer.requests == []
        (warned,) = await ground.whats(RUN, Warned)
        assert "gone cold" in warned.detail
        assert [each.writer for each in await ground.whats(RUN, ReportWritten)] == [MECHANICAL]
        await ground.check(RUN)

    run_async(main)


@pytest.mark.parametrize("window", [1_200, 2_500, 1_000_000])
def test_h7_h15_a_report_model_of_its_own_is_asked_in_parts_that_fit_its_window(window: int) -> None:
    """Its window may be far below the agent's cap, or far above; the report's input is twice the smallest."""

    async def main(ground: Desk) -> None:
        writer = Writer()
        scribe = Scripted(writer, "scribe", check=check_request)
        changes = TOOLS | {"report": scribe, "report_window": window}
        await go(ground, script(40), **changes)
        asked = await ground.whats(RUN, ReportAsked)
        assert all(each.tokens <= window for each in asked)
        written = await ground.whats(RUN, ReportWritten)
        assert {each.writer for each in written} == {"scribe"}
        assert len(asked) > len(written) if window < 3_000 else len(asked) == len(written)
        for request in writer.requests:
            assert request.tools == ()
            assert request.model == "scribe"
        assert all(not each.extends for each in asked)
        await ground.check(RUN)

    run_async(main)


def test_a_window_too_small_for_any_request_is_told() -> None:
    async def main(ground: Desk) -> None:
        writer = Writer()
        await go(ground, script(16), **(TOOLS | {"report": Scripted(writer, "scribe"), "report_window": 200}))
        assert writer.requests == []
        (warned,) = await ground.whats(RUN, Warned)
        assert "window of 200 tokens" in warned.detail

    run_async(main)


@pytest.mark.parametrize("given", ["rule", "", None, 7])
def test_a_writer_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(AgentMistake, match="Reports cannot be written by"):
        agent([], report=given)


def test_j2_no_reasoning_crosses_a_rebuild_by_a_models_report() -> None:
    """What the request for a report holds is the epoch's own; the next epoch holds none of it."""

    async def main(ground: Desk) -> None:
        def thinking(request: Request) -> Step:
            reply = script(40)[request.turn - 1] if request.purpose == "turn" else faithful(request)
            assert isinstance(reply, Reply)
            parts = (Reasoning(f"thought {request.turn}", {"sig": request.turn}), *reply.parts)
            return Reply(parts, reply.stop)

        seen: list[tuple[str, int, list[int]]] = []

        def check(request: Request) -> Step:
            thoughts = [
                part.opaque["sig"]
                for block in request.blocks
                for part in block.parts
                if isinstance(part, Reasoning)
            ]
            seen.append((request.purpose, request.turn, thoughts))
            return thinking(request)

        await go(ground, check, **TOOLS)
        reports = [n for n, (purpose, _, _) in enumerate(seen) if purpose == "report"]
        assert len(reports) > 2
        for n in reports:
            assert seen[n][2] == seen[n - 1][2], "verbatim in the report's request"
            assert seen[n + 1][2] == [], "and none after the rebuild"
        await ground.check(RUN)

    run_async(main)
