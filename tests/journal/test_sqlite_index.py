"""The search index as a file: apart from the journal, made anew, and no harm to another's file."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from shiftbook.errors import Damaged, StoreUnusable
from shiftbook.journal import sqlite_index
from shiftbook.journal.index import Covered
from shiftbook.journal.sqlite_index import SUFFIX, open_index
from tests.journal.indexing import append, book, filled, in_loop, said


def names(folder: Path) -> list[str]:
    """The databases in a folder."""
    return [each.name for each in folder.iterdir() if not each.name.endswith(("-wal", "-shm"))]


def damage(path: Path) -> None:
    """Overwrite the head of the file's first page, behind what says whose file it is."""
    content = bytearray(path.read_bytes())
    content[100:110] = b"\xff" * 10
    path.write_bytes(bytes(content))


@in_loop
async def test_it_stands_apart_from_the_journal_and_does_not_hold_it_up(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    async with book("sqlite", said("kite"), said("end"), path=str(path)) as store:
        index = open_index(str(path))
        await filled(index, store)
        other = apsw.Connection(str(path) + SUFFIX)
        other.execute("BEGIN IMMEDIATE")
        # Somebody fills: an append to the journal does not even notice.
        await append(store, "second", [said("more")])
        other.close(True)
        await index.close()
    assert set(names(tmp_path)) == {"book.db", f"book.db{SUFFIX}"}


@in_loop
async def test_a_file_of_another_layout_is_made_anew_and_a_damaged_one_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = str(tmp_path / "book.db")
    path = Path(target + SUFFIX)
    async with book("sqlite", said("kite"), said("end")) as store:
        index = open_index(target)
        covered = await filled(index, store)
        await index.close()
        monkeypatch.setattr(sqlite_index, "LAYOUT", sqlite_index.LAYOUT + 1)
        index = open_index(target)
        assert await index.covered("run") == Covered()
        assert await filled(index, store) == covered
        await index.close()
        damage(path)
        with pytest.raises(Damaged, match="search index is damaged"):
            open_index(target)
        index = open_index(target, anew=True)
        assert await filled(index, store) == covered
        await index.close()


@pytest.mark.parametrize("content", [b"my own notes, much longer than a header" * 9, None])
def test_a_file_that_is_not_ours_is_refused_and_left(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / f"book.db{SUFFIX}"
    if content is None:
        with apsw.Connection(str(path)) as other:
            other.execute("CREATE TABLE mine (x)")
        other.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match="move it away"):
        open_index(str(tmp_path / "book.db"))
    assert path.read_bytes() == before
