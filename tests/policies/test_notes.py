"""Notes: at the window an account of everything that leaves takes its place, and the run goes on with it."""

from __future__ import annotations

import pytest

from shiftbook.entries import ReportLine, ReportWritten, RuleSet
from shiftbook.policies import Notes, decide
from shiftbook.policies.cold import TTL_MS
from shiftbook.policies.notes import NOTES_PART
from shiftbook.prompt.epoch import Extend, Rebuild, WantReport
from tests.policies.test_cap import answered, begun, done, holds, said
from tests.policies.test_masking import rebuilds, worked
from tests.prompt import invariants
from tests.prompt.shift import Shift


def wanted(shift: Shift) -> WantReport:
    choice = decide(
        shift.policy,
        shift.prompt,
        shift.fresh,
        shift.gauge,
        cap=shift.cap,
        mark=shift.mark,
        knowledge=shift.knowledge,
    )
    assert isinstance(choice, WantReport)
    return choice


def filled(shift: Shift) -> None:
    """Turns until the next does not fit any more; its entries are fresh."""
    while shift.prompt.meter == "bytes" or shift.prompt.tokens < shift.cap - 1_000:
        worked(shift, shift.turn, "ok " * 400)
    shift.happen(answered(shift.turn, {}), done(f"{shift.turn}.1", "ok " * 1_500))


def test_the_whole_account_is_asked_for_anew_each_time():
    shift = begun(Notes())
    filled(shift)
    first = wanted(shift)
    assert first.rewrite
    assert first.before is None
    assert first.entries[0].position == 3, "from the first word on"
    assert first.room == int((shift.mark - shift.gauge.fixed) * NOTES_PART)
    assert shift.ask() is not None
    filled(shift)
    again = wanted(shift)
    assert again.rewrite
    assert again.before is not None
    assert again.first == first.first, "it stands for everything that is not shown"
    assert again.last > first.last
    assert min(entry.position for entry in again.entries) > first.last
    holds(shift)


def test_the_run_goes_on_with_notes_that_say_who_wrote_them_and_the_newest_turns():
    shift = begun(Notes())
    shift.happen(RuleSet("units", "Boxes, never pallets.", "author"))
    for number in range(150):
        worked(shift, number, f"yard {number}: " + "ok " * 200)
    holds(shift)
    at = rebuilds(shift)
    assert 2 < len(at) < 20
    for n in at:
        asked = shift.asked[n]
        assert [block.kind for block in asked.blocks[:2]] == ["rules", "ReportWritten"]
        notes = next(iter(invariants.texts_of(asked.blocks[1])))
        assert ", mechanical." in notes.partition("\n")[0], "who wrote it is told"
        assert asked.tokens <= shift.mark
        assert isinstance(asked.choice, Rebuild)
        assert asked.choice.numbers["notes"] <= NOTES_PART * (shift.mark - shift.gauge.fixed)


def test_notes_that_a_model_wrote_take_the_place_of_those_before():
    shift = begun(Notes())
    for _ in range(3):
        filled(shift)
        want = wanted(shift)
        cited = (want.entries[0].position,)
        line = ReportLine(f"account {shift.turn}", cited)
        shift.happen(ReportWritten(want.first, want.last, (line,), "a model"))
        asked = shift.ask()
        assert asked is not None
        told = [text for block in asked.blocks for text in invariants.texts_of(block) if "account" in text]
        assert len(told) == 1
        assert f"account {shift.turn - 1} " in told[0], "only the newest is shown"
    holds(shift)


def test_notes_that_a_crash_has_left_alone_are_used():
    shift = begun(Notes())
    filled(shift)
    want = wanted(shift)
    shift.happen(ReportWritten(want.first, want.last, (ReportLine("account", (3,)),), "a model"))
    shift.happen(said("And one more thing."))
    asked = shift.ask()
    assert asked is not None
    assert isinstance(asked.choice, Rebuild)
    assert "account" in "\n".join(t for block in asked.blocks for t in invariants.texts_of(block))
    holds(shift)


def test_a_cold_cache_alone_writes_no_notes():
    shift = begun(Notes())
    while shift.prompt.meter == "bytes" or shift.prompt.tokens < 2.3 * shift.mark:
        worked(shift, shift.turn, "ok " * 300)
    shift.gap_ms = TTL_MS + 1
    assert isinstance(worked(shift, shift.turn, "ok").choice, Extend)


@pytest.mark.parametrize("mark", [500, 700])
def test_where_notes_have_no_room_the_newest_turns_stay_and_it_is_said(mark):
    shift = begun(Notes(), cap=2_000, mark=mark)
    for number in range(30):
        worked(shift, number, "ok " * 100)
    warned = [asked.warned for asked in shift.asked if isinstance(asked.choice, Rebuild)]
    assert any("too small for notes" in each for each in warned)
    holds(shift)


def test_a_change_of_agent_in_a_short_run_writes_no_notes():
    shift = begun(Notes())
    worked(shift, 1, "ok")
    shift.declare("e" * 64)
    asked = shift.ask()
    assert asked is not None
    assert isinstance(asked.choice, Rebuild)
    assert all(block.kind != "ReportWritten" for block in asked.blocks)
    holds(shift)
