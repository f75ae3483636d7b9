"""Files that are odd to open, and bytes that are odd to read, beside a sound one: a walk names each and goes
on. What is read as rows (`measure`) and what is read whole (`replay`) say the same."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from shiftbook.sessions import Unmeasured, walk_requests, walk_sessions
from shiftbook.sessions.source import Source
from shiftbook.sessions.streaming import Faults, parsed, raw_lines
from tests.measure.files import growing, reply, write

Walk = Callable[[Iterable[Path]], Iterable[object]]
WALKS = pytest.mark.parametrize("walk", [walk_requests, walk_sessions])


def refused(found: Iterable[object]) -> dict[str, str]:
    """What was left out, by the file's name."""
    return {Path(each.path).name: each.what for each in found if isinstance(each, Unmeasured)}


@WALKS
def test_what_is_no_file_is_named_and_never_waited_for(tmp_path: Path, walk: Walk) -> None:
    sound = write(tmp_path / "sound.jsonl", growing(3))
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")  # nobody writes to it: opening it would wait for ever
    (tmp_path / "broken.jsonl").symlink_to(tmp_path / "nowhere.jsonl")
    (tmp_path / "round.jsonl").symlink_to(tmp_path / "round.jsonl")
    assert refused(walk([tmp_path])).keys() == {"pipe.jsonl", "broken.jsonl", "round.jsonl"}
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


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter, whose rights are given back so that it can be removed."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        for path in Path(folder).rglob("*"):
            path.chmod(0o755)


@contextmanager
def as_nobody() -> Iterator[None]:
    """No rights beyond everybody's: the superuser, under whom tests may run, may read anything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@WALKS
def test_what_may_not_be_read_is_told_and_the_rest_counts(walk: Walk) -> None:
    with open_folder() as folder:
        for name in ("sound", "closed", "unlisted/a", "unentered/b"):
            (folder / name).parent.mkdir(exist_ok=True)
            write(folder / f"{name}.jsonl", growing(2))
        (folder / "closed.jsonl").chmod(0)
        (folder / "unlisted").chmod(0o311)
        (folder / "unentered").chmod(0o644)
        with as_nobody():
            walked = list(walk([folder]))
            alone = list(walk([folder / "unentered" / "b.jsonl", folder / "unlisted"]))
        assert refused(walked) == {
            "closed.jsonl": "cannot be opened (Permission denied); check the path and its permissions",
            "b.jsonl": "cannot be opened (Permission denied); check the path",
            "unlisted": "is a folder that cannot be read; check its permissions",
        }
        assert len(walked) == 4
        assert all(each.lost for each in walked if isinstance(each, Unmeasured))
        assert refused(alone).keys() == {"b.jsonl", "unlisted"}


def test_events_beside_a_state_that_may_not_be_read_are_told() -> None:
    with open_folder() as folder:
        state = {"id": "c1", "stats": {"usage_to_metrics": {}}}
        (folder / "base_state.json").write_text(json.dumps(state), encoding="utf-8")
        (folder / "events").mkdir()
        (folder / "events").chmod(0)
        with as_nobody():
            (found,) = walk_requests([folder / "base_state.json"])
        assert not isinstance(found, Unmeasured)
        assert [each.what for each in found.broken] == [
            "the folder events beside it cannot be read (Permission denied)"
        ]


def test_a_file_that_is_cut_while_it_is_read_counts_what_came(tmp_path: Path) -> None:
    lines = growing(3)
    for line in lines[1:]:
        line["message"]["content"] = [{"type": "text", "text": "A long row of beans. " * 20_000}]
    file = write(tmp_path / "cut.jsonl", lines)
    faults = Faults()
    reading = raw_lines(Source(file), faults)
    came = [next(reading), next(reading)]
    os.truncate(file, file.stat().st_size // 2)
    came += reading
    values = [parsed(line, number, faults) for number, line in came]
    assert [value is not None for value in values] == [True, True, False]
    assert [(each.line, each.what) for each in faults.all()] == [
        (3, "is cut off in the middle of a JSON value")
    ]


def packed(way: str, sound: bytes) -> bytes:
    if way == "xz":
        return lzma.compress(sound)
    if way == "bz2":
        return bz2.compress(sound)
    if way == "gz":
        return gzip.compress(sound)
    stream = io.BytesIO()
    if way == "zip":
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("sound.jsonl", sound)
        return stream.getvalue()
    with tarfile.open(fileobj=stream, mode="w:gz" if way == "tar.gz" else "w") as tar:
        member = tarfile.TarInfo("sound.jsonl")
        member.size = len(sound)
        tar.addfile(member, io.BytesIO(sound))
    return stream.getvalue()


@WALKS
@pytest.mark.parametrize(
    ("way", "what"),
    [
        ("gz", None),
        ("xz", "is packed with xz, which is not read; unpack it first"),
        ("bz2", "is packed with bzip2, which is not read; unpack it first"),
        ("tar", "is a tar archive; unpack it and name the folder"),
        ("tar.gz", "is a tar archive; unpack it and name the folder"),
        ("zip", "is a zip archive and no log of Inspect; unpack it and name the folder"),
    ],
)
def test_a_packed_session_is_read_or_says_what_to_do(
    tmp_path: Path, walk: Walk, way: str, what: str | None
) -> None:
    sound = write(tmp_path / "sound.jsonl", growing(2)).read_bytes()
    file = tmp_path / f"packed.{way}"
    file.write_bytes(packed(way, sound))
    told = refused(walk([file]))
    assert told == ({} if what is None else {file.name: what})


def test_a_zip_archive_that_is_cut_says_so(tmp_path: Path) -> None:
    file = tmp_path / "cut.zip"
    file.write_bytes(packed("zip", b"{}" * 1_000)[:900])
    assert "is a zip archive that cannot be read" in refused(walk_requests([file]))["cut.zip"]


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
