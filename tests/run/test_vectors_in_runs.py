"""Vectors in a run: what shares no word comes back, and nothing about the record needs them afterwards."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from shiftbook import canonical
from shiftbook.entries import AgentDeclared, ModelAsked, Recalled, Warned
from shiftbook.errors import AgentMistake
from shiftbook.journal.sqlite_index import SUFFIX
from shiftbook.providers.scripted import say
from shiftbook.run.agent import declare
from shiftbook.run.indexing import SHORT, RunIndex
from shiftbook.run.loop import resume, start
from shiftbook.vectors.promise import Vectors
from shiftbook.views import prompt_view
from tests.journal.indexing import book, in_loop
from tests.journal.indexing import said as told
from tests.run.book import RUN
from tests.run.desk import Desk, agent, run_async, said
from tests.run.test_recall_in_runs import CHAT, chatter, on_file
from tests.vectors.made import Counted, vectors

SECRET = ("The boat lies at pier seventeen. " * 20).strip()
"""Long enough not to come back for next to nothing beside other things."""
QUESTION = "Which vessel do captains, sailors, pilots or harbourmasters seek?"
"""None of its words stands in the chat, and it says enough to be asked by these; in the table one is close to
the boat's."""

VALUES = CHAT | {"conversational": True}


def told_back(texts: list[str]) -> bool:
    return any(text.endswith(f":]\n{SECRET}") for text in texts)


async def talk(ground: Desk, made: Vectors | None, seen: list[list[str]], turns: int = 40) -> None:
    """A chat that says something once among other things, and asks about it at the end in other words."""

    first = listening(made, seen)
    async with await start(ground.store, first, chatter(99), run=RUN, clock=ground.clock) as run:
        await run.finish()
        for number in range(turns):
            await run.say(SECRET if number == 2 else chatter(number))
            await run.finish()
        await run.say(QUESTION)
        await run.finish()


def listening(made: Vectors | None, seen: list[list[str]]) -> Any:
    """Who answers the same to all, and keeps what was sent."""

    def answer(request: Any) -> Any:
        seen.append(list(said(request)))
        return say("Noted.")

    return agent(answer, **VALUES, vectors=made)


def test_what_shares_no_word_comes_back_and_the_record_needs_no_vectors(tmp_path: Path) -> None:
    made = vectors(tmp_path / "v")

    async def main(ground: Desk) -> None:
        seen: list[list[str]] = []
        await talk(ground, made, seen)
        assert told_back(seen[-1])
        (*_, back) = await ground.whats(RUN, Recalled)
        assert back.query == QUESTION
        (declared,) = await ground.whats(RUN, AgentDeclared)
        blob = canonical.decode((await ground.store.blobs.get(RUN, declared.declaration)).decode())
        assert isinstance(blob, dict)
        assert blob["vectors"] == made.name, "the record says what ranked"
        await ground.check(RUN)
        # Without them it goes on: another agent, and every older prompt can be made again.
        async with await resume(
            ground.store, RUN, listening(None, seen), chatter(99), clock=ground.clock
        ) as run:
            await run.finish()
        assert len(await ground.whats(RUN, AgentDeclared)) == 2
        turns = len(await ground.whats(RUN, ModelAsked))
        assert (await prompt_view(ground.store, RUN, turns - 1))["blocks"]
        await ground.check(RUN)

    run_async(main)


def test_without_vectors_the_same_question_brings_nothing_of_it(tmp_path: Path) -> None:
    async def main(ground: Desk) -> None:
        seen: list[list[str]] = []
        await talk(ground, None, seen)
        assert not told_back(seen[-1])

    run_async(main)


def test_switched_on_in_a_run_that_has_none_they_are_filled_on_the_way(tmp_path: Path) -> None:
    made = vectors(tmp_path / "v")
    path = tmp_path / "journal.db"

    async def work(ground: Desk) -> None:
        await talk(ground, None, [])
        seen: list[list[str]] = []
        words = WordsMarked(path)
        async with await resume(
            ground.store, RUN, listening(made, seen), chatter(99), clock=ground.clock
        ) as run:
            await run.finish()
            await run.say(QUESTION)
            await run.finish()
        assert told_back(seen[-1])
        assert words.are_as_before(), "the words of before are not filled again"
        assert not [each for each in await ground.whats(RUN, Warned) if "index" in each.what]
        await ground.check(RUN)

    asyncio.run(on_file(path, work))


