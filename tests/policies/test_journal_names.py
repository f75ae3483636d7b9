"""Names in use in the brief: once turns leave, in the room that there is, and as names, not as entries."""

from __future__ import annotations

import re
from dataclasses import replace

from shiftbook.entries import ModelAnswered, Recalled
from shiftbook.messages import Text
from shiftbook.policies.sections import PARTS
from shiftbook.prompt.epoch import Extend, RecallRoom
from tests.policies.test_cap import answered, done, holds, said
from tests.policies.test_journal import begun, rebuild, rebuilds, section


def test_names_in_use_are_in_the_brief_once_turns_leave():
    shift = begun()
    for number in range(90):
        path = f"yard/{number:03}.txt"
        shift.happen(
            answered(shift.turn, {"path": path, "mark": f"crate_{number:03}"}),
            done(f"{shift.turn}.1", "ok " * 300),
        )
        assert shift.ask() is not None
    told = [(asked, section(asked, "working")) for asked in rebuilds(shift)]
    assert len(told) > 2
    for asked, text in told:
        newest = max(entry for block in asked.blocks for entry in block.entries)
        number = max(int(each) for each in re.findall(r"yard/(\d+)\.txt", text))
        assert f"crate_{number:03}" in text
        reply = next(
            entry.position
            for entry in shift.journal
            if isinstance(entry.what, ModelAnswered) and f"yard/{number:03}.txt" in str(entry.what.parts)
        )
        assert f"- {reply}: yard/{number:03}.txt, crate_{number:03}" in text
        assert reply <= newest
        assert rebuild(asked).numbers["tokens_after"] <= shift.mark
    holds(shift)


def test_room_that_the_turns_leave_goes_to_older_names_in_use():
    """A turn that does not fit beside the brief leaves room: for names that their part had no room for."""
    shift = begun(cap=8_000, mark=4_000)
    for number in range(120):
        names = {f"mark_{each}": f"crate_{number:03}_of_the_eastern_yard_{each:03}" for each in range(3)}
        shift.happen(
            answered(shift.turn, names), done(f"{shift.turn}.1", "ok " * (50 + number * 37 % 11 * 90))
        )
        assert shift.ask() is not None
    part = PARTS["working"] * (shift.mark - shift.gauge.fixed)
    told = [rebuild(asked).numbers for asked in rebuilds(shift)]
    wider = [each for each in told if each["working"] > part]
    assert wider, "its part, and what the turns left"
    assert all(each["tokens_after"] <= shift.mark for each in wider)
    holds(shift)


def test_a_name_in_the_list_of_names_is_no_entry_that_is_shown():
    """Recall may bring back a reply of which the brief tells nothing but the names in its call."""
    shift = begun()
    while len(rebuilds(shift)) < 3:
        number = shift.turn
        told = "The kestrel nests in the crane." if number == 2 else "Nothing."
        reply = answered(shift.turn, {"path": f"yard/{number:03}.txt"})
        shift.happen(replace(reply, parts=(Text(told), *reply.parts)), done(f"{shift.turn}.1", "ok " * 300))
        assert shift.ask() is not None
    at = next(entry.position for entry in shift.journal if "kestrel" in str(entry.what))
    named = [block for block in shift.prompt.blocks if at in block.entries]
    assert [block.kind for block in named] == ["working"], "its names stand in the brief, it does not"
    shift.happen(answered(shift.turn, {"path": "yard/999.txt"}), done(f"{shift.turn}.1", "ok"))
    shift.happen(said("Where does the kestrel nest?"))
    shift.recall = RecallRoom(1_500, 1_500)
    asked = shift.ask()
    assert asked is not None
    assert isinstance(asked.choice, Extend)
    back = [entry.what for entry in shift.journal if isinstance(entry.what, Recalled)][-1]
    assert at in back.found


def test_a_short_run_that_is_opened_anew_lists_no_names():
    shift = begun()
    shift.happen(answered(1, {"path": "yard/001.txt"}), done("1.1", "ok"))
    assert shift.ask() is not None
    shift.declare("e" * 64)
    asked = shift.ask()
    assert asked is not None
    assert section(asked, "working") == ""
