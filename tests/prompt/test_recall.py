"""Recall: never over budget, always the same, in the run's order, nothing but what is there."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from shiftbook.projections.recall_units import unit_numbers
from shiftbook.prompt.recall import Memory, Record
from shiftbook.prompt.recall_pack import (
    KEEP_CHARS,
    LONG_WORDS,
    REPLY_WEIGHT,
    UNMATCHED,
    WANTED_REPLY_WEIGHT,
    Found,
    Piece,
    pack,
)
from shiftbook.prompt.recall_question import question
from shiftbook.prompt.recall_rank import Ranked

WORDS = ["lease", "journal", "Kestrel-9", "src/app.py", "deployed", "the", "you", "42", "café", "鍵管理", ""]
texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(max_size=30)
POINT = question("Where is the key?")


def ranked(useful: dict[int, float], **answers: float) -> Ranked:
    return Ranked(useful, {int(unit[1:]): match for unit, match in answers.items()})


@st.composite
def runs(draw: st.DrawFn) -> list[Record]:
    said = draw(st.lists(st.tuples(st.sampled_from(["person", "reply", "result"]), texts), max_size=25))
    step = draw(st.integers(1, 3))
    records = []
    for place, (voice, text) in enumerate(said):
        tokens = draw(st.integers(1, 400))
        cut = draw(st.none() | st.integers(1, 500))
        records.append(Record(1 + place * step, voice, text, tokens, cut))  # type: ignore[arg-type]
    return records


@given(runs(), texts, st.integers(0, 900), st.frozensets(st.integers(1, 75)))
def test_stays_in_budget_in_order_and_shows_only_what_is_there(
    records: list[Record], query: str, budget: int, shown: frozenset[int]
) -> None:
    found = Memory(records).recall(query, budget, shown=shown)
    known = {record.position: record for record in records}
    positions = [each.position for each in found]
    assert sum(each.tokens for each in found) <= budget
    assert positions == sorted(set(positions))
    assert not shown & set(positions)
    for each in found:
        record = known[each.position]
        assert each.tokens == (record.tokens if each.keep is None else record.cut_tokens)
        assert each.keep in (None, KEEP_CHARS)


@given(runs(), texts, st.integers(0, 900))
def test_the_same_records_and_query_give_the_same(records: list[Record], query: str, budget: int) -> None:
    memory = Memory(records)
    first = memory.recall(query, budget)
    assert memory.recall(query, budget) == first == Memory(list(records)).recall(query, budget)


def test_another_hash_seed_finds_the_same() -> None:
    script = (
        "from shiftbook.prompt.recall import *\n"
        "r = [Record(i, 'person', f'alpha beta gamma delta {i % 7} {i % 3}', 10) for i in range(1, 200)]\n"
        "print(Memory(r).recall('alpha delta 5 2 gamma', 500))"
    )
    outs = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "77")
    }
    assert len(outs) == 1
    assert b"Found" in next(iter(outs))


def test_the_right_turn_comes_back_word_for_word_among_many() -> None:
    said = [f"Let us talk about item {n} of the garden and its colour." for n in range(300)]
    said[137] = "My train leaves from platform nine on Thursday."
    records = [Record(n + 1, "person", text, 12) for n, text in enumerate(said)]
    found = Memory(records).recall("Which platform does the train leave from?", 12)
    assert found == (Found(138, None, 12),)


def test_what_stands_beside_a_hit_comes_before_what_does_not() -> None:
    said = ["nothing here"] * 40
    said[20] = "We chose zebra stripes."
    records = [Record(n + 1, "person", text, 10) for n, text in enumerate(said)]
    found = Memory(records).recall("zebra", 50)
    assert [each.position for each in found] == [19, 20, 21, 22, 23]


def test_nothing_that_matches_is_nothing_found() -> None:
    records = [Record(1, "person", "Good morning.", 5)]
    assert Memory(records).recall("zebra", 100) == ()
    assert Memory([]).recall("zebra", 100) == ()
    assert Memory(records).recall("", 100) == ()


def test_among_equals_the_earlier_one_comes_back() -> None:
    records = [Record(n, "person", "same words", 10) for n in (5, 9, 14)]
    found = Memory(records).recall("words", 10)
    # The middle one has two neighbours; the outer two are alike and the earlier one is next.
    assert next(each.position for each in Memory(records).recall("words", 20)) == 5
    assert len(found) == 1


def test_packs_by_use_for_a_token() -> None:
    pieces = [Piece(1, 1, "person", 100), Piece(2, 2, "person", 10), Piece(3, 3, "person", 30)]
    useful = {1: 1.0, 2: 0.3, 3: 0.5}
    # For a token: 0.01, 0.03 and 0.0167; so 2, then 3, and 1 does not fit any more.
    assert pack(POINT, ranked(useful), pieces, 100) == (Found(2, None, 10), Found(3, None, 30))
    assert [each.position for each in pack(POINT, ranked(useful), pieces, 140)] == [1, 2, 3]


def test_what_does_not_fit_is_passed_over_and_the_next_is_tried() -> None:
    pieces = [Piece(1, 1, "person", 50), Piece(2, 2, "person", 20)]
    assert pack(POINT, ranked({1: 1.0, 2: 0.1}), pieces, 30) == (Found(2, None, 20),)


def test_a_long_reply_comes_cut_first_and_whole_when_there_is_room() -> None:
    reply = Piece(2, 1, "reply", 1_000, 150)
    other = Piece(3, 2, "person", 10)
    useful = ranked({1: 1.0, 2: 0.00005})
    assert pack(POINT, useful, [reply, other], 200) == (Found(2, KEEP_CHARS, 150), Found(3, None, 10))
    assert pack(POINT, useful, [reply, other], 1_000) == (Found(2, None, 1_000),)
    assert pack(POINT, useful, [reply, other], 140) == (Found(3, None, 10),)


def test_words_of_a_person_are_whole_unless_they_would_fill_the_budget() -> None:
    short = Piece(1, 1, "person", 100, 40)
    assert pack(POINT, ranked({1: 1.0}), [short], 99) == (Found(1, KEEP_CHARS, 40),)
    assert pack(POINT, ranked({1: 1.0}), [short], 100 * LONG_WORDS) == (Found(1, None, 100),)


def test_replies_count_for_more_when_the_question_asks_for_them() -> None:
    pieces = [Piece(1, 1, "person", 100), Piece(2, 1, "reply", 100), Piece(3, 2, "person", 100)]
    use = UNMATCHED * (REPLY_WEIGHT + WANTED_REPLY_WEIGHT) / 2
    useful = ranked({1: 1.0, 2: use})
    point = pack(POINT, useful, pieces, 200)
    told = pack(question("What did you suggest for the key?"), useful, pieces, 200)
    assert [each.position for each in point] == [1, 3]
    assert [each.position for each in told] == [1, 2]


def test_a_reply_that_matches_by_itself_comes_before_one_that_only_follows() -> None:
    pieces = [Piece(1, 1, "reply", 100), Piece(2, 2, "reply", 100), Piece(3, 3, "person", 100)]
    useful = {1: 0.8, 2: 0.8, 3: 0.8 * REPLY_WEIGHT}
    assert [each.position for each in pack(POINT, ranked(useful), pieces, 100)] == [3]
    assert [each.position for each in pack(POINT, ranked(useful, _2=1.0), pieces, 100)] == [2]
    told = question("Which key did you suggest?")
    assert [each.position for each in pack(told, ranked({1: 0.9, 3: 1.0}, _1=1.0), pieces, 100)] == [3]


def test_units_are_a_turn_each() -> None:
    voices = ["person", "reply", "result", "result", "reply", "result", "person", "person", "reply"]
    assert unit_numbers(voices) == [0, 0, 0, 0, 1, 1, 2, 3, 3]  # type: ignore[arg-type]
    assert unit_numbers(["result", "reply", "reply"]) == [0, 0, 1]
    assert unit_numbers([]) == []


def test_vectors_find_what_shares_no_word() -> None:
    class Pets:
        name = "pets"

        def of(self, text: str) -> bytes:
            return {"What pet is there?": b"\x7f\x00", "Rex barks at night.": b"\x7f\x0c"}.get(
                text, b"\x00\x7f"
            )

    records = [Record(n, "person", "The weather was fine.", 5) for n in range(1, 9)]
    records[4] = Record(5, "person", "Rex barks at night.", 5)
    assert Memory(records).recall("What pet is there?", 5) == ()
    assert Memory(records, Pets()).recall("What pet is there?", 5) == (Found(5, None, 5),)
