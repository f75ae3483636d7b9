"""The book grows with what happened, not with how long the run is."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import apsw
import pytest

from shiftbook.clock import SystemClock
from shiftbook.entries import ActionFinished, ActionStarted, ModelAnswered, ModelAsked, Pick, RunRested
from shiftbook.journal.open import open_store
from shiftbook.messages import Call, Text, Usage
from shiftbook.testing.ground import Writer, said
from tests.journal.places import holding, make, quick_folder, raw

TURNS = (250, 500, 1000, 2000)
OVERHEAD_A_ROW_MAX = 85
"""Bytes of the file for a row beside its payload: salt, key, stamps, half a chain head, room left in a page.
(Salt 16, half a head 16, columns and key about 17, page room and tree about 30.)"""

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


async def turn(writer: Writer, number: int, chance: random.Random) -> None:
    """One turn of the benchmark's workload, in two commits."""
    call, result = f"c{number}", "".join(chance.choices(LETTERS, k=1024))
    await writer.append(
        ModelAnswered(
            number,
            (
                Text(f"Step {number}: I will look up item {number}."),
                Call(call, "lookup", {"q": f"item-{number}"}),
            ),
            "calls",
            Usage(uncached=100, output=20),
        ),
        ActionStarted(call, "lookup", f"{writer.run}/{call}"),
    )
    position = writer.position
    await writer.append(
        ActionFinished(call, "done", (Text(result),)),
        ModelAsked(number + 1, (Pick(position - 1, position + 1),), "0" * 64, 1000, "bound"),
    )


def size(path: Path) -> int:
    pages, page_size = raw(path, "PRAGMA page_count")[0][0], raw(path, "PRAGMA page_size")[0][0]
    return int(pages * page_size)


def test_e1_e2_bytes_grow_in_line_with_turns(tmp_path: Path) -> None:
    with quick_folder(tmp_path) as folder:
        path = folder / "book.db"
        run = asyncio.run(make(path))
        fixed = size(path)
        chance, sizes, done = random.Random(7), [], 0
        for turns in TURNS:

            async def grow(done: int = done, turns: int = turns) -> None:
                store = await open_store(str(path))
                writer = await holding(store, run)
                for number in range(done, turns):
                    await turn(writer, number, chance)
                await store.close()

            asyncio.run(grow())
            done = turns
            sizes.append(size(path))
        told = raw(path, "SELECT sum(length(payload)) FROM entries")[0][0]
    grown = [
        (after - before) / (turns_after - turns_before)
        for before, after, turns_before, turns_after in zip(sizes, sizes[1:], TURNS, TURNS[1:], strict=False)
    ]
    assert max(grown) <= 1.02 * min(grown), f"the cost of a turn depends on how many came before: {grown}"
    assert (sizes[-1] - fixed - told) / (4 * TURNS[-1]) <= OVERHEAD_A_ROW_MAX, "rows are kept wastefully"


@pytest.fixture
def statements() -> object:
    """Every statement that is executed on any connection of this process."""
    seen: list[str] = []

    def listen(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: seen.append(str(event["sql"])))

    apsw.connection_hooks.append(listen)
    yield seen
    apsw.connection_hooks.remove(listen)


def test_an_ordinary_commit_is_one_statement(statements: list[str], tmp_path: Path) -> None:
    """No second statement for the catalogue, the head or a lock; more only where a run rests or goes on."""
    path = tmp_path / "book.db"
    run = asyncio.run(make(path))

    async def main() -> None:
        store = await open_store(str(path), clock=SystemClock())
        writer = await holding(store, run)
        await writer.append(said("the first of this process reads where the run stands"))
        for number in range(3):
            statements.clear()
            await turn(writer, number, random.Random(7))
            assert [sql.split()[:3] for sql in statements] == [["INSERT", "INTO", "entries"]] * 2
        await writer.append(RunRested("finished"))
        statements.clear()
        await writer.append(said("another task"))
        assert any(sql.startswith("INSERT INTO runs") for sql in statements)
        statements.clear()
        await writer.append(said("more"))
        assert len(statements) == 1
        await store.close()

    asyncio.run(main())
