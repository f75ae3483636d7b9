"""How much of what was found is shown: never more than the cap has room for, the newest first to stay."""

from __future__ import annotations

import pytest

from shiftbook.entries import Entry, ModelAnswered, PersonSaid, Recalled
from shiftbook.messages import Block, Text
from shiftbook.policies.recalling import WIDEST_PART, brought_back, room_for, standing_recall
from shiftbook.prompt.epoch import Budget, RecallRoom
from shiftbook.prompt.measure import block_tokens
from tests.prompt.shift import QuarterMeter

AT = 1_767_348_000_000
POINT, WHOLE = "Where does the kestrel boat lie?", "Give me an overview of the salt."


def measure(block: Block) -> int:
    return block_tokens(block, QuarterMeter())


def said(at: int, words: str = "crates of salt " * 20) -> Entry:
    return Entry(at, AT, 1, PersonSaid((Text(words),)))


def back(at: int, *found: int) -> Entry:
    return Entry(at, AT, 1, Recalled("salt", found, "message"))


@pytest.mark.parametrize(("message", "wished"), [(POINT, 900), (WHOLE, 5_000)])
def test_a_wish_above_the_cap_is_held_to_its_share(message: str, wished: int) -> None:
    rooms = RecallRoom(point=900, whole_set=5_000)
    assert room_for(message, rooms, 100_000) == wished
    assert room_for(message, rooms, 600) == int(600 * WIDEST_PART)


@pytest.mark.parametrize("room", range(0, 500, 9))
def test_what_was_found_for_more_room_gives_way_from_the_oldest(room: int) -> None:
    found = (3, 4, 5, 6)
    budget = Budget(10_000, 4_000, measure, brought={at: said(at) for at in found})
    shown = brought_back(back(20, *found), budget, frozenset(), room)
    assert shown.tokens <= room
    positions = tuple(pick.first for pick in shown.picks[1:])
    assert positions == (found[-len(positions) :] if positions else ())
    assert len(brought_back(back(20, *found), budget, frozenset(), 9_000).picks) == 5


def test_what_stands_in_the_prompt_does_not_come_twice() -> None:
    budget = Budget(10_000, 4_000, measure, brought={at: said(at) for at in (3, 4)})
    shown = brought_back(back(20, 3, 4), budget, frozenset({3}), 9_000)
    assert [pick.first for pick in shown.picks] == [20, 4]
    assert brought_back(back(20, 3), budget, frozenset({3}), 9_000).picks == ()


def test_a_recall_answers_only_the_words_before_it() -> None:
    reply = Entry(22, AT, 1, ModelAnswered(1, (Text("Noted."),), "end"))
    assert standing_recall([said(19), back(20, 3), reply]) == back(20, 3)
    assert standing_recall([said(19), back(20, 3), said(21)]) is None
