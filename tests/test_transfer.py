"""A run goes out as text and comes back byte for byte, or a line is named and nothing was written."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from shiftbook import RunExists, Store, UnknownRun, canonical, open_store, post, resume, start
from shiftbook.clock import this_process
from shiftbook.errors import BadInput, Damaged, NewerFormat, ShiftbookError
from shiftbook.journal.promises import Commit, InboxItem
from shiftbook.messages import Request
from shiftbook.providers.scripted import Step, call, say
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.validator import request_faults
from shiftbook.transfer import Imported, export_run, import_run
from shiftbook.transfer.write import LEASE_MS
from shiftbook.verify import verify
from shiftbook.views import show_rows
from tests import records

RUN = "warehouse1"
NUMBERS = itertools.count()


async def lines_of(store: Store, run: str = RUN) -> list[str]:
    return [line async for line in export_run(store, run)]


@contextlib.asynccontextmanager
async def in_memory(clock: SimulatedClock | None = None) -> AsyncIterator[Store]:
    store = await open_store(f":memory:{next(NUMBERS)}", clock=clock or SimulatedClock(3))
    try:
        yield store
    finally:
        await store.close()


def exported() -> list[str]:
    """The export of the whole run, made anew for each test that asks."""

    async def make() -> list[str]:
        clock = SimulatedClock(7)
        async with in_memory(clock) as store:
            await records.warehouse(store, clock)
            return await lines_of(store)

    return asyncio.run(make())


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return exported()


async def nothing_there(store: Store) -> bool:
    """Whether the run is not there: nothing was written of it."""
    try:
        await store.entries.head(RUN)
    except UnknownRun:
        return not await store.catalogue.runs()
    return False


def test_out_and_in_and_out_is_the_same_to_the_byte(lines: list[str]) -> None:
    async def check() -> None:
        async with in_memory() as store:
            imported = await import_run(store, lines)
            assert imported == Imported(RUN, 46, 3, 3)
            assert await lines_of(store) == lines
            assert (await verify(store, RUN)).ok
            waiting = await store.inbox.waiting(RUN)
            assert [canonical.decode(item.payload) for item in waiting] == [{"content": "Still there?"}]
            (row,) = await store.catalogue.runs(state="finished", tag="demo")
            assert (row.run, row.position) == (RUN, 46)

    asyncio.run(check())


def test_each_line_is_canonical_and_plain(lines: list[str]) -> None:
    assert all(re.fullmatch("[^\x00-\x1f\x7f-\x9f]+\n", line) for line in lines)
    assert [canonical.encode(canonical.decode(line[:-1])) + "\n" for line in lines] == lines
    assert all(isinstance(json.loads(line), dict) for line in lines), "any JSON reader reads them"


def test_lines_may_come_one_by_one_from_another_store(lines: list[str]) -> None:
    async def check() -> None:
        async with in_memory() as one, in_memory() as other:
            await import_run(one, lines)
            assert (await import_run(other, export_run(one, RUN))).entries == 46
            assert await lines_of(other) == lines

    asyncio.run(check())


def test_an_imported_run_goes_on_where_it_was(lines: list[str]) -> None:
    """F1, F3, F6: odd values come back as they were, so prompts are made again to the same digest."""

    async def check() -> None:
        clock = SimulatedClock(9)
        async with in_memory(clock) as store:
            await import_run(store, lines)
            before = [row async for row in show_rows(store, RUN)]
            script = [*records.STEPS, say("Still here.")]
            async with await resume(store, RUN, records.agent(script), clock=clock) as handle:
                summary = await handle.finish()
            assert summary.reply == "Still here."
            after = [row async for row in show_rows(store, RUN)]
            assert after[: len(before)] == before
            assert {row["lease"] for row in after[len(before) :]} == {4}, "above every epoch that was seen"
            assert (await verify(store, RUN)).ok

    asyncio.run(check())


def test_a10_a_run_that_ends_in_an_open_call_goes_on_elsewhere(tmp_path: Path) -> None:
    """A10: the answer that a dead process never gave does not poison the run: call and answer are paired."""

    async def check() -> None:
        clock = SimulatedClock(7)
        script: list[Step] = [call("count", {"place": "A"}), say("One.")]
        async with in_memory(clock) as one:
            async with await start(one, records.agent(script), "Count.", clock=clock, run=RUN):
                pass
            await records.die_in_a_call(one, RUN, clock, script)
            lines = await lines_of(one)
        seen: list[Request] = []

        def answers(request: Request) -> Step:
            seen.append(request)
            return script[request.turn - 1]

        async with in_memory(clock) as other:
            await import_run(other, lines)
            async with await resume(other, RUN, records.agent(answers), clock=clock) as handle:
                assert (await handle.finish()).cut_off == 1
            assert [request_faults(request) for request in seen] == [[]]
            assert (await verify(other, RUN)).ok

    asyncio.run(check())


# --- what is refused -------------------------------------------------------------------------------------


def test_a_run_that_is_there_is_refused(lines: list[str]) -> None:
    async def check() -> None:
        async with in_memory() as store:
            await import_run(store, lines)
            with pytest.raises(RunExists, match="exists already"):
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


def test_a_run_that_goes_on_meanwhile_goes_out_as_it_stood(lines: list[str]) -> None:
    """A message that is moved in while the export is written goes out as waiting, once."""

    async def check() -> None:
        clock = SimulatedClock(9)
        async with in_memory(clock) as store, in_memory() as other:
            await import_run(store, lines)
            text: list[str] = []
            async for line in export_run(store, RUN):
                text.append(line)
                if len(text) == 5:
                    script = [*records.STEPS, say("Still here.")]
                    async with await resume(store, RUN, records.agent(script), clock=clock) as handle:
                        await handle.finish()
                    await post(store, RUN, "One more", clock=clock)
            assert (await store.entries.head(RUN)).position > 46
            await import_run(other, text)
            assert (await verify(other, RUN)).ok
            waiting = [canonical.decode(item.payload) for item in await other.inbox.waiting(RUN)]
            assert waiting == [{"content": "Still there?"}, {"content": "One more"}]

    asyncio.run(check())


# --- dying in between ------------------------------------------------------------------------------------


class Died(BaseException):
    """The process is gone."""


class Mortal:
    """A store whose process dies before or after its `at`-th write; nothing works from then on."""

    def __init__(self, store: Store, at: float) -> None:
        self._store, self._at = store, at
        self.writes = 0
        self.dead = False
        self.entries, self.leases, self.inbox = self, self, self

    async def _write(self, doing: Callable[[], Awaitable[Any]]) -> Any:
        self._die_at(self.writes)
        result = await doing()
        self._die_at(self.writes + 0.5)
        self.writes += 1
        return result

    def _die_at(self, moment: float) -> None:
        if self.dead or moment == self._at:
            self.dead = True
            raise Died

    async def take(self, *arguments: Any, **options: Any) -> Any:
        return await self._write(lambda: self._store.leases.take(*arguments, **options))

    async def give_back(self, *arguments: Any) -> None:
        await self._write(lambda: self._store.leases.give_back(*arguments))

    async def put(self, run: str, item: InboxItem) -> Any:
        return await self._write(lambda: self._store.inbox.put(run, item))

    async def items(self, *arguments: Any) -> Any:
        return await self._store.inbox.items(*arguments)

    async def append(self, commit: Commit) -> None:
        await self._write(lambda: self._store.entries.append(commit))


def test_an_import_that_dies_is_whole_or_is_done_again(lines: list[str]) -> None:
    """At each write, before and after it: the run has no entry and is told so, or it is all there."""

    async def check() -> None:
        async with in_memory() as store:
            living = Mortal(store, -1)
            await import_run(living, lines)  # type: ignore[arg-type]
        whole = 0
        assert living.writes == 6, "lease, three items, the commit, the lease given back"
        for at in [number / 2 for number in range(2 * living.writes)]:
            clock = SimulatedClock(5)
            async with in_memory(clock) as store:
                with pytest.raises(Died):
                    await import_run(Mortal(store, at), lines)  # type: ignore[arg-type]
                clock.advance(LEASE_MS)
                try:
                    verdict = await verify(store, RUN)
                except UnknownRun:
                    assert at == 0
                else:
                    if verdict.ok:
                        whole += 1
                        with pytest.raises(RunExists):
                            await import_run(store, lines)
                        assert await lines_of(store) == lines
                        continue
                    assert [fault.what[:26] for fault in verdict.faults] == ["The run holds no entry: it"]
                    assert not await store.catalogue.runs(), "nothing lists it"
                    with pytest.raises(ShiftbookError):
                        await resume(store, RUN, records.agent(), clock=clock)
                await import_run(store, lines)
                assert (await verify(store, RUN)).ok
                # Only the lease's epoch tells of the first try.
                assert (await lines_of(store))[1:-1] == lines[1:-1]
        assert whole == 3, "after the commit, and around giving the lease back"

    asyncio.run(check())
