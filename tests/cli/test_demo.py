"""The demo really kills, really counts, and says so when it does not hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shiftbook.demo import desk
from shiftbook.demo.receiver import Ledger
from shiftbook.demo.show import HOLDS, Outcome
from tests.cli.program import run

NAMES = ("turns", "actions", "kills", "cut_off", "repeated", "double_effects")


@pytest.mark.slow
def test_it_holds_and_its_journal_shows_the_kills(tmp_path: Path) -> None:
    ran = run(tmp_path, "demo", "--json")
    assert ran.code == 0
    assert [ran.json[name] for name in NAMES] == [121, 160, 4, 4, 0, 0]
    assert ran.json["verify"]
    assert 0 < ran.json["prompt_tokens"]["median"] <= ran.json["prompt_tokens"]["max"] <= desk.agent.cap
    rows = run(tmp_path, "show", ran.json["run"], "--json", "--db", "demo/demo.db").lines
    again = [row for row in rows if row["kind"] == "ActionStarted" and row.get("attempt", 1) > 1]
    assert [row["tool"] for row in again] == ["charge"] * len(HOLDS)
    assert len({row["lease"] for row in rows}) == len(HOLDS) + 1
    first = {
        row["call"]: row["key"] for row in rows if row["kind"] == "ActionStarted" and "attempt" not in row
    }
    assert all(first[row["call"]] == row["key"] for row in again)
    assert "shiftbook prompt" in ran.err


def test_the_ledger_honours_keys_and_counts_effects() -> None:
    ledger = Ledger({})
    first = ledger.charge("a", {"order": 1})
    assert ledger.charge("a", {"order": 1}) == first
    assert ledger.charge("b", {"order": 1}) != first
    assert (ledger.effects, ledger.requests) == ({"a": 1, "b": 1}, 3)


GOOD = Outcome(
    run="r",
    db=Path("d"),
    turns=desk.TURNS,
    actions=160,
    kills=len(HOLDS),
    cut_off=len(HOLDS),
    repeated=0,
    charges=desk.ORDERS,
    double_effects=0,
    prompt_median=1,
    prompt_max=6000,
    cap=6000,
    verified=True,
    state="finished",
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("state", "paused"),
        ("turns", 120),
        ("kills", 3),
        ("cut_off", 3),
        ("repeated", 1),
        ("double_effects", 1),
        ("charges", 39),
        ("prompt_max", 6001),
        ("verified", False),
    ],
)
def test_it_says_so_when_anything_does_not_hold(name: str, value: Any) -> None:
    assert GOOD.holds
    assert not replace(GOOD, **{name: value}).holds
