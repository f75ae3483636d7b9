"""Reading in the book: every handle resolves, recall gives words back and says which."""

from __future__ import annotations

from typing import Any

import pytest

from shiftbook.entries import (
    ActionFinished,
    Recalled,
)
from shiftbook.providers.scripted import call, calls, say
from shiftbook.run.loop import start
from shiftbook.testing.crash import Crash, Dies, Seams
from shiftbook.tools.function import tool
from tests.run.book import RUN, again, answers, go
from tests.run.desk import LEASE_MS, Desk, agent, run_async, said


@pytest.mark.parametrize("reading", ["recall", "read_entry"])
def test_a4_a_paid_reply_is_on_record_before_the_journal_is_read_for_it(reading: str) -> None:
    async def main(ground: Desk) -> None:
        asked: list[int] = []

        def script(request: Any) -> Any:
            asked.append(request.turn)
            if request.turn == 1:
                return call(reading, {"query": "begin"} if reading == "recall" else {"position": 3})
            return say("done")

        seams = Seams(Dies(1, "before", "entries.read"))
        first = seams.agent(agent(script, book_tools=True))
        with pytest.raises(Crash):
            async with await start(
                seams.store(ground.store), first, "Begin.", run=RUN, clock=ground.clock, lease_ms=LEASE_MS
            ) as run:
                await run.finish()
        ground.expire()
        await again(ground, script)
        assert asked == [1, 2]
        ((outcome, text),) = await answers(ground)
        assert outcome == "done"
        assert text.endswith("Begin.")
        await ground.check(RUN)

    run_async(main)


def test_h4_every_entry_that_a_prompt_names_can_be_read_whole_and_in_slices() -> None:
    @tool(repeat="safe")
    async def big() -> str:
        """Return much."""
        return "".join(f"line {n}: {n * 7919 % 1000}\n" for n in range(3_000))

    async def main(ground: Desk) -> None:
        whole = await big.run({}, None)  # type: ignore[arg-type]
        text = whole.content[0].text  # type: ignore[union-attr]
        cut_at: list[int] = []

        def script(request: Any) -> Any:
            if request.turn == 1:
                return call("big")
            if request.turn == 2:
                named = "; the whole is entry "
                (cut,) = [words for words in said(request) if named in words]
                at = int(cut.partition(named)[2].split()[0])
                cut_at.append(at)
                return calls(
                    call("read_entry", {"position": at, "from_char": 100, "chars": 300}),
                    call("read_entry", {"position": at}),
                    call("read_entry", {"position": at, "from_char": len(text) - 5}),
                    call("read_entry", {"position": at, "from_char": len(text)}),
                )
            return say("Done.")

        await go(ground, script, tools=(big,), policy="window", cap=9_000)
        told = await answers(ground)
        assert told[1] == (
            "done",
            f"[Entry {cut_at[0]}, characters 100 to 400 of {len(text)}:]\n{text[100:400]}",
        )
        assert told[2][1].partition("\n")[2] == text[:20_000]
        assert told[3][1].partition("\n")[2] == text[-5:]
        assert told[4][0] == "failed"
        assert f"has {len(text)} characters; there are none from {len(text)} on." in told[4][1]
        await ground.check(RUN)

    run_async(main)


def test_recall_brings_older_entries_back_word_for_word_and_writes_down_which() -> None:
    async def main(ground: Desk) -> None:
        script = [
            call("look", {"place": "cellar"}),
            say("Twelve crates in the cellar."),
            call("recall", {"query": "CRATES, cellar!", "limit": 2}),
            say("Done."),
            call("recall", {"query": "zebra"}),
            call("recall", {"query": "crates cellar", "limit": 2}),
            say("Done."),
        ]
        await go(ground, script, "Count what is in the cellar.")
        await again(ground, script, "And now?")
        await again(ground, script, "Once more?")
        found = await ground.whats(RUN, Recalled)
        entries = await ground.entries(RUN)
        texts = [[entries[at - 1].kind for at in each.found] for each in found]
        assert texts == [["ActionFinished", "ModelAnswered"], [], ["ActionFinished", "ModelAnswered"]]
        assert found[0].found == found[2].found
        (words, none, _) = (await ground.whats(RUN, ActionFinished))[1:]
        assert words.content[0].text.endswith("answer to call 1.1, done:]\n> cellar: 12 crates")
        assert words.content[1].text.endswith("the model replied:]\nTwelve crates in the cellar.")
        assert none.content[0].text == "No entry of this run holds that."
        await ground.check(RUN)

    run_async(main)
