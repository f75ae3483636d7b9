"""A search index that fails while a run is at work: said, lived without, tried again ever more seldom."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest

from shiftbook.entries import Recalled, Warned
from shiftbook.errors import Damaged, StoreUnusable
from shiftbook.journal import sqlite_index
from shiftbook.journal.open import open_index
from shiftbook.journal.sqlite_index import SUFFIX
from shiftbook.prompt.epoch import WantRecall
from shiftbook.run.indexing import LEFT_ALONE, LEFT_ALONE_MAX, MADE_ANEW, UNUSABLE, USABLE, RunIndex
from shiftbook.run.loop import Run, resume, start
from tests.journal.test_sqlite_index import damage
from tests.run.book import RUN
from tests.run.desk import Desk, run_async
from tests.run.test_recall_in_runs import QUESTION, SECRET, chatter, delete, listening, on_file, told_back

STRANGE = b"somebody's own words\n" * 2_000


async def index_warnings(ground: Desk) -> list[str]:
    return [each.what for each in await ground.whats(RUN, Warned) if "index" in each.what]


async def found_last(ground: Desk) -> tuple[int, ...]:
    *_, last = await ground.whats(RUN, Recalled)
    return tuple(last.found)


async def ask(run: Run, words: str = QUESTION) -> None:
    await run.say(words)
    await run.finish()


def in_a_run(tmp_path: Path, work: Callable[[Desk, Run, list[list[str]], Path], Awaitable[None]]) -> None:
    """A chat long enough that its first words have left the prompt, its index open; then `work`."""

    async def main(ground: Desk) -> None:
        seen: list[list[str]] = []
        async with await start(ground.store, listening(seen), SECRET, run=RUN, clock=ground.clock) as run:
            await run.finish()
            for number in range(40):
                await ask(run, chatter(number))
            await work(ground, run, seen, tmp_path / f"journal.db{SUFFIX}")
        await ground.check(RUN)

    asyncio.run(on_file(tmp_path / "journal.db", main))


def test_a_locked_index_is_tried_again_and_the_run_says_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_index, "BUSY_MS", 1)

    async def work(ground: Desk, run: Run, seen: list[list[str]], file: Path) -> None:
        other = apsw.Connection(str(file))
        other.execute("BEGIN IMMEDIATE")
        await ask(run)
        assert await found_last(ground) == ()
        other.close(True)
        await ask(run)
        assert await found_last(ground) == (), "a lock may cost seconds at each try"
        for _ in range(LEFT_ALONE):
            await ask(run)
        assert told_back(seen[-1])
        await ask(run)
        assert await index_warnings(ground) == [UNUSABLE, USABLE]

    in_a_run(tmp_path, work)


@pytest.mark.parametrize("is_replaced", [False, True])
def test_an_index_that_is_deleted_or_replaced_amid_a_run_costs_it_nothing(
    tmp_path: Path, is_replaced: bool
) -> None:
    async def work(ground: Desk, run: Run, seen: list[list[str]], file: Path) -> None:
        await ask(run)
        delete(tmp_path)
        if is_replaced:
            await asyncio.to_thread(file.write_bytes, STRANGE)
        for number in range(12):
            await ask(run, chatter(number))
        await ask(run)
        assert told_back(seen[-1])
        assert await index_warnings(ground) == []
        assert not is_replaced or await asyncio.to_thread(file.read_bytes) == STRANGE

    in_a_run(tmp_path, work)


def test_a_strangers_file_is_left_and_the_index_made_once_it_is_moved_away(tmp_path: Path) -> None:
    file = tmp_path / f"journal.db{SUFFIX}"
    file.write_bytes(STRANGE)

    async def work(ground: Desk, run: Run, seen: list[list[str]], file: Path) -> None:
        await ask(run)
        assert await found_last(ground) == ()
        assert await asyncio.to_thread(file.read_bytes) == STRANGE
        assert await index_warnings(ground) == [UNUSABLE]
        delete(tmp_path)
        for number in range(4 * LEFT_ALONE):
            await ask(run, chatter(number))
        await ask(run)
        assert told_back(seen[-1])
        assert await index_warnings(ground) == [UNUSABLE, USABLE]

    in_a_run(tmp_path, work)


def test_damage_found_when_it_is_opened_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(ground: Desk, run: Run, seen: list[list[str]], file: Path) -> None:
        await run.close()
        damage(file)
        async with await resume(ground.store, RUN, listening(seen), clock=ground.clock) as again:
            with caplog.at_level(logging.WARNING, "shiftbook"):
                await ask(again)
                await ask(again)
        assert told_back(seen[-1])
        assert await index_warnings(ground) == [MADE_ANEW]
        assert len([each for each in caplog.messages if "made anew" in each]) == 1

    in_a_run(tmp_path, work)


@pytest.mark.parametrize("fault", [StoreUnusable("read-only"), OSError("no room"), Damaged("torn")])
def test_one_that_never_can_be_used_is_tried_ever_more_seldom_and_warned_of_once(fault: Exception) -> None:
    """Tried when first asked, then 9, 17, 33 ... asks later: a lock costs its time-out at each try."""

    async def main(ground: Desk) -> None:
        tried: list[int] = []
        told: list[str] = []

        now = 0

        def opens(store: Any, *, anew: bool = False) -> Any:
            tried.append(now)
            raise fault

        index = RunIndex(ground.store, RUN, lambda what, why: told.append(what), opens=opens)
        want = WantRecall("kite", (), frozenset(), 1_000, "message")
        for asked in range(2_100):
            now = asked
            assert await index.recall(want, lambda block: 1) == ()
        times = sorted(set(tried))
        gaps = [after - before for before, after in pairwise(times)]
        assert gaps[:3] == [LEFT_ALONE + 1, 2 * LEFT_ALONE + 1, 4 * LEFT_ALONE + 1]
        assert max(gaps) <= LEFT_ALONE_MAX + 1
        assert len(times) == 9
        assert told == [UNUSABLE]
        await index.close()
        assert await index.recall(want, lambda block: 1) == ()
        assert max(tried) < now

    run_async(main)


def test_an_index_of_another_kind_of_store_is_asked_for_once() -> None:
    async def main(ground: Desk) -> None:
        opened: list[bool] = []

        def opens(store: Any, *, anew: bool = False) -> Any:
            opened.append(anew)
            return None if len(opened) == 1 else open_index(store)

        index = RunIndex(ground.store, RUN, lambda *why: pytest.fail(str(why)), opens=opens)
        for _ in range(20):
            assert (
                await index.recall(WantRecall("kite", (), frozenset(), 9, "message"), lambda block: 1) == ()
            )
        assert opened == [False]

    run_async(main)
