"""Growing and making again: what a refused commit leaves, what a wrong journal or cursor gives."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from shiftbook.entries import ActionFinished, ModelAnswered, ModelAsked, PersonSaid, Recipe
from shiftbook.messages import Call, Text
from shiftbook.policies import Window
from shiftbook.prompt.epoch import Extend, Rebuild
from shiftbook.prompt.grow import grow
from shiftbook.prompt.rederive import cursor, cursor_ranges, from_cursor, rederive
from tests.prompt.shift import Shift


def lived(turns: int = 4) -> Shift:
    shift = Shift(Window(), cap=1_500, mark=900)
    shift.happen(PersonSaid((Text("Begin."),)))
    for turn in range(1, turns + 1):
        shift.ask()
        shift.happen(
            ModelAnswered(turn, (Text("Look."), Call(f"{turn}.1", "order", {"n": turn})), "calls"),
            ActionFinished(f"{turn}.1", "done", (Text("word " * 90),)),
        )
    return shift


def extension(shift: Shift) -> Recipe:
    choice = shift.policy.choose(shift.prompt, shift.fresh, shift.gauge.budget(shift.cap, shift.mark))
    assert isinstance(choice, Extend)
    return choice.picks


def test_a_growth_that_is_not_adopted_leaves_the_prompt_as_it_was():
    shift = lived(1)
    before = deepcopy(shift.prompt)
    growth = grow(shift.prompt, extension(shift), shift.fresh, shift.gauge)
    assert growth.digest != before.digest
    assert shift.prompt == before


def test_kinds_that_no_model_sees_make_no_difference_to_a_growth():
    shift = lived(1)
    picks = extension(shift)
    assert grow(shift.prompt, picks, shift.journal, shift.gauge) == grow(
        shift.prompt, picks, shift.fresh, shift.gauge
    )


def test_a_rebuild_and_its_requests_come_again_from_the_journal():
    shift = lived(12)
    assert any(isinstance(asked.choice, Rebuild) for asked in shift.asked)
    fold = rederive(shift.journal, shift.gauge)
    assert fold.faults == []
    assert fold.prompt == shift.prompt


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"digest": "0" * 32}, "has digest 0000"),
        ({"renderer": 2}, "renderer"),
        ({"blocks": ()}, "digest"),
    ],
)
def test_a_wrong_request_is_told_at_its_position_and_the_next_ones_are_not_blamed(change, told):
    shift = lived(4)
    journal = list(shift.journal)
    asks = [n for n, entry in enumerate(journal) if isinstance(entry.what, ModelAsked)]
    at = asks[-1]
    what = journal[at].what
    assert isinstance(what, ModelAsked)
    journal[at] = replace(journal[at], what=replace(what, **change))
    faults = rederive(journal).faults
    assert [fault.position for fault in faults] == [at + 1]
    assert told in faults[0].what


def test_a_request_before_any_epoch_is_a_fault():
    shift = lived(1)
    journal = [entry for entry in shift.journal if entry.kind != "EpochOpened"]
    assert [fault.what for fault in rederive(journal).faults] == [
        "Turn 1 asks the model before any epoch was opened."
    ]


@pytest.mark.parametrize(
    "change", [{"digest": "0" * 32}, {"version": 99}, {"fresh": [9_999]}, {"renderer": 2}]
)
def test_a_cursor_that_does_not_fit_gives_a_fault_and_no_prompt(change):
    shift = lived(3)
    plain = cursor(shift.prompt, shift.fresh)
    ranges = cursor_ranges(plain)
    needed = [shift.journal[p - 1] for first, last in ranges for p in range(first, last + 1)]
    assert from_cursor(plain, needed).prompt is not None
    fold = from_cursor(plain | change, needed)
    assert fold.prompt is None
    assert len(fold.faults) == 1


def test_a_cursor_whose_entries_are_gone_gives_a_fault():
    shift = lived(3)
    fold = from_cursor(cursor(shift.prompt), [])
    assert fold.prompt is None
    assert "not there" in fold.faults[0].what