class WordsMarked:
    """The units that an index holds, marked so that only filling them again takes the mark away."""

    def __init__(self, path: Path) -> None:
        self._file = f"{path}{SUFFIX}"
        self._sql("CREATE TABLE seen AS SELECT id, first, last FROM units")
        self._sql("UPDATE units SET novelty = 0.125")

    def are_as_before(self) -> bool:
        kept = "SELECT count(*) FROM seen JOIN units USING (id) WHERE units.novelty = 0.125"
        ((there,),) = self._sql(kept)
        ((all_of_them,),) = self._sql("SELECT count(*) FROM seen")
        return bool(there == all_of_them > 0)

    def _sql(self, statement: str) -> list[Any]:
        with sqlite3.connect(self._file) as other:
            found = other.execute(statement).fetchall()
        other.close()
        return found


def shortened(file: Path) -> None:
    with sqlite3.connect(file) as other:
        other.execute("UPDATE vectors SET vector = x'0102'")
    other.close()


def without_signs(file: Path) -> None:
    with sqlite3.connect(file) as other:
        other.execute("DROP TABLE signs")
    other.close()


@pytest.mark.parametrize("breaks", [shortened, without_signs])
def test_damaged_vectors_have_the_index_made_anew_with_one_warning(tmp_path: Path, breaks: Any) -> None:
    made = vectors(tmp_path / "v")
    path, file = tmp_path / "journal.db", tmp_path / f"journal.db{SUFFIX}"

    async def work(ground: Desk) -> None:
        await talk(ground, made, [])
        breaks(file)
        seen: list[list[str]] = []
        async with await resume(
            ground.store, RUN, listening(made, seen), QUESTION, clock=ground.clock
        ) as run:
            await run.finish()
            await run.say(chatter(7))
            await run.finish()
            await run.say(QUESTION)
            await run.finish()
        assert told_back(seen[-1])
        warned = [each.what for each in await ground.whats(RUN, Warned)]
        assert [what for what in warned if "index" in what] == ["search index made anew"]
        await ground.check(RUN)

    asyncio.run(on_file(path, work))


def test_vectors_that_fail_are_warned_of_once_and_words_alone_rank() -> None:
    class Failing(Counted):
        def of(self, text: str) -> bytes:
            raise RuntimeError("the table is gone")

    async def main(ground: Desk) -> None:
        seen: list[list[str]] = []
        await talk(ground, Failing(), seen)
        assert await ground.whats(RUN, Recalled), "words find what they find"
        warned = [each for each in await ground.whats(RUN, Warned) if "vectors" in each.what]
        assert [each.what for each in warned] == ["vectors unusable"]
        assert "RuntimeError: the table is gone" in warned[0].detail
        await ground.check(RUN)

    run_async(main)


@pytest.mark.parametrize("gives", [b"", b"short", [1, 2], None])
def test_vectors_of_another_shape_are_no_damage_of_the_index(gives: Any) -> None:
    class Odd(Counted):
        def of(self, text: str) -> bytes:
            made = super().of(text)
            return made if len(self.made) < 10 else gives

    async def main(ground: Desk) -> None:
        await talk(ground, Odd(), [])
        warned = [each.what for each in await ground.whats(RUN, Warned)]
        assert [what for what in warned if "index" in what or "vectors" in what] == ["vectors unusable"]
        await ground.check(RUN)

    run_async(main)


def test_an_agent_takes_only_what_makes_vectors() -> None:
    with pytest.raises(AgentMistake, match="static_vectors"):
        agent([], **VALUES, vectors="a/folder")
    with pytest.raises(AgentMistake, match="static_vectors"):
        agent([], **VALUES, vectors=Counted(7))  # type: ignore[arg-type]
    one = declare(agent([], **VALUES, vectors=Counted())).entry
    two = declare(agent([], **VALUES, vectors=Counted("others"))).entry
    none = declare(agent([], **VALUES)).entry
    assert len({one.declaration, two.declaration, none.declaration}) == 3


def test_the_recall_tool_searches_by_them_too() -> None:
    made = Counted()

    @in_loop
    async def scene() -> None:
        things = [told(f"{number} {SECRET}") for number in range(SHORT + 20)]
        async with book("sqlite", *things) as store:
            index = RunIndex(store, "run", lambda *why: pytest.fail(str(why)), vectors=made)
            await index.keep_up(10_000, batches=10)
            await index.search("zebra", 3)
            assert made.made[-1] == "zebra"
            await index.close()

    scene()
