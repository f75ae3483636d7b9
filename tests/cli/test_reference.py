"""docs/reference/cli.md says what the program says."""

from __future__ import annotations

import re
from typing import get_args

from shiftbook import errors
from shiftbook.cli.app import VERBS
from shiftbook.cli.drive import EXIT_CODES
from shiftbook.entries import State
from tests.cli.program import run
from tests.cli.reference import PAGE, described, renewed


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_every_verb_is_described_as_its_help_has_it() -> None:
    assert described(page()) == list(VERBS)
    assert page() == renewed(page()), "run: python -m tests.cli.reference"


def test_the_table_of_exit_codes_is_whole() -> None:
    told = {int(code) for code in re.findall(r"^\| (\d) \|", page(), re.MULTILINE)}
    raised = {each.exit_code for each in vars(errors).values() if hasattr(each, "exit_code")}
    assert told == {0, *raised, *EXIT_CODES.values()}
    assert set(EXIT_CODES) == set(get_args(State))


def test_the_help_names_the_order_of_places_and_the_codes(tmp_path: object) -> None:
    told = " ".join(run(PAGE.parent, "--help").out.split())
    order = ["--db, the environment variable SHIFTBOOK_DB", "[tool.shiftbook]", "./shiftbook.db"]
    places = [told.index(each) for each in order]
    assert places == sorted(places)
    for code in sorted({*EXIT_CODES.values(), 1, 2, 7}):
        assert f"{code} " in told.partition("Exit codes:")[2]
    for verb in VERBS:
        assert "--help" in run(PAGE.parent, verb, "--help").out
