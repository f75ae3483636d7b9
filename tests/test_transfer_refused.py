"""Text that no export wrote: a line is named, and nothing was written."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from shiftbook import RunExists, UnknownRun, canonical
from shiftbook.clock import this_process
from shiftbook.errors import BadInput, Damaged, NewerFormat
from shiftbook.journal.promises import InboxItem
from shiftbook.transfer import export_run, import_run
from tests import records
from tests.exports import RUN, exported, in_memory, lines_of, nothing_there


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return exported()


def test_a_run_that_is_there_is_refused(lines: list[str]) -> None:
    async def check() -> None:
        async with in_memory() as store:
            await import_run(store, lines)
            with pytest.raises(RunExists, match="in this store already"):
                await import_run(store, lines)
            assert await lines_of(store) == lines

    asyncio.run(check())


def test_b15_a_run_deleted_half_way_is_not_taken_for_another(lines: list[str], tmp_path: Path) -> None:
    """B15: what a broken deletion left behind never mixes with what comes in under the same id."""

    async def check() -> None:
        place = await records.opened(tmp_path)
        await import_run(place.store, lines)
        place.sql("DELETE FROM entries WHERE id & 4294967295 > 20")
        with pytest.raises(RunExists):
            await import_run(place.store, lines)
        place.sql("DELETE FROM entries")
        with pytest.raises(RunExists):
            await import_run(place.store, lines)
        await place.store.close()
        async with in_memory() as store:
            await store.leases.give_back(await store.leases.take(RUN, this_process(), 1_000, new=True))
            await store.inbox.put(RUN, InboxItem("stranger", "PersonSaid", 0, '{"content":"hi"}'))
            with pytest.raises(RunExists, match="was begun in this store and has other mail"):
                await import_run(store, lines)
            assert not await store.catalogue.runs()

    asyncio.run(check())


def test_any_flipped_bit_in_the_text_is_found(lines: list[str]) -> None:
    chance = random.Random(20_260_102)
    whole = "".join(lines).encode("utf-8")
    short = [number for number, line in enumerate(lines) if len(line) < 1_000]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode("utf-8")))

    async def check() -> None:
        async with in_memory() as store:
            for number in range(400):
                # Long lines are mostly one value: every second flip is in a line that is not.
                line = short[number % len(short)] if number % 2 else chance.randrange(len(lines))
                place = chance.randrange(starts[line], starts[line + 1])
                if place == len(whole) - 1:
                    continue  # The file's last newline says nothing.
                torn = bytearray(whole)
                torn[place] ^= 1 << chance.randrange(8)
                text = torn.decode("utf-8", "surrogateescape")
                with pytest.raises((BadInput, NewerFormat)):
                    await import_run(store, text.split("\n")[:-1])
                assert await nothing_there(store)

    asyncio.run(check())


def test_every_torn_text_is_found(lines: list[str]) -> None:
    async def check() -> None:
        async with in_memory() as store:
            for length in range(len(lines)):
                with pytest.raises(
                    BadInput, match="empty" if not length else f"breaks off after line {length}"
                ):
                    await import_run(store, lines[:length])
            for missing in range(1, len(lines) - 1):
                with pytest.raises(BadInput, match="Line "):
                    await import_run(store, [*lines[:missing], *lines[missing + 1 :]])
            with pytest.raises(BadInput, match=f"Line {len(lines) + 1} of the export .* after the end"):
                await import_run(store, [*lines, lines[-1]])
            assert await nothing_there(store)

    asyncio.run(check())


def line_of(plain: dict[str, Any]) -> str:
    return canonical.encode(plain) + "\n"


HEADER = {"shiftbook": "export", "export": 1, "run": RUN, "engine": "0.1.0", "epoch": 1}
ENTRY = {
    "entry": 1,
    "kind": "RunOpened",
    "version": 1,
    "at": 0,
    "epoch": 1,
    "salt": "00" * 16,
    "payload": '{"run":"warehouse1","agent":"a","engine":"0.1.0"}',
}
ITEM = {"inbox": "m1", "kind": "PersonSaid", "at": 0, "payload": '{"content":"hi"}'}
FOREIGN = "This is no Shiftbook export.*shiftbook rerun FILE"


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (['{"type":"user","sessionId":"x","message":{"role":"user","content":"hi"}}'], FOREIGN),
        (['{"type": "user", "sessionId": "x"}'], FOREIGN),
        (["\x00\x89PNG"], FOREIGN),
        (["[1,2]"], FOREIGN),
        ([""], FOREIGN),
        ([HEADER | {"export": 2, "more": 1}], "Line 1 .*version 2.*Update Shiftbook"),
        ([HEADER | {"export": "1"}], "Line 1 .*a whole number"),
        ([HEADER | {"more": 1}], "Line 1 .*not 'more'"),
        ([HEADER | {"epoch": 0}], "Line 1 .*a whole number from 1 on"),
        ([HEADER | {"epoch": True}], "Line 1 .*a whole number from 1 on"),
        ([HEADER | {"run": 7}], "Line 1 .*a text"),
        ([HEADER, "nonsense"], "Line 2 .*not canonical JSON"),
        ([HEADER, "[]"], "Line 2 .*not an object"),
        ([HEADER, {"what": 1}], "Line 2 .*neither an entry"),
        ([HEADER, {}], "Line 2 .*neither an entry"),
        ([HEADER, HEADER], "Line 2 .*neither an entry"),
        ([HEADER, ENTRY | {"entry": 2}], "Line 2 .*entry 2 stands after entry 0"),
        ([HEADER, ENTRY | {"entry": 10**30}], "Line 2 .*a whole number"),
        ([HEADER, ENTRY | {"at": 2**63}], "Line 2 .*a whole number"),
        ([HEADER, ENTRY | {"epoch": 2}], "Line 2 .*above the header's"),
        ([HEADER, ENTRY | {"version": 2}], "Line 2 .*format 2.*Update Shiftbook"),
        ([HEADER, ENTRY | {"kind": "Nonsense"}], "Line 2 .*no kind 'Nonsense'"),
        ([HEADER, ENTRY | {"salt": "00"}], "Line 2 .*32 hexadecimal digits"),
        ([HEADER, ENTRY | {"salt": "AA" * 16}], "Line 2 .*32 hexadecimal digits"),
        ([HEADER, ENTRY | {"payload": "{}"}], r"Line 2 .*Entry 1 \(RunOpened\) cannot be read"),
        ([HEADER, ENTRY | {"payload": '{"$blob":"' + "0" * 64 + '","size":1}'}], "Line 2 .*needs blob '0000"),
        ([HEADER, ENTRY | {"extra": 1}], "Line 2 .*not 'extra'"),
        ([HEADER, ENTRY | {"head": "00" * 32}], "Line 2 .*the chain is broken"),
        ([HEADER, {"blob": "0" * 64, "content": b"x"}], "Line 2 .*does not hash to its name"),
        ([HEADER, {"blob": "0" * 64, "content": "x"}], "Line 2 .*does not hash to its name"),
        ([HEADER, ITEM | {"kind": "Nonsense"}], "Line 2 .*no kind 'Nonsense'"),
        ([HEADER, ITEM | {"payload": "{}"}], "Line 2 .*'content' is missing"),
        ([HEADER, ITEM | {"payload": "x"}], "Line 2 .*not canonical"),
        ([HEADER, ITEM | {"inbox": ""}], "Line 2 .*cannot be the id"),
        ([HEADER, ITEM | {"inbox": "a\nb"}], "Line 2 .*cannot be the id"),
        ([HEADER, ITEM, ITEM], "Line 3 .*for a second time"),
        ([HEADER, ITEM, ENTRY], "Line 3 .*after the inbox items"),
        (
            [HEADER, {"inbox": "m1", "kind": "PersonSaid", "at": 0, "moved_to": 1}],
            "Line 2 .*does not name it",
        ),
        (
            [HEADER, {"end": "", "entries": 0, "blobs": 0, "inbox": 0, "head": ""}],
            "Line 2 .*lines are missing",
        ),
    ],
)
def test_hostile_text_gets_one_sentence(made: Sequence[str | dict[str, Any]], told: str) -> None:
    async def check() -> None:
        async with in_memory() as store:
            text = [line if isinstance(line, str) else line_of(line) for line in made]
            with pytest.raises((BadInput, NewerFormat), match=told) as caught:
                await import_run(store, text)
            assert str(caught.value).isprintable()
            assert len(str(caught.value)) < 500
            assert await nothing_there(store)

    asyncio.run(check())


def test_a_huge_line_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        async with in_memory() as store:
            monkeypatch.setattr("shiftbook.transfer.reader.LINE_CHARS_MAX", 1_000)
            with pytest.raises(BadInput, match=r"Line 2 .*at most 1000"):
                await import_run(store, [line_of(HEADER), "[" * 2_000])
            with pytest.raises(BadInput, match=r"Line 2 .*cannot be used"):
                await import_run(store, [line_of(HEADER), "[" * 900])

    asyncio.run(check())


def test_a_run_whose_id_no_store_takes_is_refused(lines: list[str]) -> None:
    async def check() -> None:
        async with in_memory() as store:
            with pytest.raises(BadInput):
                await import_run(store, [line_of(HEADER | {"run": "../../etc"})])
            assert not await store.catalogue.runs()

    asyncio.run(check())


def test_a_damaged_run_does_not_go_out_whole(lines: list[str], tmp_path: Path) -> None:
    async def check() -> None:
        place = await records.opened(tmp_path)
        await import_run(place.store, lines)
        place.sql("UPDATE entries SET salt = zeroblob(16) WHERE id & 4294967295 = 20")
        async with in_memory() as other:
            with pytest.raises(Damaged, match="chain of run warehouse1 is broken at entry 20"):
                await import_run(other, export_run(place.store, RUN))
            assert await nothing_there(other)
        with pytest.raises(UnknownRun):
            await lines_of(place.store, "nobody")
        await place.store.close()

    asyncio.run(check())
