"""Opening a SQLite book: laid out once, durable as read back, and every refusal one clear sentence."""

from __future__ import annotations

import asyncio
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import apsw
import pytest

from shiftbook.clock import SystemClock
from shiftbook.entries import KIND_NUMBERS
from shiftbook.errors import NewerFormat, ShiftbookError, StoreError, StoreUnusable
from shiftbook.journal import sqlite_database
from shiftbook.journal.open import open_store
from shiftbook.journal.sqlite import open_sqlite
from shiftbook.journal.sqlite_database import SCHEMA, Address, migrations, open_database
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.ground import said
from tests.journal.places import holding, make, raw

ROOT = Path(__file__).parents[2]


def test_a_fresh_database_is_laid_out_by_the_migrations(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    asyncio.run(make(path))
    assert [number for number, _ in migrations()] == list(range(1, SCHEMA + 1))
    applied = raw(path, "SELECT number, name FROM migrations")
    assert applied == [(number, file.stem) for number, file in migrations()]
    assert raw(path, "PRAGMA user_version") == [(SCHEMA,)]
    assert raw(path, "PRAGMA page_size") == [(sqlite_database.PAGE_BYTES,)]
    assert dict(raw(path, "SELECT name, number FROM kinds")) == KIND_NUMBERS
    assert raw(path, "SELECT position, kind FROM book") == [(1, "RunOpened")]


def test_opening_again_migrates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    asyncio.run(make(path))
    asked = ("SELECT * FROM migrations", "SELECT name, sql FROM sqlite_schema ORDER BY name")
    before = [raw(path, question) for question in asked]
    asyncio.run(make(path, seed=1))
    assert [raw(path, question) for question in asked] == before


def renamed(folder: Path, before: str, after: str) -> None:
    """A database, its log and its index, under another name."""
    for file in folder.glob(f"{before}*"):
        file.rename(folder / file.name.replace(before, after))


@pytest.mark.parametrize("commits", ["in-loop", "writer"])
@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_a_file_that_is_gone_from_its_place_takes_no_more_commits(
    commits: Literal["in-loop", "writer"], what: str, tmp_path: Path
) -> None:
    """SQLite would go on in a file that no path leads to, and everything in it would be lost at the end."""

    async def main() -> None:
        path = tmp_path / "book.db"
        run = await make(path)
        store = await open_store(str(path), commits=commits)
        writer = await holding(store, run)
        await writer.append(said("before"))
        renamed(tmp_path, "book.db", "kept.db")
        if what == "replaced":
            await make(path, seed=1)
        before = writer.position
        with pytest.raises(StoreUnusable, match="was deleted, moved or replaced"):
            await writer.append(said("lost"))
        renamed(tmp_path, "book.db", "other.db")
        renamed(tmp_path, "kept.db", "book.db")
        assert (await store.entries.head(run)).position == before
        await writer.append(said("after"))
        await store.close()

    asyncio.run(main())


def test_a_store_can_be_opened_again_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is renewed on a connection of its own; a tool may have gone to another folder by then."""

    async def main() -> None:
        monkeypatch.chdir(tmp_path)
        store = await open_store("book.db")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        await (await open_store(store.name, create=False)).close()
        await store.close()

    asyncio.run(main())


def test_durability_is_read_back(tmp_path: Path) -> None:
    async def main() -> None:
        address = Address("book", str(tmp_path / "book.db"))
        database = await open_database(address, SimulatedClock())
        asked = ("journal_mode", "synchronous", "foreign_keys", "page_size")
        assert [database.rows(f"PRAGMA {setting}")[0][0] for setting in asked] == ["wal", 2, 1, 8192]
        database.connection.close()

    asyncio.run(main())


@pytest.fixture
def without_wal() -> Iterator[None]:
    before = apsw.vfs_names()[0]
    apsw.set_default_vfs("unix-none")
    yield
    apsw.set_default_vfs(before)


@pytest.mark.skipif("unix-none" not in apsw.vfs_names(), reason="SQLite has no lockless file system here")
@pytest.mark.usefixtures("without_wal")
def test_a_file_system_without_wal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match=r"write-ahead log \(journal mode delete\).*local disk"):
        asyncio.run(open_store(str(tmp_path / "book.db")))


def test_a_newer_layout_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    asyncio.run(make(path))
    raw(path, f"PRAGMA user_version = {SCHEMA + 1}")
    holder = apsw.Connection(str(path))
    holder.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    holder.execute("DELETE FROM kinds WHERE number = 1")
    holder.close()
    log = tmp_path / "book.db-wal"
    before = (path.read_bytes(), log.read_bytes())
    assert before[1], "the change is still in the log, where a careless close would move it"
    for read_only in (False, True):
        with pytest.raises(NewerFormat, match=r"newer Shiftbook.*Update Shiftbook.*nothing was changed"):
            asyncio.run(open_store(str(path), read_only=read_only))
    assert (path.read_bytes(), log.read_bytes()) == before


@pytest.mark.parametrize(
    ("make_it", "said_so"),
    [
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.write_bytes(b"no database at all" * 99), "not a SQLite database"),
        (lambda path: raw(path, "CREATE TABLE theirs (x)"), "another program"),
        (lambda path: raw(path, "PRAGMA user_version = 7"), "another program"),
    ],
)
def test_what_is_not_ours_is_refused(make_it: Any, said_so: str, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    make_it(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreUnusable, match=said_so):
        asyncio.run(open_store(str(path)))
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize(
    ("address", "options", "said_so"),
    [
        ("{}/none/book.db", {}, "directory .*none does not exist"),
        ("{}/book.db", {"create": False}, "There is no database"),
        ("{}/book.db", {"read_only": True}, "There is no database"),
        ("postgresql://me:secret@127.0.0.1:1/db", {}, "postgresql://me@127.0.0.1:1/db: nothing listens"),
        ("sqlite:///book.db", {}, "path of a SQLite file"),
        ("", {}, "path of a SQLite file"),
        ("a\0b", {}, "path of a SQLite file"),
    ],
)
def test_a_bad_address_is_one_clear_sentence(
    address: str, options: dict[str, Any], said_so: str, tmp_path: Path
) -> None:
    with pytest.raises(StoreUnusable, match=said_so) as told:
        asyncio.run(open_store(address.format(tmp_path), **options))
    assert "secret" not in str(told.value)
    assert told.value.exit_code == 2
    assert not (tmp_path / "book.db").exists()


def test_read_only_reads_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    run = asyncio.run(make(path, entries=3))

    async def main() -> None:
        store = await open_store(str(path), read_only=True)
        assert len(await store.entries.read(run)) == 3
        lease = await store.leases.look(run)
        assert lease.holder is not None
        with pytest.raises(StoreUnusable, match="may not be written"):
            await store.leases.take("other", lease.holder, 1000, new=True)
        await store.close()

    before = path.read_bytes()
    asyncio.run(main())
    assert path.read_bytes() == before


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can look into; pytest's own are private."""
    with tempfile.TemporaryDirectory(prefix="shiftbook") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def told_to_the_powerless(path: Path) -> list[str]:
    """What a process that permissions apply to is told when it opens the database."""
    command = [sys.executable, "-m", "tests.journal.children", "unwritable", str(path)]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    return child.stdout.splitlines()


def test_a_read_only_directory_is_told(open_folder: Path) -> None:
    (open_folder / "closed").mkdir()
    (open_folder / "closed").chmod(0o555)
    kind, message = told_to_the_powerless(open_folder / "closed" / "book.db")
    assert kind == "StoreUnusable"
    assert "book.db" in message
    assert "directory that it may write" in message


def test_a_read_only_file_is_told_and_nothing_is_lost(open_folder: Path) -> None:
    path = open_folder / "book.db"
    run = asyncio.run(make(path, entries=3))
    path.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    open_folder.chmod(0o555)
    kind, message = told_to_the_powerless(path)
    assert kind == "StoreUnusable"
    assert "permission" in message
    open_folder.chmod(0o755)
    path.chmod(0o644)

    async def main() -> None:
        store = await open_store(str(path))
        assert (await store.entries.head(run)).position == 3
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize("commits", ["in-loop", "writer"])
def test_a_lock_that_stays_is_told_within_its_bound(commits: Any, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    run = asyncio.run(make(path))

    async def main() -> None:
        store = await open_sqlite(Address("the book", str(path)), SystemClock(), commits=commits, busy_ms=20)
        writer = await holding(store, run)
        commit = await writer.commit(said("x"))
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        ends = await asyncio.gather(*(store.entries.append(commit) for _ in range(3)), return_exceptions=True)
        for end in ends:
            assert type(end) is StoreError
            assert "the book: another program kept the database locked for 0.02 s" in str(end)
        assert (await store.entries.head(run)).position == 1
        other.execute("ROLLBACK")
        other.close()
        await writer.append(said("x"))
        assert (await store.entries.head(run)).position == 2
        await store.close()

    asyncio.run(main())


@pytest.fixture
def pages_max() -> Iterator[list[int]]:
    """Bounds the size of every database that is opened: a full disk, without a disk."""
    bound: list[int] = []

    def limit(connection: apsw.Connection) -> None:
        if bound:
            connection.execute(f"PRAGMA max_page_count = {bound[0]}").fetchall()

    apsw.connection_hooks.append(limit)
    yield bound
    apsw.connection_hooks.remove(limit)


@pytest.mark.parametrize("commits", ["in-loop", "writer"])
def test_a_full_disk_loses_nothing(commits: Any, pages_max: list[int], tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    run = asyncio.run(make(path))
    pages_max.append(raw(path, "PRAGMA page_count")[0][0] + 2)
    large, small = said("x" * 60_000), said("y")

    async def main() -> None:
        store = await open_store(str(path), commits=commits)
        writer = await holding(store, run)
        for what in (large, large):
            with pytest.raises(StoreError, match=r"book.db: the disk.*is full; nothing of this was written"):
                await writer.append(what)
        await writer.append(small)
        await store.close()

    asyncio.run(main())
    pages_max.clear()

    async def more_room() -> None:
        store = await open_store(str(path), commits=commits)
        writer = await holding(store, run)
        await writer.append(large)
        assert [row.position for row in await store.entries.read(run)] == [1, 2, 3]
        await store.close()

    asyncio.run(more_room())
    assert raw(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_full_disk_refuses_one_of_a_group(pages_max: list[int], tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    runs = [asyncio.run(make(path, seed=number)) for number in range(5)]
    pages_max.append(raw(path, "PRAGMA page_count")[0][0] + 2)

    async def main() -> None:
        store = await open_store(str(path), commits="writer")
        whats = [said("y"), said("y"), said("x" * 60_000), said("y"), said("y")]
        writers = [await holding(store, run) for run in runs]
        ends = await asyncio.gather(
            *(writer.append(what) for writer, what in zip(writers, whats, strict=True)),
            return_exceptions=True,
        )
        assert [isinstance(end, StoreError) for end in ends] == [False, False, True, False, False]
        positions = [(await store.entries.head(run)).position for run in runs]
        assert positions == [2, 2, 1, 2, 2]
        await store.close()

    asyncio.run(main())


def test_errors_tell_no_payload(tmp_path: Path) -> None:
    """The driver's error carries statement and bindings in its traceback: it is not chained."""
    path = tmp_path / "book.db"
    run = asyncio.run(make(path))
    raw(path, "DROP TABLE snapshots")

    async def main() -> ShiftbookError:
        store = await open_store(str(path))
        writer = await holding(store, run)
        raw(path, "DROP TABLE entries")
        try:
            await writer.append(said("a secret"))
        except ShiftbookError as error:
            return error
        finally:
            await store.close()
        raise AssertionError("the append went through")

    error = asyncio.run(main())
    assert "secret" not in str(error)
    assert error.__cause__ is None
    assert error.__suppress_context__
