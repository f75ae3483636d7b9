"""docs/reference/cli.md says what the program says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import get_args

import pytest
import typer

from shiftbook import errors
from shiftbook.cli.app import UNREAD, VERBS, app
from shiftbook.cli.drive import EXIT_CODES
from shiftbook.cli.examples import EXAMPLES
from shiftbook.entries import State
from tests.cli.program import run
from tests.cli.reference import PAGE, described, renewed


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_every_verb_is_described_as_its_help_has_it() -> None:
    assert described(page()) == list(VERBS)
    assert page() == renewed(page()), "run: python -m tests.cli.reference"


def test_the_table_of_exit_codes_is_whole() -> None:
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", page(), re.MULTILINE)}
    raised = {each.exit_code for each in vars(errors).values() if hasattr(each, "exit_code")}
    assert told == {0, UNREAD, *raised, *EXIT_CODES.values()}
    assert set(EXIT_CODES) == set(get_args(State))


def test_the_help_names_the_order_of_places_and_the_codes(tmp_path: object) -> None:
    told = " ".join(run(PAGE.parent, "--help").out.split())
    order = ["--db, the environment variable SHIFTBOOK_DB", "[tool.shiftbook]", "./shiftbook.db"]
    places = [told.index(each) for each in order]
    assert places == sorted(places)
    for code in sorted({*EXIT_CODES.values(), 1, 2, 7, UNREAD}):
        assert f"{code} " in told.partition("Exit codes:")[2]
    for verb in VERBS:
        assert "--help" in run(PAGE.parent, verb, "--help").out


def test_every_verb_has_an_example_that_the_program_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("SESSION.jsonl", "run.jsonl", "agent.py"):
        (tmp_path / name).touch()
    assert list(EXAMPLES) == list(VERBS)
    group = typer.main.get_command(app)
    with group.make_context("shiftbook", [], resilient_parsing=True) as ctx:
        for verb, example in EXAMPLES.items():
            program, named, *words = shlex.split(example.replace("~/.claude/projects", str(tmp_path)))
            assert (program, named) == ("shiftbook", verb)
            made = group.get_command(ctx, verb)  # type: ignore[attr-defined]
            made.make_context(verb, words, parent=ctx).close()
            assert example in run(tmp_path, verb, "--help", COLUMNS="200").out
