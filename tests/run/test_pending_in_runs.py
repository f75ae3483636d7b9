"""What is open stands in the briefs of a run: over a death, 200 turns and rebuilds, until it is settled."""

from __future__ import annotations

from typing import Any

import pytest

from shiftbook.entries import ActionFinished, EpochOpened, StatementMade
from shiftbook.messages import Request, Text
from shiftbook.providers.scripted import Step, call, say
from shiftbook.testing.crash import Crash
from shiftbook.tools.function import tool
from tests.run.book import RUN, again, answers, go
from tests.run.desk import Desk, run_async
from tests.run.test_journal_prompt import read


@tool(repeat="ask")
async def charge(amount: int) -> str:
    """Charge the customer; the process dies of it."""
    raise Crash("in the middle of a charge")


SMALL: dict[str, Any] = {"policy": "journal", "cap": 6_000, "mark": 2_800, "tools": (read, charge)}
TURNS = 200


def told(request: Request) -> str:
    """The section of what is open, "" where there is none."""
    texts = [
        part.text for b in request.blocks if b.kind == "pending" for part in b.parts if type(part) is Text
    ]
    return "\n".join(texts)


def test_a_call_of_unknown_outcome_is_in_every_brief_two_hundred_turns_later_until_it_is_settled() -> None:
    async def main(ground: Desk) -> None:
        sections: list[str] = []
        unknown_at = 0

        def script(request: Request) -> Step:
            sections.append(told(request))
            if request.turn == 1:
                return call("charge", {"amount": 7})
            if request.turn == TURNS:
                return call("note", {"key": "charge", "value": "went through", "settles": unknown_at})
            return say("Read.") if request.turn == TURNS + 40 else call("read", {"number": request.turn})

        with pytest.raises(Crash):
            await go(ground, script, "Charge seven, then read.", **SMALL)
        ground.expire()
        unknown_at = 1 + len(await ground.entries(RUN))
        await again(ground, script, **SMALL)
        entries = await ground.entries(RUN)
        unknown_at = next(
            e.position for e in entries if isinstance(e.what, ActionFinished) and e.what.outcome == "unknown"
        )
        line = ', outcome unknown: call 1.1 of charge (amount "7")'
        rebuilt = [each for each in sections[:TURNS] if each]
        assert len(rebuilt) > TURNS // 2
        assert all(
            line in each and f"- entry {unknown_at}, " in each and '"Charge seven, then read."' in each
            for each in rebuilt
        )
        assert not any("key" in each.split("\n")[-1] for each in rebuilt)
        (settled,) = await ground.whats(RUN, StatementMade)
        assert settled.sources[1:] == (unknown_at,)
        assert "outcome unknown" not in sections[-1]
        assert '"Charge seven, then read."' in sections[-1]
        numbers = [each.numbers for each in await ground.whats(RUN, EpochOpened)][1:]
        assert all(each["pending"] > 0 for each in numbers)
        await ground.check(RUN)

    run_async(main)


def test_only_a_call_of_unknown_outcome_can_be_settled() -> None:
    async def main(ground: Desk) -> None:
        script = [call("note", {"key": "k", "value": 1, "settles": 3}), say("Done.")]
        await go(ground, script, **SMALL)
        ((outcome, text),) = await answers(ground)
        assert outcome == "failed"
        assert "entry 3 is no open call of unknown outcome; those are: none. Nothing was done." in text
        assert await ground.whats(RUN, StatementMade) == []

    run_async(main)
