"""The journal prompt in a run: epochs, reports and what stands, over crashes, mail and other processes."""

from __future__ import annotations

from typing import Any

import pytest

from shiftbook.entries import EpochOpened, ModelAnswered, ModelAsked, PersonSaid, ReportWritten
from shiftbook.errors import AgentMistake
from shiftbook.messages import Text
from shiftbook.policies import registry
from shiftbook.policies.cold import TTL_MS
from shiftbook.policies.transcript import Transcript
from shiftbook.prompt.epoch import WantReport
from shiftbook.providers.scripted import call, say
from shiftbook.run.limits import Limits
from shiftbook.run.loop import resume, start
from shiftbook.run.mail import post
from shiftbook.testing.crash import Crash, Dies, Seams
from shiftbook.tools.function import tool
from tests.run.book import RUN, again, go
from tests.run.desk import LEASE_MS, Desk, agent, run_async

LONG = 60


@tool(repeat="safe")
async def read(number: int) -> str:
    """Read a page."""
    return f"page {number} of book-{number}: " + "some words of it " * LONG


def script(turns: int) -> list[Any]:
    steps: list[Any] = []
    for number in range(turns):
        steps.append(call("read", {"number": number}))
        if number % 5 == 0:
            steps.append(call("tally", {"key": "pages", "operation": "add", "amount": number}))
    return [*steps, say("Read.")]


SMALL: dict[str, Any] = {"policy": "journal", "cap": 6_000, "mark": 2_800, "tools": (read,)}


def test_a_run_over_many_epochs_verifies_and_tells_what_stands() -> None:
    async def main(ground: Desk) -> None:
        await go(ground, script(60), **SMALL)
        opened = await ground.whats(RUN, EpochOpened)
        assert len(opened) > 5
        assert {each.reason for each in opened} == {"start", "the cap is near"}
        assert len(await ground.whats(RUN, ReportWritten)) == len(opened) - 1
        assert all(asked.tokens <= 6_000 for asked in await ground.whats(RUN, ModelAsked))
        for each in opened[1:]:
            assert "tallies" in {pick.form for pick in each.blocks}
            assert each.numbers["tokens_after"] <= 2_800
        await ground.check(RUN)

    run_async(main)


def test_a_report_is_committed_with_the_epoch_that_shows_it() -> None:
    """C10: a commit that fails leaves neither of the two."""

    async def main(ground: Desk) -> None:
        await go(ground, script(60), **SMALL)
        entries = await ground.entries(RUN)
        reports = [entry for entry in entries if isinstance(entry.what, ReportWritten)]
        assert len(reports) > 2
        for report in reports:
            opened = next(e for e in entries[report.position :] if e.kind != "LineStruck")
            assert isinstance(opened.what, EpochOpened)
            assert report.position in {pick.first for pick in opened.what.blocks}

    run_async(main)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("every", [1, 3, 1_000])
def test_i8_processes_that_die_again_and_again_leave_a_run_that_verifies(every: int, moment: Any) -> None:
    async def main(ground: Desk) -> None:
        made = agent(script(40), book_tools=True, limits=Limits(snapshot_every=every), **SMALL)
        seams = Seams(Dies(16, moment, "entries.append"))
        with pytest.raises(Crash):
            async with await start(
                seams.store(ground.store), made, "Begin.", run=RUN, clock=ground.clock, lease_ms=LEASE_MS
            ) as run:
                await run.finish()
        for number in range(8):
            ground.expire()
            seams = Seams(Dies(4 + number % 2, moment, "entries.append"))
            with pytest.raises(Crash):
                async with await resume(
                    seams.store(ground.store), RUN, made, clock=ground.clock, lease_ms=LEASE_MS
                ) as run:
                    await run.finish()
        ground.expire()
        async with await resume(ground.store, RUN, made, clock=ground.clock) as run:
            assert (await run.finish()).state == "finished"
        assert len(await ground.whats(RUN, EpochOpened)) > 2
        assert len(await ground.whats(RUN, ModelAnswered)) == len(script(40))
        await ground.check(RUN)

    run_async(main)


def test_a_long_wait_is_known_to_the_next_process() -> None:
    """The cache is cold after a night, whoever takes the run up in the morning."""

    async def main(ground: Desk) -> None:
        small = SMALL | {"cap": 9_000}
        await go(ground, script(18), **small)
        before = len(await ground.whats(RUN, EpochOpened))
        assert (await ground.whats(RUN, ModelAsked))[-1].tokens > 2 * 2_800
        ground.clock.advance(TTL_MS + 1)
        await again(ground, [*script(18), say("Good morning.")], "Good morning.", **small)
        opened = (await ground.whats(RUN, EpochOpened))[before:]
        assert [each.reason for each in opened] == ["the cache is cold"]
        assert opened[0].numbers["gap_ms"] > TTL_MS
        await ground.check(RUN)

    run_async(main)


def test_mail_that_comes_with_a_rebuild_is_in_it_and_the_report_is_used() -> None:
    async def main(ground: Desk) -> None:
        posted: list[bool] = []

        async with await start(
            ground.store, agent(script(30), book_tools=True, **SMALL), "Begin.", run=RUN, clock=ground.clock
        ) as run:
            book = run._desk.book
            commit = book.store.entries.append

            async def append(made: Any) -> Any:
                if made.if_no_mail and not posted and len(await ground.whats(RUN, EpochOpened)) == 2:
                    rows = [row.kind for row in made.rows]
                    if "EpochOpened" in rows:
                        posted.append(True)
                        await post(ground.store, RUN, "Wait, one more thing.", clock=ground.clock)
                return await commit(made)

            book.store.entries.append = append  # type: ignore[assignment]
            try:
                await run.finish()
            finally:
                book.store.entries.append = commit  # type: ignore[method-assign]
        assert posted
        opened = await ground.whats(RUN, EpochOpened)
        assert len(await ground.whats(RUN, ReportWritten)) == len(opened) - 1
        said = [
            w for w in await ground.whats(RUN, PersonSaid) if w.content == (Text("Wait, one more thing."),)
        ]
        assert len(said) == 1
        await ground.check(RUN)

    run_async(main)


class Insatiable(Transcript):
    """Asks for a report and never uses it."""

    def choose(self, prompt: Any, fresh: Any, budget: Any) -> Any:
        return WantReport(3, 3, tuple(e for e in fresh if e.position == 3), None, 500)


def test_a_policy_that_asks_for_reports_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.POLICIES, "insatiable", Insatiable)

    async def main(ground: Desk) -> None:
        with pytest.raises(AgentMistake, match="one thing after another"):
            await go(ground, [say("never")], policy="insatiable")

    run_async(main)
