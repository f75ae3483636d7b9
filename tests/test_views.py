"""What faces show: rows for scripts, and lines that steer no terminal."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook import UnknownRun, canonical, post, resume, start
from shiftbook.entries import KINDS, Entry, PersonSaid
from shiftbook.messages import Text
from shiftbook.providers.scripted import Step, call, hangs, say
from shiftbook.testing.clock import SimulatedClock
from shiftbook.views import (
    follow_entries,
    one_line,
    prompt_view,
    run_figures,
    runs_view,
    show_row,
    show_rows,
    standing_of,
    summary_line,
)
from tests import golden, records
from tests.records import Place, count, made, of

STEERS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def test_runs_are_listed_newest_first_and_filtered(tmp_path: Path) -> None:
    async def check() -> None:
        place = await made(tmp_path)
        clock = SimulatedClock(8)
        async with await start(
            place.store, records.agent([say("Hi.")]), "Hi", clock=clock, run="second"
        ) as run:
            await run.finish()
        async with await start(place.store, records.agent(), "Hi", clock=clock, run="third"):
            pass
        rows = await runs_view(place.store)
        assert [(row["run"], row["state"], row["turns"]) for row in rows] == [
            ("third", "running", 0),
            ("second", "finished", 1),
            (place.run, "finished", 9),
        ]
        assert rows[0]["tokens"] is None, "nothing was reported: not known, never zero"
        view = await standing_of(place.store, place.run)
        assert rows[2]["tokens"] == (view.used.prompt or 0) + (view.used.output or 0)
        assert all(row["cost"] is None for row in rows)
        assert rows[2]["entries"] == 46
        assert rows[2]["opened"] == "2026-01-01T00:00:00.000Z"
        assert [row["run"] for row in await runs_view(place.store, state="running")] == ["third"]
        assert [row["run"] for row in await runs_view(place.store, tag="demo")] == [place.run]
        assert [row["run"] for row in await runs_view(place.store, after="third", limit=1)] == ["second"]
        place.sql("UPDATE entries SET payload = '{' WHERE id >> 32 = 2")
        assert [row["turns"] for row in await runs_view(place.store)] == [0, None, 9], "the list stays of use"
        await place.store.close()

    asyncio.run(check())


def test_a_standing_is_the_same_from_a_snapshot_and_from_the_start(tmp_path: Path) -> None:
    async def check() -> None:
        clock = SimulatedClock(7)
        place = await records.opened(tmp_path, clock=clock)
        script: list[Step] = [*[call("count", {"place": "A"})] * 60, say("Done.")]
        agent = records.agent(script, (count,), cap=20_000)
        async with await start(place.store, agent, "Go", clock=clock, run="long") as run:
            await run.finish()
        assert place.sql("SELECT count(*) FROM snapshots") == [(1,)]
        warm = await standing_of(place.store, "long")
        await place.store.cache.drop()
        assert await standing_of(place.store, "long") == warm
        await place.store.close()

    asyncio.run(check())


def test_a_row_says_what_the_journal_says(tmp_path: Path) -> None:
    """F1, F3, F5, F6: odd values in the order and type in which they came."""

    async def check() -> None:
        place = await made(tmp_path)
        rows = [row async for row in show_rows(place.store, place.run)]
        assert [row["position"] for row in rows] == list(range(1, 47))
        assert all(list(row)[:4] == ["position", "at", "kind", "lease"] for row in rows)
        assert rows[0] == {
            "position": 1,
            "at": "2026-01-01T00:00:00.000Z",
            "kind": "RunOpened",
            "lease": 1,
            "run": place.run,
            "agent": "tests/records.py:warehouse",
            "engine": rows[0]["engine"],
            "tags": ["demo"],
        }
        assert rows[14]["content"] == canonical.encode(records.ODD), "key order kept"
        assert rows[32]["content"] == "Thanks \x00\udc88"
        assert rows[22]["content"] == records.LONG, "a payload in a blob is fetched"
        part = [row async for row in show_rows(place.store, place.run, 10, 12)]
        assert part == rows[10:12]
        for row in rows:
            assert STEERS.search(canonical.encode(row).replace("\u202e", "")) is None
        with pytest.raises(UnknownRun):
            _ = [row async for row in show_rows(place.store, "nobody")]
        await place.store.close()

    asyncio.run(check())


def test_stamps_beyond_the_calendar_are_shown_as_numbers() -> None:
    row = show_row(Entry(1, 10**17, 1, PersonSaid((Text("x"),))))
    assert row["at"] == "100000000000000000"
    assert show_row(Entry(1, -1, 1, PersonSaid((Text("x"),))))["at"] == "1969-12-31T23:59:59.999Z"


def test_l3_an_interrupted_reply_is_told_as_one(tmp_path: Path) -> None:
    """L3: whoever reads the run again sees that the reply was cut, and the part that came."""

    async def check() -> None:
        place = await made(tmp_path)
        (entry,) = [entry for entry in await of(place.store, place.run) if entry.kind == "ModelInterrupted"]
        line = summary_line(entry)
        assert "turn 5 cut off (The connection was lost in the middle of the reply.): I was about to" in line
        row = show_row(entry)
        assert (row["kind"], row["parts"], row["turn"]) == ("ModelInterrupted", "I was about to", 5)
        await place.store.close()

    asyncio.run(check())


def test_l3_a_reply_that_a_dead_process_waited_for_is_no_reply(tmp_path: Path) -> None:
    async def check() -> None:
        clock = SimulatedClock(7)
        place = await records.opened(tmp_path, clock=clock)
        agent = records.agent([hangs(part="Half a", then=say("Whole."))])
        handle = await start(place.store, agent, "Go", clock=clock, run="cut")
        work = asyncio.ensure_future(handle.finish())
        async for entry in follow_entries(place.store, "cut"):
            if entry.kind == "ModelAsked":
                break
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await handle.close()
        assert (await run_figures(place.store, "cut"))["turns"] == 0
        assert "ModelAnswered" not in {entry.kind for entry in await of(place.store, "cut")}
        async with await resume(place.store, "cut", records.agent([say("Whole.")]), clock=clock) as again:
            await again.finish()
        assert (await run_figures(place.store, "cut"))["turns"] == 1
        await place.store.close()

    asyncio.run(check())


def test_every_kind_has_words() -> None:
    async def check() -> None:
        clock = SimulatedClock(2)
        async with golden.in_memory(clock, "words") as store:
            run = await golden.warehouse(store, clock)
            other = await golden.every_kind(store, clock)
            entries = [*await of(store, run), *await of(store, other)]
            assert {entry.kind for entry in entries} == set(KINDS)
            for entry in entries:
                line = summary_line(entry, 60)
                assert STEERS.search(line) is None
                assert len(line) <= 6 + 2 + 19 + 2 + 16 + 2 + 60
                assert line.split()[2] == entry.kind
                assert len(line.split()) > 3, f"no words for {entry.kind}"

    asyncio.run(check())


@given(st.text(st.characters() | st.sampled_from("\x1b\x07\x9b\r\n\u202e\u2066\udc88\x00"), max_size=400))
def test_hostile_text_steers_no_terminal(text: str) -> None:
    line = one_line(text, 50)
    assert STEERS.search(line) is None
    assert len(line) <= 50
    line.encode("utf-8")


def test_long_text_is_cut_and_says_so() -> None:
    assert one_line("word " * 1_000_000, 20) == "word word word wo..."
    assert one_line("\x1b" * 30, 20) == "\\x1b\\x1b\\x1b\\x1b\\..."
    assert one_line("  a\n\tb  ") == "a b"


def test_followers_get_what_is_committed(tmp_path: Path) -> None:
    async def check() -> None:
        clock = SimulatedClock(7)
        place = await records.opened(tmp_path, clock=clock)
        kinds: list[str] = []
        async with await start(
            place.store, records.agent([say("Hi.")]), "Hi", clock=clock, run="short"
        ) as run:
            await run.finish()
            async for entry in follow_entries(place.store, "short", 2):
                kinds.append(entry.kind)
                if entry.kind == "RunRested":
                    break
        assert kinds == ["PersonSaid", "EpochOpened", "ModelAsked", "ModelAnswered", "RunRested"]
        await place.store.close()

    asyncio.run(check())


def test_views_write_nothing(tmp_path: Path) -> None:
    async def check() -> None:
        place = await made(tmp_path)
        await post(place.store, place.run, "mail", clock=SimulatedClock(4))
        before = everything(place)
        await runs_view(place.store)
        await run_figures(place.store, place.run)
        await prompt_view(place.store, place.run, 10)
        assert [row async for row in show_rows(place.store, place.run)]
        assert everything(place) == before
        await place.store.close()

    asyncio.run(check())


def everything(place: Place) -> Mapping[str, list[tuple[Any, ...]]]:
    tables = [name for (name,) in place.sql("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {name: place.sql(f"SELECT * FROM {name}") for name in tables}
