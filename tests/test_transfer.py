"""A run goes out as text and comes back byte for byte, whole or not at all."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from shiftbook import RunExists, Store, UnknownRun, canonical, post, resume, start
from shiftbook.errors import ShiftbookError
from shiftbook.journal.promises import Commit, InboxItem
from shiftbook.messages import Request
from shiftbook.providers.scripted import Step, call, say
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.validator import request_faults
from shiftbook.transfer import Imported, export_run, import_run
from shiftbook.transfer.held import LEASE_MS
from shiftbook.verify import verify
from shiftbook.views import show_rows
from tests import records
from tests.exports import RUN, exported, in_memory, lines_of


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return exported()


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


class Died(BaseException):
    """The process is gone."""


class Mortal:
    """A store whose process dies before or after its `at`-th write; nothing works from then on."""

    def __init__(self, store: Store, at: float) -> None:
        self._store, self._at = store, at
        self.writes = 0
        self.dead = False
        self.entries, self.leases, self.inbox = self, self, self
        self.name, self.reopen = store.name, store.reopen

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
