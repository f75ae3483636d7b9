"""A run with everything in its prompts that code decides: the same in every process that makes it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shiftbook.entries import ActionFinished, EpochOpened, LineStruck, ModelAsked, Recalled, ReportAnswered
from shiftbook.messages import Request
from shiftbook.providers.scripted import Step, call, say
from shiftbook.run.loop import resume, start
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.crash import Crash, Dies, Seams
from shiftbook.transfer import export_run, import_run
from shiftbook.verify import verify
from shiftbook.views import explain_view, prompt_view
from tests.exports import in_memory
from tests.run.book import RUN
from tests.run.desk import LEASE_MS, Desk, agent, mail
from tests.run.reports import SMALL, lines_of, pages, read, report

ROOT = Path(__file__).parents[2]
TURNS = 24


def answer(request: Request) -> Step:
    """A report with a figure that is not there; a mail first, then pages, notes and tallies by turns."""
    if request.purpose == "report":
        (at, page), *_ = pages(request)
        return report(
            (f"Page {page} holds {lines_of(page)} lines.", [at]),
            (f"Page {page} holds {lines_of(page) + 1} lines.", [at]),
        )
    number = request.turn
    if number == 1:
        return call("mail", {"to": "Ann"})
    if number >= TURNS:
        return say("Read.")
    if number % 6 == 0:
        return call("note", {"key": f"gate {number}", "value": f"seen-{number}"})
    if number % 7 == 0:
        return call("tally", {"key": "pages", "operation": "add", "amount": number})
    return call("read", {"number": number})


def lived(policy: str) -> list[str]:
    """The export of a run that was killed in its first action and has ended since."""

    async def main() -> list[str]:
        clock = SimulatedClock(7)
        async with in_memory(clock) as store:
            values = {
                **SMALL,
                "tools": (read, mail),
                "policy": policy,
                "recall_point": None,
                "recall_set": None,
            }
            made = agent(answer, book_tools=True, **values)
            ground = Desk(store, clock)
            try:
                dying = Seams(Dies(1, "before", "tool.mail")).agent(made)
                async with await start(
                    store, dying, "Write to Ann.", run=RUN, clock=clock, lease_ms=LEASE_MS
                ) as run:
                    await run.finish()
            except Crash:
                ground.expire()
            async with await resume(store, RUN, made, clock=clock) as run:
                await run.finish()
                await run.say("What did page 3 say?")
                await run.finish()
            kinds = {type(what) for what in await ground.whats(RUN)}
            assert {EpochOpened, ReportAnswered, LineStruck} <= kinds
            assert (Recalled in kinds) is (policy == "journal")
            assert "unknown" in {each.outcome for each in await ground.whats(RUN, ActionFinished)}
            return [line async for line in export_run(store, RUN)]

    return asyncio.run(main())


def told(lines: list[str]) -> list[str]:
    """What a process that imports the run tells of it: its prompts, and why they are as they are."""

    async def main() -> list[str]:
        async with in_memory() as store:
            await import_run(store, lines)
            verdict = await verify(store, RUN)
            assert verdict.ok, verdict.faults
            assert [line async for line in export_run(store, RUN)] == lines
            found: list[str] = []
            turns = len(await Desk(store, SimulatedClock()).whats(RUN, ModelAsked))
            for turn in range(turns, 0, -5):
                views = [await prompt_view(store, RUN, turn), await explain_view(store, RUN, turn)]
                found.append(hashlib.sha256(json.dumps(views).encode()).hexdigest())
            return found

    return asyncio.run(main())


def made_and_told(policy: str) -> str:
    """Both as one text."""
    lines = lived(policy)
    return json.dumps([hashlib.sha256("\n".join(lines).encode()).hexdigest(), told(lines)])


@pytest.mark.parametrize("policy", ["journal", "notes"])
def test_p1_p7_the_same_journal_and_the_same_prompts_in_other_processes(policy: str) -> None:
    here = made_and_told(policy)
    code = f"from tests.run.test_other_process import made_and_told; print(made_and_told({policy!r}))"
    for seed in ("0", "1") if policy == "journal" else ("random",):
        ran = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.strip() == here, f"PYTHONHASHSEED={seed}"
