"""What a walk leaves out is told in one sentence each, the rest counts, and the exit code says which."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.program import run
from tests.measure.files import growing, said, write

VERBS = pytest.mark.parametrize(
    "words", [("measure",), ("measure", "--survival"), ("measure", "--check-cache")]
)


def folder(tmp_path: Path) -> Path:
    many = tmp_path / "many"
    many.mkdir()
    write(many / "sound.jsonl", growing(3))
    (many / "letter.txt").write_text("Water the beans.\n", encoding="utf-8")
    (many / "gone.jsonl").symlink_to(many / "nowhere")
    os.mkfifo(many / "pipe")
    return many


@VERBS
def test_lost_sessions_are_named_and_other_files_counted(tmp_path: Path, words: tuple[str, ...]) -> None:
    folder(tmp_path)
    ran = run(tmp_path, *words, "many")
    assert ran.code == 0
    assert (
        "left out: many/gone.jsonl: cannot be opened (No such file or directory); check the path\n" in ran.err
    )
    assert "left out: many/pipe: is not a regular file; save the session to one first\n" in ran.err
    assert "left out: 1 file in the folders that is no session (-v names them)\n" in ran.err
    assert "letter.txt, line 1: is not JSON" in run(tmp_path, *words, "many", "-v").err
    told = json.loads(run(tmp_path, *words, "many", "--json").out)["unreadable"]
    assert [(each["path"], each["line"]) for each in told] == [
        ("many/gone.jsonl", 0),
        ("many/letter.txt", 1),
        ("many/pipe", 0),
    ]


@VERBS
def test_without_any_session_the_one_that_was_lost_is_the_reason(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    (folder(tmp_path) / "sound.jsonl").unlink()
    ran = run(tmp_path, *words, "many")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "in what was named. many/gone.jsonl: cannot be opened" in ran.err


def test_a_hundred_lost_sessions_do_not_fill_the_screen(tmp_path: Path) -> None:
    many = folder(tmp_path)
    for number in range(98):
        (many / f"lost-{number:02}.jsonl").symlink_to(many / "nowhere")
    ran = run(tmp_path, "measure", "many")
    assert (ran.code, ran.err.count("left out: many/")) == (0, 20)
    assert "left out: 80 more that cannot be read (-v names them)\n" in ran.err
    assert run(tmp_path, "measure", "many", "-v").err.count("cannot be opened") == 99


def test_a_session_of_a_folder_that_breaks_off_is_named_by_replay(tmp_path: Path) -> None:
    """Measure counts its whole lines; replay can drive none of it, and says which file that was."""
    many = folder(tmp_path)
    write(many / "torn.jsonl", [*growing(3), json.dumps(said("Go on."))[:-9]])
    assert "torn.jsonl, line 5" in run(tmp_path, "measure", "many").err
    ran = run(tmp_path, "replay", "many", "--policy", "window", "--fixed", "0")
    assert ran.code == 0
    assert "left out: many/torn.jsonl, line 5: is cut off in the middle of a JSON value" in ran.err
