"""Whatever a crafted or damaged file holds comes out as `Damaged`, never as a crash and never as truth."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftbook.clock import Clock
from shiftbook.codec import Row, blob_hash
from shiftbook.errors import Damaged, Fenced, NewerFormat, RunExists, ShiftbookError
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Head, InboxItem, Lease, LeaseRow, RunRow, Snapshot, Store
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.ground import LEASE_MS, Ground, Writer, elsewhere, message, said
from tests.journal.places import holding, make, quick_folder, raw

TRUTH = {
    "leases": ("number", "run", "epoch", "host", "pid", "started", "until_ms", "mail", "checksum"),
    "inbox": ("run", "place", "id", "kind", "at_ms", "payload", "moved_to", "checksum"),
}


async def make_rich(path: Path) -> str:
    """A run with entries, a blob, a snapshot, an item that waits and one that was moved."""
    run = await make(path)
    store = await open_store(str(path))
    writer = await holding(store, run)
    for name in ("moved", "waits"):
        await store.inbox.put(run, message(name))
    await writer.append(
        said("hello", "moved"),
        taken={"moved": 2},
        blobs={blob_hash(b"blob"): b"blob"},
        snapshot=Snapshot("view", 1, 2, '{"n":1}'),
    )
    await store.close()
    return run


def loosen(path: Path) -> None:
    """Rebuild every table without its types and rules, as a crafted file would have them."""
    connection = apsw.Connection(str(path))
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    connection.execute("DROP VIEW book")
    for table in [str(name) for (name,) in tables]:
        columns = connection.execute(f"SELECT name FROM pragma_table_info('{table}')").fetchall()
        names = ", ".join(str(name) for (name,) in columns)
        key = {"entries": "id", "leases": "number", "runs": "number"}.get(table)
        loose = names.replace(key, f"{key} INTEGER PRIMARY KEY", 1) if key else names
        connection.execute(f"ALTER TABLE {table} RENAME TO old; CREATE TABLE {table} ({loose});")
        connection.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM old; DROP TABLE old")
    connection.close()


ODD = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.just("a\x00b"),
    st.just("x" * 100_000),
)
NOT_UTF8 = "CAST(x'ff00fe' AS TEXT)"
COLUMNS = {
    "entries": ("kind", "version", "at_ms", "epoch", "salt", "payload", "head"),
    "leases": ("epoch", "host", "pid", "started", "until_ms", "checksum"),
    "inbox": ("id", "kind", "at_ms", "payload", "moved_to", "checksum"),
    "blobs": ("name", "content"),
    "snapshots": ("name", "version", "position", "content", "checksum"),
    "runs": ("agent", "state", "ended", "opened_ms"),
    "tags": ("place", "tag"),
}
PLACES = [(table, column) for table, columns in COLUMNS.items() for column in columns]


async def look_at_everything(store: Store, run: str) -> list[object]:
    """What each reading function says: a value, or the error it raises."""
    name = blob_hash(b"blob")
    asked: list[Callable[[], Awaitable[object]]] = [
        lambda: store.entries.read(run),
        lambda: store.entries.head(run),
        lambda: anext(aiter(store.entries.follow(run))),
        lambda: store.leases.look(run),
        lambda: store.leases.take(run, elsewhere("b"), LEASE_MS),
        lambda: store.inbox.waiting(run),
        lambda: store.inbox.items(run),
        lambda: store.blobs.get(run, name),
        lambda: store.blobs.names(run),
        lambda: store.catalogue.runs(),
        lambda: store.catalogue.runs(state="running", tag="x"),
        lambda: store.catalogue.find(run[:4]),
        lambda: store.cache.load(run, "view", 1),
        lambda: store.catalogue.rebuild(),
        lambda: store.catalogue.runs(),
    ]
    told: list[object] = []
    for ask in asked:
        try:
            told.append(await ask())
        except ShiftbookError as error:
            told.append(error)
    return told


@pytest.fixture(scope="module")
def crafted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with quick_folder(tmp_path_factory.mktemp("crafted")) as folder:
        path = folder / "book.db"
        run = asyncio.run(make_rich(path))
        loosen(path)
        yield path, run


@settings(max_examples=150)
@given(place=st.sampled_from(PLACES), value=ODD)
def test_f7_f8_a_crafted_row_is_damaged_or_harmless(crafted: Any, place: tuple[str, str], value: Any) -> None:
    """Any value of any type in any column: nothing but our errors, no code loaded, no other serializer."""
    path, run = crafted
    table, column = place
    craft(path, run, f"UPDATE {table} SET {column} = ?", (value,))


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(place))
def test_f7_a_text_that_is_not_utf8_is_damaged_or_harmless(crafted: Any, place: tuple[str, str]) -> None:
    path, run = crafted
    craft(path, run, f"UPDATE {place[0]} SET {place[1]} = {NOT_UTF8}", ())


def craft(path: Path, run: str, statement: str, bindings: tuple[Any, ...]) -> None:
    """Change the file, look at everything in it, put it back."""
    whole = path.read_bytes()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = wal").fetchall()
    connection.execute(statement, bindings)
    connection.close()
    try:
        asyncio.run(look_at(path, run))
    finally:
        path.write_bytes(whole)


def well_typed(value: object) -> None:
    """Every field of what a store says is of the type that it promises."""
    kinds: dict[type, tuple[type, ...]] = {
        Row: (int, str, int, int, int, bytes, str),
        InboxItem: (str, str, int, str),
        RunRow: (str, str, str, tuple, int, int, int),
        LeaseRow: (str, int),
        Snapshot: (str, int, int, str),
        Lease: (str, int, int),
        Head: (int, bytes),
    }
    if type(value) in kinds:
        values = [getattr(value, name) for name in value.__slots__]  # type: ignore[attr-defined]
        assert tuple(map(type, values))[: len(kinds[type(value)])] == kinds[type(value)]
    else:
        assert value is None or isinstance(value, (str, bytes, ShiftbookError))


async def look_at(path: Path, run: str) -> None:
    clock = SimulatedClock()
    clock.advance(2 * LEASE_MS)
    store = await open_store(str(path), clock=clock)
    try:
        for value in await look_at_everything(store, run):
            if isinstance(value, list):
                for each in value:
                    well_typed(each)
            else:
                well_typed(value)
    finally:
        await store.close()


def test_a_gap_and_an_unknown_kind_are_told(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    run = asyncio.run(make(path, entries=5))

    async def told(statement: str) -> ShiftbookError:
        whole = path.read_bytes()
        raw(path, statement)
        store = await open_store(str(path))
        try:
            with pytest.raises(ShiftbookError) as error:
                await store.entries.read(run)
            return error.value
        finally:
            await store.close()
            path.write_bytes(whole)

    gap = asyncio.run(told("DELETE FROM entries WHERE id & 4294967295 = 3"))
    assert isinstance(gap, Damaged)
    assert "Entry 3" in str(gap)
    assert isinstance(asyncio.run(told("UPDATE entries SET kind = 99 WHERE id & 4294967295 = 2")), Damaged)
    newer = asyncio.run(told("UPDATE entries SET kind = 99, version = 2 WHERE id & 4294967295 = 2"))
    assert isinstance(newer, NewerFormat)
    assert "Update Shiftbook" in str(newer)


@pytest.mark.parametrize(
    ("table", "column"), [(table, column) for table, columns in TRUTH.items() for column in columns]
)
def test_c4_a_flipped_byte_in_a_lease_or_inbox_row_is_found(table: str, column: str, tmp_path: Path) -> None:
    """A lease epoch that is one lower would let a fenced writer in again."""
    path = tmp_path / "book.db"
    run = asyncio.run(make_rich(path))
    other = asyncio.run(make(path, seed=1))
    flipped = {
        "run": f"'{run[:-1]}_'" if table == "leases" else "2",
        "host": "'b.example'",
        "started": "'1'",
        "id": "id || 'x'",
        "kind": "'RuleSet'",
        "payload": "payload || ' '",
        "checksum": "CAST(substr(checksum, 2) || x'00' AS BLOB)",
        "moved_to": "3",
        "number": "number + 7",
        "place": "place + 7",
    }.get(column, f"{column} + 1")
    raw(path, f"UPDATE {table} SET {column} = {flipped} WHERE {'number' if table == 'leases' else 'run'} = 1")

    async def main() -> None:
        store = await open_store(str(path), clock=SimulatedClock())
        # A message that went over to another run is missed in its own and refused in the other.
        for read_by in (run, other) if table == "inbox" and column == "run" else (run,):
            asked = store.leases.look(run) if table == "leases" else store.inbox.items(read_by)
            with pytest.raises(ShiftbookError) as told:
                await asked
            assert isinstance(told.value, Damaged) or (table == "leases" and column == "run")
        if table == "leases":
            with pytest.raises(ShiftbookError):
                await store.leases.take(run, elsewhere("b"), LEASE_MS)
        await store.close()

    asyncio.run(main())


def test_a_line_of_the_catalogue_that_is_damaged_or_gone_is_read_from_the_entries(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    run = asyncio.run(make_rich(path))

    async def lines() -> list[RunRow]:
        store = await open_store(str(path), read_only=True)
        try:
            return await store.catalogue.runs()
        finally:
            await store.close()

    (whole,) = asyncio.run(lines())
    assert whole.run == run
    for damage in ("UPDATE runs SET state = 'walking'", "DELETE FROM tags; DELETE FROM runs"):
        raw(path, damage)
        assert asyncio.run(lines()) == [whole], damage


def test_a_damaged_blob_is_told_and_a_damaged_snapshot_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    run = asyncio.run(make_rich(path))
    raw(path, "UPDATE blobs SET content = x'00'", "UPDATE snapshots SET content = '{\"n\":2}'")

    async def main() -> None:
        store = await open_store(str(path))
        with pytest.raises(Damaged, match="do not hash to its name"):
            await store.blobs.get(run, blob_hash(b"blob"))
        assert await store.cache.load(run, "view", 1) is None
        await store.close()

    asyncio.run(main())


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    run = asyncio.run(make(path, entries=200))
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    path.write_bytes(content)

    async def main() -> None:
        store = await open_store(str(path))
        with pytest.raises(Damaged, match="damaged"):
            await store.entries.read(run)
        await store.close()

    asyncio.run(main())


def test_b15_an_id_whose_run_was_deleted_half_way_is_clean_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    run = asyncio.run(make_rich(path))

    async def take() -> str:
        clock = SimulatedClock()
        clock.advance(2 * LEASE_MS)
        store = await open_store(str(path), clock=clock)
        try:
            lease = await store.leases.take(run, elsewhere("b"), LEASE_MS, new=True)
            await Writer(store, lease, clock).append(said("anew"))
            rows = await store.entries.read(run)
            assert [row.position for row in rows] == [1]
            assert await store.cache.load(run, "view", 1) is None
            return "clean"
        except RunExists:
            return "refused"
        finally:
            await store.close()

    steps = (
        ("DELETE FROM entries WHERE id & 4294967295 = 1", "refused"),
        ("DELETE FROM entries", "refused"),
        ("DELETE FROM blobs", "refused"),
        ("DELETE FROM inbox WHERE moved_to IS NOT NULL", "clean"),
    )
    for statement, wanted in steps:
        raw(path, statement)
        assert asyncio.run(take()) == wanted


def test_b15_a_run_that_died_before_its_first_entry_is_opened_anew(tmp_path: Path) -> None:
    path = tmp_path / "book.db"

    async def main() -> None:
        async def open_again(_clock: Clock) -> Store:
            return await open_store(str(path), clock=clock)

        clock = SimulatedClock()
        ground = Ground(open_again, clock)
        dead = await ground.begin(await ground.open(), opened=False)
        clock.advance(LEASE_MS)
        store = await ground.open()
        lease = await store.leases.take(dead.run, elsewhere("b"), LEASE_MS, new=True)
        with pytest.raises(Fenced) as told:
            await dead.append(said("late"))
        assert (told.value.epoch, told.value.current) == (dead.lease.epoch, lease.epoch)
        await Writer(store, lease, clock).append(said("first"))
        with pytest.raises(RunExists, match="resume it, or choose another id"):
            await store.leases.take(dead.run, elsewhere("c"), LEASE_MS, new=True)
        await ground.close()

    asyncio.run(main())
