"""Broken files: each is refused with one sentence and its line, and plain and gzip read the same."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from pathlib import Path

import pytest

from shiftbook.errors import SessionUnreadable
from shiftbook.sessions import PersonText, each_session, open_session, source

FIXTURES = Path(__file__).parent / "fixtures"
LINE = json.dumps({"type": "user", "uuid": "a", "message": {"role": "user", "content": "go on"}}).encode()
RUN = b'{"task_id": 0, "traj": [{"role": "user", "content": "a"}]}'
NOISE = b"".join(hashlib.sha256(bytes([number])).hexdigest().encode() for number in range(256))


def deep(levels: int) -> bytes:
    return b'{"type": "user", "uuid": "x", "deep": ' + b"[" * levels + b"]" * levels + b"}"


BROKEN = {
    "empty": (b"", 0, "is empty"),
    "blank": (b"\n\n  \n", 0, "is empty"),
    "torn last line": (LINE + b"\n" + LINE[:-9], 2, "is cut off in the middle"),
    "torn first line": (LINE[:-9] + b"\n" + LINE, 1, "is cut off in the middle"),
    "torn only line": (LINE[:-9], 1, "is no session of a known format either way (known: claude-code, codex"),
    "not JSON": (LINE + b"\nhello\n", 2, "is not JSON: Expecting value at column 1"),
    "two on a line": (LINE + b"\n" + LINE + LINE, 2, "more text follows at column"),
    "a list on a line": (LINE + b"\n[1]\n", 2, "is a list where a JSON object should be"),
    "trailing NULs": (LINE + b"\n" + b"\x00" * 512, 2, "holds NUL bytes"),
    "NUL within": (LINE + b"\n" + LINE.replace(b"go", b"g\x00"), 2, "holds NUL bytes"),
    "UTF-16": (LINE.decode().encode("utf-16"), 1, "holds NUL bytes"),
    "Latin-1": (LINE + b"\n" + LINE.replace(b"go", b"g\xf6"), 2, "is not UTF-8 text (byte"),
    "raw surrogate": (LINE + b"\n" + LINE.replace(b"go", b"\xed\xa0\x80"), 2, "is not UTF-8 text"),
    "NaN": (LINE + b'\n{"type": "x", "n": NaN}', 2, "NaN is no JSON number"),
    "huge number": (LINE + b'\n{"type": "x", "n": ' + b"9" * 5000 + b"}", 2, "is not JSON that can be read"),
    "key twice": (LINE + b'\n{"type": "user", "type": "x"}', 2, "names the key 'type' twice"),
    "deep": (LINE + b"\n" + deep(300), 2, "is nested deeper than 200 levels"),
    "very deep": (LINE + b"\n" + deep(200_000), 2, "is nested deeper than 200 levels"),
    "nothing said": (b'{"type": "system", "uuid": "x"}', 0, "holds no person's words and no reply"),
    "another format": (b'{"type": "letter", "body": {}}', 0, "is no session of a known format"),
    "prose": (b"Dear reader,\n", 1, "(known: claude-code, codex"),
    "a document": (b'{\n "trajectory": [],\n "info": {}\n}\n', 0, "is no session of a known format"),
    "list torn": (b"[\n" + RUN + b",\n" + RUN[:-3], 3, "is cut off in the middle"),
    "list not ended": (b"[\n" + RUN + b",\n", 3, "the JSON list is cut off here"),
    "list without comma": (b"[\n" + RUN + b"\n" + RUN + b"]", 3, "a comma or the end of the list"),
    "list and more": (b"[\n" + RUN + b"]\n]", 2, "after the end of the list"),
    "list of numbers": (b"[\n" + RUN + b",\n\n\n7]", 5, "is a number where a JSON object should be"),
    "gzip cut off": (
        gzip.compress(LINE + b"\n" + NOISE)[:-4000],
        2,
        "gzip data is",
    ),
    "gzip spoilt": (gzip.compress(LINE)[:10] + b"\xff" + gzip.compress(LINE)[11:], 1, "gzip data is"),
    "gzip in name only": (b"\x1f\x8b" + LINE, 1, "gzip data is broken"),
    "gzip with a tail": (gzip.compress(LINE + b"\n") + b"tail", 2, "gzip data is broken"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_one_sentence_with_its_line(tmp_path: Path, name: str) -> None:
    data, line, what = BROKEN[name]
    path = tmp_path / "session.jsonl"
    path.write_bytes(data)
    with pytest.raises(SessionUnreadable) as caught:
        list(each_session(path))
    assert (caught.value.line, caught.value.path) == (line, str(path))
    assert what in caught.value.what
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    with pytest.raises(SessionUnreadable, match="is a folder; name one session file in it"):
        open_session(tmp_path)
    with pytest.raises(SessionUnreadable, match=r"cannot be opened \(No such file"):
        open_session(tmp_path / "none.jsonl")
    with pytest.raises(SessionUnreadable, match="cannot be opened"):
        open_session("a\x00b")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(SessionUnreadable, match="is not a regular file"):
        open_session(pipe)


@pytest.mark.parametrize("name", ["claude_words.jsonl", "tau_list.json", "tau_lines.jsonl"])
def test_gzip_reads_as_plain_whatever_the_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "session"
    path.write_bytes(gzip.compress((FIXTURES / name).read_bytes()))
    assert open_session(path, only=1).steps == open_session(FIXTURES / name, only=1).steps


def test_odd_but_sound_text_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    odd = LINE.replace(b"go on", '\\ud800 \u2028 \x85 \\u0000 "'.replace('"', '\\"').encode())
    path.write_bytes(b"\xef\xbb\xbf\r\n" + odd + b"\r\n\r\n")
    assert open_session(path).steps == (PersonText(None, '\ud800 \u2028 \x85 \x00 "', 2),)


def test_sizes_are_limited_after_decompression(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LINE_BYTES_MAX", 1000)
    monkeypatch.setattr(source, "DOCUMENT_BYTES_MAX", 3000)
    monkeypatch.setattr(source, "FILE_BYTES_MAX", 5000)
    path = tmp_path / "session.jsonl"
    for data, line, what in [
        (LINE + b"\n" + b"x" * 2000, 2, "a line is larger"),
        ((LINE + b"\n") * 100, 5000 // (len(LINE) + 1) + 1, "the file is larger"),
        (
            b"[\n" + (RUN + b",\n") * 70 + b"]",
            2 + (3000 - 2) // (len(RUN) + 2),
            "one JSON document is larger",
        ),
    ]:
        path.write_bytes(gzip.compress(data))
        with pytest.raises(SessionUnreadable, match=what) as caught:
            open_session(path, only=1)
        assert caught.value.line == line
