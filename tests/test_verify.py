"""A record is whole or `verify` says where it is not: flipped bits, gaps, mail, blobs, the lease."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from shiftbook import ShiftbookError, UnknownRun, post, resume
from shiftbook.codec import Row, blob_hash
from shiftbook.errors import NewerFormat
from shiftbook.journal.promises import InboxItem, LeaseRow
from shiftbook.providers.scripted import call, say
from shiftbook.testing.clock import SimulatedClock
from shiftbook.verify import Fault, Verdict, verify
from shiftbook.views import entries_of, prompt_view
from tests import records
from tests.records import Place, made

TRUTH = {
    "entries": ("id", "kind", "version", "at_ms", "epoch", "salt", "payload", "head"),
    "blobs": ("run", "name", "content"),
    "inbox": ("run", "place", "id", "kind", "at_ms", "payload", "moved_to", "checksum"),
    "leases": ("number", "run", "epoch", "mail", "checksum"),
}
"""Every column that truth is kept in."""

FLIPS = 250


async def verdict_or_refusal(place: Place) -> Verdict | ShiftbookError:
    try:
        return await verify(place.store, place.run)
    except ShiftbookError as refusal:
        return refusal


def test_a_run_that_the_engine_made_is_whole(tmp_path: Path) -> None:
    async def check() -> None:
        place = await made(tmp_path)
        head = await place.store.entries.head(place.run)
        verdict = await verify(place.store, place.run)
        assert verdict == Verdict(place.run, True, head.position, 10, 0, ())
        await place.store.close()

    asyncio.run(check())


def test_any_flipped_bit_in_a_truth_column_is_found(tmp_path: Path) -> None:
    async def check() -> None:
        place = await made(tmp_path)
        chance = random.Random(20_260_101)
        cells = [
            (table, column, rowid, value)
            for table, columns in TRUTH.items()
            for column in columns
            for rowid, value in place.sql(f"SELECT rowid, {column} FROM {table}")
            if value not in (None, "", b"")
        ]
        by_column: dict[tuple[str, str], list[tuple[str, str, int, object]]] = {}
        for cell in cells:
            by_column.setdefault(cell[:2], []).append(cell)
        columns = list(by_column.values())
        assert len(columns) == sum(map(len, TRUTH.values()))
        missed = []
        for number in range(FLIPS):
            table, column, rowid, value = chance.choice(columns[number % len(columns)])
            flipped, cast = flip(value, chance)
            moved = flipped if column in ("id", "number") and table in ("entries", "leases") else rowid
            statement = f"UPDATE {table} SET {column} = {cast} WHERE rowid = ?"
            try:
                place.sql(statement, (flipped, rowid))
            except apsw.ConstraintError:
                continue  # The database has a row of that key already and takes no second one.
            found = await verdict_or_refusal(place)
            if isinstance(found, Verdict) and found.ok:
                missed.append((table, column, rowid, value, flipped))
            place.sql(statement, (value if cast == "?" else str(value).encode("utf-8"), moved))
        assert not missed
        assert (await verify(place.store, place.run)).ok, "each flip was taken back"
        await place.store.close()

    asyncio.run(check())


def flip(value: object, chance: random.Random) -> tuple[object, str]:
    """The value with one bit of one byte turned, and how to bind it."""
    if isinstance(value, int):
        return value ^ (1 << chance.randrange(40)), "?"
    content = bytearray(value if isinstance(value, bytes) else str(value).encode("utf-8"))
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(content), "?" if isinstance(value, bytes) else "CAST(? AS TEXT)"


def test_a_tail_that_was_cut_off_whole_is_not_found_without_a_seal(tmp_path: Path) -> None:
    """The limit that docs/reference/format.md states: nothing in what is left tells of what is gone."""

    async def check() -> None:
        place = await made(tmp_path)
        heads = place.sql("SELECT id FROM entries WHERE head IS NOT NULL ORDER BY id DESC LIMIT 2")
        place.sql("DELETE FROM entries WHERE id > ?", (heads[1][0],))
        assert (await verify(place.store, place.run)).ok
        # Half a commit is another matter: its last row carries no head.
        place.sql("DELETE FROM entries WHERE id = ?", (heads[1][0],))
        faults = (await verify(place.store, place.run)).faults
        assert [fault.what for fault in faults] == [
            "The last entry carries no chain head: the run's end is gone."
        ]
        await place.store.close()

    asyncio.run(check())


def test_one_broken_row_hides_no_other(tmp_path: Path) -> None:
    async def check() -> None:
        place = await made(tmp_path)
        place.sql("UPDATE entries SET payload = '{}' WHERE id & 4294967295 = 9")
        place.sql("DELETE FROM entries WHERE id & 4294967295 = 20")
        place.sql("UPDATE entries SET kind = 99 WHERE id & 4294967295 = 30")
        verdict = await verify(place.store, place.run)
        assert {9, 20, 30} <= {fault.position for fault in verdict.faults}
        assert all("\n" not in fault.what and fault.what for fault in verdict.faults)
        await place.store.close()

    asyncio.run(check())


def test_a_gap_as_wide_as_a_store_can_have_ends(tmp_path: Path) -> None:
    async def check() -> None:
        place = await made(tmp_path)
        place.sql("UPDATE entries SET id = (id & ~4294967295) | 4000000000 WHERE id & 4294967295 = 46")
        verdict = await verify(place.store, place.run)
        assert verdict.faults[-1].what == "The entries after this one cannot be reached."
        await place.store.close()

    asyncio.run(check())


def test_unknown_and_newer_are_refused_with_direction(tmp_path: Path) -> None:
    async def check() -> None:
        place = await made(tmp_path)
        with pytest.raises(UnknownRun):
            await verify(place.store, "nobody")
        place.sql("UPDATE entries SET version = 2 WHERE id & 4294967295 = 12")
        with pytest.raises(NewerFormat, match=r"Entry 12 has format 2.*Update Shiftbook"):
            await verify(place.store, place.run)
        await place.store.close()

    asyncio.run(check())


def test_a_lease_is_never_below_its_entries(tmp_path: Path) -> None:
    """A lower epoch whose checksum is right, as a store put back from an older copy would have it."""

    async def check() -> None:
        place = await made(tmp_path)
        lease = await place.store.leases.look(place.run)

        async def older(run: str) -> LeaseRow:
            return replace(lease, run=run, epoch=lease.epoch - 1)

        place.store.leases.look = older  # type: ignore[method-assign]
        faults = (await verify(place.store, place.run)).faults
        assert faults == (Fault(46, "The lease's epoch is 2, below the 3 of its entries."),)
        await place.store.close()

    asyncio.run(check())


def test_blobs_are_there_and_have_their_entry(tmp_path: Path) -> None:
    async def check() -> None:
        place = await made(tmp_path)
        stray = blob_hash(b"stray")
        place.sql("INSERT INTO blobs (run, name, content) VALUES (1, ?, ?)", (stray, b"stray"))
        faults = (await verify(place.store, place.run)).faults
        assert faults == (Fault(0, f"Blob '{stray[:12]}' is named by no entry."),)
        place.sql("DELETE FROM blobs")
        told = {fault.position: fault.what for fault in (await verify(place.store, place.run)).faults}
        assert set(told) == {2, 19, 23}, "the declaration, the photo, the long list"
        assert all(what.endswith("is not there.") for what in told.values())
        await place.store.close()

    asyncio.run(check())


def test_the_inbox_and_the_entries_tell_the_same(tmp_path: Path) -> None:
    async def check() -> None:
        place = await made(tmp_path)
        items = place.store.inbox.items

        async def but_the_first(run: str, after: str | None = None, limit: int = 500) -> list[InboxItem]:
            return (await items(run, after, limit))[0 if after else 1 :]

        place.store.inbox.items = but_the_first  # type: ignore[method-assign]
        (fault,) = (await verify(place.store, place.run)).faults
        assert "which the inbox does not know as moved" in fault.what
        assert fault.position == 33
        await place.store.close()

    asyncio.run(check())


@pytest.mark.parametrize(
    "what",
    [
        "DELETE FROM inbox WHERE place = 1",
        "DELETE FROM inbox WHERE place = (SELECT max(place) FROM inbox)",
        "UPDATE inbox SET run = 77 WHERE place = (SELECT max(place) FROM inbox)",
        "UPDATE inbox SET place = CASE place WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE place END",
        "DELETE FROM inbox",
    ],
)
def test_a_message_that_is_gone_or_has_another_place_is_found(what: str, tmp_path: Path) -> None:
    async def check() -> None:
        place = await made(tmp_path)
        await post(place.store, place.run, "One more.")
        assert (await verify(place.store, place.run)).ok
        if "CASE" in what:  # by way of free places: no two rows may share one meanwhile
            for step in ("1, 1000", "2, 1", "1000, 2"):
                before, after = step.split(", ")
                place.sql("UPDATE inbox SET place = ? WHERE place = ?", (int(after), int(before)))
        else:
            place.sql(what)
        assert not (await verify(place.store, place.run)).ok
        await place.store.close()

    asyncio.run(check())


def test_a_run_that_goes_on_meanwhile_is_no_fault(tmp_path: Path) -> None:
    async def check() -> None:
        clock = SimulatedClock(7)
        place = await made(tmp_path, clock=clock)
        store = place.store
        read = store.entries.read
        script = [*records.STEPS, say("Yes.")]

        async def read_and_go_on(run: str, after: int = 0, limit: int = 500) -> list[Row]:
            rows = await read(run, after, limit)
            if after == 0 and not going:
                going.append(True)
                async with await resume(store, run, records.agent(script), clock=clock) as handle:
                    await handle.finish()
                await post(store, run, "later still", clock=clock)
            return rows

        going: list[bool] = []
        store.entries.read = read_and_go_on  # type: ignore[method-assign]
        verdict = await verify(store, place.run)
        assert verdict.ok, verdict.faults
        assert verdict.entries > 46
        await store.close()

    asyncio.run(check())


def test_mail_that_is_moved_while_the_inbox_is_read_is_no_fault(tmp_path: Path) -> None:
    async def check() -> None:
        clock = SimulatedClock(7)
        place = await made(tmp_path, clock=clock)
        items, going = place.store.inbox.items, list[bool]()

        async def go_on_and_list(run: str, after: str | None = None, limit: int = 500) -> list[InboxItem]:
            if not going:
                going.append(True)
                agent = records.agent([*records.STEPS, say("Yes.")])
                async with await resume(place.store, place.run, agent, clock=clock) as handle:
                    await handle.finish()
            return await items(run, after, limit)

        place.store.inbox.items = go_on_and_list  # type: ignore[method-assign]
        verdict = await verify(place.store, place.run)
        assert (verdict.ok, verdict.entries, going) == (True, 46, [True]), verdict.faults
        await place.store.close()

    asyncio.run(check())


def test_d1_d3_stamps_mean_nothing(tmp_path: Path) -> None:
    """D1, D3: a clock that stands still and two holders whose clocks disagree by two minutes are no fault."""

    async def check() -> None:
        clock = SimulatedClock(7)
        place = await records.opened(tmp_path, clock=clock)
        await records.warehouse(place.store, clock.skewed(60_000))
        script = [*records.STEPS, call("count", {"place": "D"}), say("Yes.")]
        slow = clock.skewed(-60_000, seed=9)
        async with await resume(place.store, place.run, records.agent(script), clock=slow) as handle:
            await handle.finish()
        entries = [entry async for entry in entries_of(place.store, place.run)]
        stamps = [entry.at_ms for entry in entries]
        assert stamps != sorted(stamps), "the second holder's clock is behind"
        assert (await verify(place.store, place.run)).ok
        prompt = await prompt_view(place.store, place.run, 12)
        positions = [entry for block in prompt["blocks"] for entry in block["entries"]]
        assert positions == sorted(positions)
        await place.store.close()

    asyncio.run(check())
