"""Files that are odd to open, and bytes that are odd to read, beside a sound one: a walk names each and goes
on. What is read as rows (`measure`) and what is read whole (`replay`) say the same."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from shiftbook.sessions import Unmeasured, walk_requests, walk_sessions
from tests.measure.files import growing, reply, write

Walk = Callable[[Iterable[Path]], Iterable[object]]
WALKS = pytest.mark.parametrize("walk", [walk_requests, walk_sessions])


def refused(found: Iterable[object]) -> dict[str, str]:
    """What was left out, by the file's name."""
    return {Path(each.path).name: each.what for each in found if isinstance(each, Unmeasured)}


@WALKS
def test_what_is_no_file_is_named_or_passed_by_and_never_waited_for(tmp_path: Path, walk: Walk) -> None:
    sound = write(tmp_path / "sound.jsonl", growing(3))
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")  # nobody writes to it: opening it would wait for ever
    (tmp_path / "broken.jsonl").symlink_to(tmp_path / "nowhere.jsonl")
    (tmp_path / "round.jsonl").symlink_to(tmp_path / "round.jsonl")
    walked = list(walk([tmp_path]))
    assert (len(walked), refused(walked)) == (1, {})
    odd = [tmp_path / f"{name}.jsonl" for name in ("pipe", "broken", "round")]
    named = list(walk([*odd, tmp_path / "folder.jsonl", sound]))
    assert len(named) == 4
    told = refused(named)
    assert told.keys() == {path.name for path in odd}
    assert "is not a regular file" in told["pipe.jsonl"]
    assert "cannot be opened (No such file" in told["broken.jsonl"]
    assert "cannot be opened (" in told["round.jsonl"]


@WALKS
def test_a_file_that_vanishes_during_the_walk_is_named(tmp_path: Path, walk: Walk) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path / f"{name}.jsonl", growing(2))
    # Whoever lists the folder has met all three names before the first is read.
    walking = iter(walk([tmp_path / f"{name}.jsonl" for name in ("a", "b", "c")]))
    first = next(walking)
    (tmp_path / "b.jsonl").unlink()
    told = refused([first, *walking])
    assert list(told) == ["b.jsonl"]
    assert "cannot be opened (No such file" in told["b.jsonl"]


def test_a_file_that_grows_while_it_is_read_counts_its_whole_lines(tmp_path: Path) -> None:
    whole = growing(3)
    file = write(tmp_path / "live.jsonl", whole)
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(reply(4, 24_000, 23_000, 4))[:-20])  # the writer is in the middle of a line
    (found,) = walk_requests([file])
    assert not isinstance(found, Unmeasured)
    assert len(found.rows) == 3
    assert [each.line for each in found.broken] == [5]
    write(file, [*whole, reply(4, 24_000, 23_000, 4)])
    (found,) = walk_requests([file])
    assert not isinstance(found, Unmeasured)
    assert (len(found.rows), found.broken) == (4, ())


@pytest.mark.parametrize("way", ["plain", "CRLF", "BOM", "BOM and CRLF", "NUL line", "UTF-16"])
def test_odd_bytes_change_no_count_or_are_named(tmp_path: Path, way: str) -> None:
    plain = write(tmp_path / "plain.jsonl", growing(3)).read_bytes()
    bytes_of = {
        "plain": plain,
        "CRLF": plain.replace(b"\n", b"\r\n"),
        "BOM": b"\xef\xbb\xbf" + plain,
        "BOM and CRLF": b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n"),
        "NUL line": plain + b"\0" * 64 + b"\n",
        "UTF-16": plain.decode().encode("utf-16"),
    }
    file = tmp_path / "odd.jsonl"
    file.write_bytes(bytes_of[way])
    (found,) = walk_requests([file])
    if way == "UTF-16":
        assert isinstance(found, Unmeasured)
        assert "holds NUL bytes" in found.what
        return
    assert not isinstance(found, Unmeasured)
    assert [(row.usage.cache_read or 0) + (row.usage.cache_write or 0) for row in found.rows] == [
        21_000,
        22_000,
        23_000,
    ]
    assert [each.what for each in found.broken] == (
        [each.what for each in found.broken if "holds NUL bytes" in each.what] if way == "NUL line" else []
    )
    assert len(found.broken) == (way == "NUL line")
