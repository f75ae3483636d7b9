"""A command that the program shows can be copied into the shell that the program was called from."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from shiftbook.cli.words import ours


def _program(folder: Path) -> Path:
    folder.mkdir()
    program = folder / "shiftbook"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def test_a_program_that_the_bare_name_would_not_find_is_named_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours_here, another = _program(tmp_path / "an environment"), _program(tmp_path / "other")
    monkeypatch.setattr(sys, "argv", [str(ours_here), "demo"])
    for path in (tmp_path, another.parent):
        monkeypatch.setenv("PATH", str(path))
        assert ours("show", "a b") == f"'{ours_here}' show 'a b'"
    monkeypatch.setenv("PATH", str(ours_here.parent))
    assert ours("show", "a b") == "shiftbook show 'a b'"


@pytest.mark.parametrize("called", ["shiftbook", "/somewhere/shiftbook/__main__.py", ""])
def test_else_it_goes_by_its_name(called: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    assert ours("runs") == "shiftbook runs"
