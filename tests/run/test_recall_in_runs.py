"""Recall in a run: what a message asks about comes back, as entries that `verify` makes again."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from shiftbook.entries import EpochOpened, ModelAsked, Recalled, Warned
from shiftbook.journal.open import open_index, open_store
from shiftbook.journal.sqlite_index import SUFFIX
from shiftbook.providers.scripted import call, say
from shiftbook.run.agent import Agent
from shiftbook.run.indexing import FILL_LAG, RunIndex
from shiftbook.run.limits import Limits
from shiftbook.run.loop import resume, start
from shiftbook.run.mail import post
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.crash import Crash, Dies, Seams
from shiftbook.tools.function import tool
from shiftbook.views import explain_view
from tests.run.book import RUN
from tests.run.desk import Desk, agent, run_async, said

CHAT: dict[str, Any] = {"policy": "journal", "cap": 3_000, "mark": 1_400, "tools": (), "book_tools": False}
CHAT |= {"recall_point": 900}
SECRET = "The kestrel boat lies at pier seventeen."
QUESTION = "Where does the kestrel boat lie?"


def chatter(number: int) -> str:
    return f"Yard {number} has {number * 7} crates of salt, and the gate is painted green. " * 8


async def talk(ground: Desk, seen: list[list[str]], turns: int = 40, **changes: Any) -> None:
    """A chat that says something once, then other things for long, and then asks about it."""

    def answer(request: Any) -> Any:
        seen.append(list(said(request)))
        return say("Noted.")

    values = CHAT | {"conversational": True} | changes
    async with await start(ground.store, agent(answer, **values), SECRET, run=RUN, clock=ground.clock) as run:
        await run.finish()
        for number in range(turns):
            await run.say(chatter(number))
            await run.finish()
        await run.say(QUESTION)
        await run.finish()


def listening(seen: list[list[str]]) -> Agent:
    """Who answers the same to all, and keeps what was sent."""

    def answer(request: Any) -> Any:
        seen.append(list(said(request)))
        return say("Noted.")

    return agent(answer, **(CHAT | {"conversational": True}))


def told_back(texts: list[str]) -> bool:
    return any(text.startswith("[") and text.endswith(f":]\n{SECRET}") for text in texts)


def test_what_a_message_asks_about_comes_back_word_for_word_before_it() -> None:
    async def main(ground: Desk) -> None:
        seen: list[list[str]] = []
        await talk(ground, seen)
        assert told_back(seen[-1])
        assert seen[-1][-1] == QUESTION
        entries = await ground.entries(RUN)
        (back,) = [e for e in entries if isinstance(e.what, Recalled)][-1:]
        assert isinstance(back.what, Recalled)
        assert (back.what.asked_by, back.what.query) == ("message", QUESTION)
        asked = next(e for e in entries if isinstance(e.what, ModelAsked) and e.position > back.position)
        assert asked.position - back.position <= 3, "it is committed with the request that shows it"
        assert all(each.tokens <= 3_000 for each in await ground.whats(RUN, ModelAsked))
        await ground.check(RUN)

    run_async(main)


def test_a_resume_from_a_snapshot_reads_what_was_brought_back_since() -> None:
    async def main(ground: Desk) -> None:
        await talk(ground, [], turns=30, limits=Limits(snapshot_every=25))
        values = CHAT | {"conversational": True, "limits": Limits(snapshot_every=25)}
        for number in range(12):
            scripted = agent(lambda request: say("Noted."), **values)
            async with await resume(
                ground.store, RUN, scripted, f"{QUESTION} {chatter(number)}", clock=ground.clock
            ) as run:
                assert (await run.finish()).state == "waiting"
        assert len(await ground.whats(RUN, Recalled)) > 6
        await ground.check(RUN)

    run_async(main)


def test_explain_names_what_was_brought_back_and_for_what() -> None:
    async def main(ground: Desk) -> None:
        await talk(ground, [])
        turns = len(await ground.whats(RUN, ModelAsked))
        view = await explain_view(ground.store, RUN, turns)
        *before, back = view["recalled"]
        assert (back["asked_by"], back["query"]) == ("message", QUESTION)
        blocks = [block for block in view["blocks"] if block["form"] == "recalled"]
        assert len(blocks) == back["shown"] + sum(each["shown"] for each in before)
        assert sum(block["tokens"] for block in blocks[-back["shown"] :]) <= back["room"]
        assert all(left["why"] != "in no block of this prompt" for left in view["left_out"])

    run_async(main)


def test_an_agent_can_have_none_of_it() -> None:
    async def main(ground: Desk) -> None:
        seen: list[list[str]] = []
        await talk(ground, seen, recall_point=0, recall_set=0)
        assert not told_back(seen[-1])
        assert await ground.whats(RUN, Recalled) == []
        await ground.check(RUN)

    run_async(main)


@pytest.mark.parametrize(
    "words",
    ['kestrel") OR NEAR(* "', "\x00kestrel \udc88", "kestrel " + "x" * 9_000, "'; DROP TABLE units; --", "-"],
)
def test_h14_a_hostile_message_is_only_words_to_look_for(words: str) -> None:
    async def main(ground: Desk) -> None:
        values = CHAT | {"conversational": True}
        script = agent(lambda request: say("Noted."), **values)
        async with await start(ground.store, script, SECRET, run=RUN, clock=ground.clock) as run:
            await run.finish()
            for number in range(30):
                await run.say(chatter(number))
                await run.finish()
            await run.say(words)
            assert (await run.finish()).state == "waiting"
        assert await ground.whats(RUN, Recalled)
        await ground.check(RUN)

    run_async(main)


@tool(repeat="safe")
async def read(number: int) -> str:
    """Read a page."""
    return f"page {number} of book-{number % 3}: " + "some words of it " * 60


def pages(turns: int) -> list[Any]:
    return [*(call("read", {"number": number}) for number in range(turns)), say("Read.")]


WORK: dict[str, Any] = {"policy": "journal", "cap": 6_000, "mark": 2_800, "tools": (read,)}


def test_a_long_task_has_its_older_pages_brought_back_at_rebuilds_below_the_mark() -> None:
    async def main(ground: Desk) -> None:
        async with await start(
            ground.store, agent(pages(60), **WORK), "Read.", run=RUN, clock=ground.clock
        ) as run:
            await run.finish()
        back = await ground.whats(RUN, Recalled)
        opened = (await ground.whats(RUN, EpochOpened))[1:]
        assert {each.asked_by for each in back} == {"rebuild"}
        assert any("recalled" in each.numbers for each in opened)
        assert all(each.numbers["tokens_after"] <= 2_800 for each in opened)
        await ground.check(RUN)

    run_async(main)


def test_mail_between_a_recall_and_its_request_has_its_own_recall() -> None:
    async def main(ground: Desk) -> None:
        seen: list[list[str]] = []
        values = CHAT | {"conversational": True}

        def answer(request: Any) -> Any:
            seen.append(list(said(request)))
            return say("Noted.")

        async with await start(
            ground.store, agent(answer, **values), SECRET, run=RUN, clock=ground.clock
        ) as run:
            await run.finish()
            for number in range(30):
                await run.say(chatter(number))
                await run.finish()
            append = run._desk.book.store.entries.append
            posted: list[bool] = []

            async def interrupted(made: Any) -> Any:
                if made.if_no_mail and not posted and any(row.kind == "Recalled" for row in made.rows):
                    posted.append(True)
                    await post(ground.store, RUN, QUESTION, clock=ground.clock)
                return await append(made)

            run._desk.book.store.entries.append = interrupted  # type: ignore[assignment]
            await run.say("Which yards have the most crates of salt?")
            await run.finish()
            run._desk.book.store.entries.append = append  # type: ignore[method-assign]
        assert posted
        assert told_back(seen[-1])
        await ground.check(RUN)

    run_async(main)


def test_a_process_that_dies_at_a_rebuild_leaves_a_recall_that_is_used_or_made_again() -> None:
    """The same prompts in the end, wherever in the last commits the process died."""

    async def main(ground: Desk) -> None:
        deaths = 0
        for at in range(60, 90):
            run_id = f"r{at}"
            seams = Seams(Dies(at, "after", "entries.append"))
            scripted = agent(pages(36), **WORK)
            try:
                async with await start(
                    seams.store(ground.store), seams.agent(scripted), "Read.", run=run_id, clock=ground.clock
                ) as run:
                    run._keeper = None
                    await run.finish()
            except Crash:
                deaths += 1
                ground.expire()
                async with await resume(ground.store, run_id, scripted, clock=ground.clock) as run:
                    assert (await run.finish()).state == "finished"
            await ground.check(run_id)
        assert deaths > 5

    run_async(main)


# --- the index -----------------------------------------------------------------------------------------


async def on_file(path: Path, work: Any) -> None:
    clock = SimulatedClock()
    store = await open_store(str(path), clock=clock)
    try:
        await work(Desk(store, clock))
    finally:
        await store.close()


def broken_from_the_start(file: Path) -> None:
    file.write_bytes(b"not a database of anybody's\n" * 400)


def of_another_program(file: Path) -> None:
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE mine (x)")
        other.execute("PRAGMA application_id = 77")
    other.close()


def a_folder(file: Path) -> None:
    file.mkdir()


@pytest.mark.parametrize("breaks", [broken_from_the_start, of_another_program, a_folder])
def test_a_broken_index_is_warned_of_once_and_costs_the_run_nothing(tmp_path: Path, breaks: Any) -> None:
    path = tmp_path / "journal.db"
    breaks(tmp_path / f"journal.db{SUFFIX}")

    async def work(ground: Desk) -> None:
        seen: list[list[str]] = []
        await talk(ground, seen)
        warned = [each for each in await ground.whats(RUN, Warned) if each.what == "search index unusable"]
        assert len(warned) == 1
        assert not told_back(seen[-1])
        await ground.check(RUN)

    asyncio.run(on_file(path, work))


def delete(folder: Path) -> None:
    for each in folder.glob(f"*{SUFFIX}*"):
        each.unlink()


def test_an_index_that_was_deleted_is_made_anew_by_the_next_process(tmp_path: Path) -> None:
    path, file = tmp_path / "journal.db", tmp_path / f"journal.db{SUFFIX}"

    async def work(ground: Desk) -> None:
        await talk(ground, [])
        assert file.exists()
        delete(tmp_path)
        seen: list[list[str]] = []
        scripted = listening(seen)
        async with await resume(ground.store, RUN, scripted, chatter(99), clock=ground.clock) as run:
            await run.finish()
            await run.say(QUESTION)
            await run.finish()
        assert file.exists()
        assert told_back(seen[-1])
        await ground.check(RUN)

    asyncio.run(on_file(path, work))


def without_a_table(file: Path) -> None:
    with sqlite3.connect(file) as other:
        other.execute("DROP TABLE units")
    other.close()


def of_mixed_up_values(file: Path) -> None:
    with sqlite3.connect(file) as other:
        other.execute("UPDATE units SET said_more = x'010203', done_more = x'01'")
    other.close()


@pytest.mark.parametrize("breaks", [without_a_table, of_mixed_up_values])
def test_a_damaged_index_is_made_anew_with_one_warning_and_the_run_goes_on_with_it(
    tmp_path: Path, breaks: Any
) -> None:
    path, file = tmp_path / "journal.db", tmp_path / f"journal.db{SUFFIX}"

    async def work(ground: Desk) -> None:
        await talk(ground, [])
        breaks(file)
        seen: list[list[str]] = []
        scripted = listening(seen)
        for number in (97, 98):
            async with await resume(ground.store, RUN, scripted, chatter(number), clock=ground.clock) as run:
                await run.finish()
                for more in range(8):
                    await run.say(chatter(more))
                    await run.finish()
                await run.say(QUESTION)
                await run.finish()
            assert told_back(seen[-1])
        warned = [each.what for each in await ground.whats(RUN, Warned)]
        assert [what for what in warned if "index" in what] == ["search index made anew"]
        await ground.check(RUN)

    asyncio.run(on_file(path, work))


@pytest.mark.parametrize("breaks", [without_a_table, of_mixed_up_values])
def test_an_index_that_is_damaged_while_it_is_open_is_made_anew(tmp_path: Path, breaks: Any) -> None:
    path, file = tmp_path / "journal.db", tmp_path / f"journal.db{SUFFIX}"

    async def work(ground: Desk) -> None:
        seen: list[list[str]] = []
        scripted = listening(seen)
        async with await start(ground.store, scripted, SECRET, run=RUN, clock=ground.clock) as run:
            await run.finish()
            for number in range(40):
                await run.say(chatter(number))
                await run.finish()
            breaks(file)
            await run.say(QUESTION)
            await run.finish()
        assert told_back(seen[-1])
        warned = [each.what for each in await ground.whats(RUN, Warned)]
        assert [what for what in warned if "index" in what] == ["search index made anew"]
        await ground.check(RUN)

    asyncio.run(on_file(path, work))


def test_the_index_is_filled_by_batches_and_no_sooner() -> None:
    async def main(ground: Desk) -> None:
        async with await start(
            ground.store, agent(pages(30), **WORK), "Read.", run=RUN, clock=ground.clock
        ) as run:
            await run.finish()
        warned: list[Any] = []
        opened: list[str] = []

        def opens(store: Any, *, anew: bool = False) -> Any:
            opened.append(store.name)
            return open_index(store, anew=anew)

        index = RunIndex(ground.store, RUN, lambda *why: warned.append(why), opens=opens)
        await index.keep_up(FILL_LAG - 1)
        assert opened == []
        last = len(await ground.entries(RUN))
        assert last > FILL_LAG
        await index.keep_up(last)
        assert opened == [":memory:"] or len(opened) == 1
        await index.keep_up(last + FILL_LAG - 1)
        assert len(opened) == 1
        await index.close()
        assert warned == []
        idle = RunIndex(ground.store, RUN, lambda *why: warned.append(why), is_wanted=False, opens=opens)
        await idle.keep_up(10_000)
        assert len(opened) == 1

    run_async(main)
