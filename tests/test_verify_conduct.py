"""Entries that no engine writes are told where they stand, and crafted rows are only ever told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftbook import ShiftbookError, Store, canonical, open_store
from shiftbook.codec import Row, blob_hash, draft, genesis, link, seal
from shiftbook.entries import (
    KIND_NUMBERS,
    ActionFinished,
    ActionStarted,
    AgentDeclared,
    EpochOpened,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    ModelInterrupted,
    PersonSaid,
    Pick,
    ReportAnswered,
    ReportAsked,
    ReportFailed,
    RunEnded,
    RunOpened,
    Warned,
    What,
)
from shiftbook.journal.promises import Commit
from shiftbook.messages import Call, Text
from shiftbook.payload import to_plain
from shiftbook.prompt.digest import start as digest_start
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.ground import elsewhere
from shiftbook.transfer import export_run
from shiftbook.verify import Fault, verify
from shiftbook.verify.verdict import FAULTS_MAX
from shiftbook.views import entries_of, prompt_view, run_figures, show_rows, summary_line
from tests import records
from tests.records import Place

RUN = "warehouse1"
BLOB = b'{"fixed":0,"instructions":"","tools":[]}'
OPENED = RunOpened(RUN, "agent.py:shop", "0.1.0")
DECLARED = AgentDeclared("agent.py:shop", blob_hash(BLOB), "m", "transcript", 1_000)
GO = PersonSaid((Text("go"),))
EMPTY = digest_start(blob_hash(BLOB), 1)


def asked(turn: int, digest: str = EMPTY, blocks: tuple[Pick, ...] = ()) -> ModelAsked:
    return ModelAsked(turn, blocks, digest, 10, "bytes")


def replied(turn: int, *calls: str) -> ModelAnswered:
    return ModelAnswered(turn, tuple(Call(name, "count", {}) for name in calls) or (Text("ok"),), "end")


def begun(call: str, *, attempt: int = 1, key: str | None = None, tool: str = "count") -> ActionStarted:
    return ActionStarted(call, tool, key or f"{RUN}-{call}", attempt)


def done(call: str) -> ActionFinished:
    return ActionFinished(call, "done", (Text("7"),))


HEAD: tuple[What, ...] = (OPENED, DECLARED, GO, EpochOpened(1, "start"), asked(1))
REPORT = ReportAsked((6,), "m", 900, "0" * 32, 10, "bytes", keep=40)
CALLED: tuple[What, ...] = (*HEAD, replied(1, "1.1", "1.2"))


async def written(folder: Path, whats: Sequence[What], *, epochs: Sequence[int] = (1,)) -> Place:
    """A run of these entries, in one commit, with a chain that is right."""
    place = await records.opened(folder)
    lease = await place.store.leases.take(RUN, elsewhere(), 1_000, new=True, above=max(epochs) - 1)
    sealed = seal(
        [draft(what) for what in whats],
        after=0,
        head=genesis(RUN),
        at_ms=[1] * len(whats),
        epoch=lease.epoch,
        token=SimulatedClock(1).token,
    )
    rows, head = [], genesis(RUN)
    for number, row in enumerate(sealed.rows):
        epoch = epochs[min(number, len(epochs) - 1)]
        row = replace(row, epoch=epoch, head=None)
        head = link(head, row)
        rows.append(row)
    rows[-1] = replace(rows[-1], head=head)
    blobs = {blob_hash(BLOB): BLOB, **sealed.blobs} if DECLARED in whats else sealed.blobs
    await place.store.entries.append(Commit(RUN, 0, lease.epoch, rows, blobs))
    return place


@pytest.mark.parametrize(
    ("whats", "position", "told"),
    [
        ((GO,), 1, "begins with one RunOpened"),
        ((OPENED, OPENED), 2, "begins with one RunOpened"),
        ((RunOpened("other", "a", "0"),), 1, "opens run 'other', but stands in run 'warehouse1'"),
        ((OPENED, RunEnded("finished"), GO), 3, "after the RunEnded"),
        ((OPENED, GO, EpochOpened(1, "start"), asked(1, digest_start("", 1))), 4, "before any AgentDeclared"),
        ((*HEAD, replied(1), asked(3)), 7, "turn 3 after turn 1"),
        ((*HEAD, asked(2)), 6, "turn 2 while the request of turn 1 has no reply"),
        ((*HEAD, replied(1), replied(1)), 7, "no request is open"),
        ((*HEAD, replied(2)), 6, "turn 2 while turn 1 is open"),
        ((*HEAD, replied(1), ModelFailed(1, 1, "late")), 7, "no request is open"),
        ((*HEAD, replied(1), ModelInterrupted(1, (), "late")), 7, "no request is open"),
        ((*HEAD, ModelFailed(1, 1, "x"), ModelFailed(1, 1, "x")), 7, "they count up"),
        ((*HEAD[:3], EpochOpened(2, "start")), 4, "prompt epoch 2 after epoch 0"),
        ((*HEAD, replied(1, "1.1", "1.1")), 6, "the id of another call"),
        ((*CALLED, asked(2), replied(2, "1.1")), 8, "the id of another call"),
        ((*HEAD, replied(1, "odd"), asked(2), replied(2, "odd")), 8, "the id of another call"),
        ((*CALLED, begun("9.9")), 7, "'9.9' is started, but is not open"),
        ((*CALLED, begun("1.1"), done("1.1"), begun("1.1", attempt=2)), 9, "is not open"),
        ((*CALLED, begun("1.1", attempt=2)), 7, "Attempt 2 at call '1.1' after 0"),
        ((*CALLED, begun("1.1"), begun("1.1")), 8, "Attempt 1 at call '1.1' after 1"),
        ((*CALLED, begun("1.1", key="warehouse1-1.2")), 7, "not the one that is made from run and call"),
        ((*CALLED, begun("1.1", tool="mail")), 7, "asks for tool 'count', but 'mail' is started"),
        ((*CALLED, done("1.1")), 7, "is done, but was never started"),
        ((*CALLED, begun("1.1"), done("1.1"), done("1.1")), 9, "is answered, but is not open"),
        ((*HEAD, replied(1), done("\x1b[2J")), 7, r"'\x1b[2J' is answered"),
        ((OPENED, DECLARED, PersonSaid((Text("x"),), item="m1")), 3, "'m1', which the inbox does not know"),
        ((*HEAD[:4], asked(1, "0" * 32)), 5, "has digest 00000000"),
        ((*HEAD[:4], asked(1, blocks=(Pick(5, 9),))), 5, "entries 5 to 9, which are not before it"),
        ((*HEAD[:4], asked(1, blocks=(Pick(1, 10**15),))), 5, "which are not before it"),
        ((*HEAD[:4], asked(1, blocks=(Pick(3, 3, "melted"),))), 5, "no form 'melted'"),
        ((*HEAD, REPORT), 6, "while another request has no reply"),
        ((*CALLED, REPORT), 7, "while call '1.1' has no answer"),
        ((*HEAD, replied(1), REPORT, REPORT), 8, "while another request has no reply"),
        ((*HEAD, replied(1), REPORT, asked(2)), 8, "the request for a report has no outcome"),
        ((*HEAD, replied(1), ReportAnswered((), "end")), 7, "but none is asked for"),
        ((*HEAD, replied(1), ReportFailed(1, "x")), 7, "but none is asked for"),
        ((*HEAD, replied(1), REPORT, ReportFailed(1, "x", 5), ReportFailed(1, "x")), 9, "they count up"),
        ((*HEAD, replied(1), REPORT), 7, "the report's request has digest 00000000"),
        ((*HEAD, replied(1), replace(REPORT, entries=(6, 9))), 7, "names entries that are not before it"),
        ((*HEAD, replied(1), replace(REPORT, entries=(6, 3))), 7, "or not in order"),
        ((*HEAD, replied(1), replace(REPORT, entries=(5,))), 7, "names entry 5, which is not there"),
        ((*HEAD, replied(1), replace(REPORT, renderer=9)), 7, "renderer 9"),
    ],
)
def test_what_no_engine_writes_is_told_at_its_entry(
    tmp_path: Path, whats: Sequence[What], position: int, told: str
) -> None:
    async def check() -> None:
        place = await written(tmp_path, whats)
        verdict = await verify(place.store, place.run)
        assert not verdict.ok
        assert [fault for fault in verdict.faults if fault.position == position and told in fault.what], (
            verdict
        )
        await place.store.close()

    asyncio.run(check())


def test_l6_a_side_entry_in_a_recipe_is_told(tmp_path: Path) -> None:
    """L6: only kinds on the list are for a model; a warning that gets into a prompt is a fault."""

    async def check() -> None:
        blocks = (Pick(3, 3), Pick(4, 4))
        whats = (
            OPENED,
            DECLARED,
            GO,
            Warned("hook", "side"),
            EpochOpened(1, "start"),
            asked(1, blocks=blocks),
        )
        place = await written(tmp_path, whats)
        (fault,) = (await verify(place.store, place.run)).faults
        assert fault == Fault(6, "The recipe picks entry 4, which is not there or not for a model to see.")
        await place.store.close()

    asyncio.run(check())


def test_lease_epochs_never_fall(tmp_path: Path) -> None:
    async def check() -> None:
        place = await written(tmp_path, (OPENED, DECLARED, GO, GO), epochs=(1, 3, 2, 3))
        faults = (await verify(place.store, place.run)).faults
        assert faults == (Fault(3, "Its lease epoch is 2, after one of 3: lease epochs never fall."),)
        await place.store.close()

    asyncio.run(check())


def test_a_second_answer_is_found_whoever_wrote_it(tmp_path: Path) -> None:
    """A4 and A6: results stand with the calls of their own run, each once, or the record is at fault."""

    async def check() -> None:
        place = await written(tmp_path, (*CALLED, begun("1.1"), done("1.1"), begun("1.2"), done("1.2")))
        assert (await verify(place.store, place.run)).ok
        await place.store.close()
        strangers: list[What] = [done("1.1"), begun("1.1", attempt=2), done("7.1")]
        for number, stranger in enumerate(strangers):
            folder = tmp_path / str(number)
            folder.mkdir()
            place = await written(folder, (*CALLED, begun("1.1"), done("1.1"), stranger))
            assert [f.position for f in (await verify(place.store, place.run)).faults] == [9]
            await place.store.close()

    asyncio.run(check())


def test_faults_are_bounded(tmp_path: Path) -> None:
    async def check() -> None:
        said = [PersonSaid((Text("x"),), item=f"item{number}") for number in range(FAULTS_MAX + 50)]
        place = await written(tmp_path, [OPENED, *said])
        faults = (await verify(place.store, place.run)).faults
        assert len(faults) == FAULTS_MAX + 1
        assert faults[-1].what.startswith("There are more faults")
        await place.store.close()

    asyncio.run(check())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def crafted(draw: st.DrawFn) -> list[tuple[int, str]]:
    """Rows of known kinds whose payloads are almost right, or not at all."""
    whats = [*CALLED, begun("1.1"), done("1.1"), asked(2, blocks=(Pick(6, 8),)), GO]
    rows = []
    for what in draw(st.permutations(whats)):
        plain = to_plain(what)
        for name in draw(st.lists(st.sampled_from([*plain, "item", "redacted", "$x"]), max_size=2)):
            plain[name] = draw(JSON)
        rows.append((KIND_NUMBERS[type(what).__name__], canonical.encode(plain)))
    rows.append((draw(st.integers(1, 21)), draw(st.text(max_size=30).filter(str.isprintable))))
    return rows


@settings(max_examples=40)
@given(rows=crafted())
def test_f7_f8_crafted_rows_are_only_ever_told(rows: list[tuple[int, str]]) -> None:
    """F7, F8: no reader runs what a row says or falls back to another loader; only our errors come out."""

    async def check() -> None:
        store = await open_store(":memory:", clock=SimulatedClock(1))
        lease = await store.leases.take(RUN, elsewhere(), 1_000, new=True)
        kinds = {number: name for name, number in KIND_NUMBERS.items()}
        made_rows, head = [], genesis(RUN)
        for position, (kind, payload) in enumerate(rows, start=1):
            row = Row(position, kinds[kind], 1, 1, 1, b"s" * 16, payload)
            head = link(head, row)
            made_rows.append(Row(position, kinds[kind], 1, 1, 1, b"s" * 16, payload, head))
        try:
            await store.entries.append(Commit(RUN, 0, lease.epoch, made_rows, {blob_hash(BLOB): BLOB}))
        except ShiftbookError:
            await store.close()
            return
        assert not (await verify(store, RUN)).ok
        for read in (each_line, each_row, run_figures, first_prompt, whole_text):
            with contextlib.suppress(ShiftbookError):
                await read(store, RUN)
        await store.close()

    asyncio.run(check())


async def each_line(store: Store, run: str) -> None:
    async for entry in entries_of(store, run):
        assert summary_line(entry).isprintable()


async def each_row(store: Store, run: str) -> None:
    async for row in show_rows(store, run):
        canonical.encode(row)


async def first_prompt(store: Store, run: str) -> None:
    await prompt_view(store, run, 1)


async def whole_text(store: Store, run: str) -> None:
    async for _line in export_run(store, run):
        pass
