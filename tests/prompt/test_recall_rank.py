"""The ranking's figures by hand, and what a set question changes."""

from __future__ import annotations

import math

import pytest

from shiftbook.projections.recall_units import Statistics, UnitWords, unit_words
from shiftbook.prompt import recall_rank
from shiftbook.prompt.recall_question import Question, question
from shiftbook.prompt.recall_rank import rank


def said(count: int, length: int = 10) -> UnitWords:
    return UnitWords({"key": count}, {}, length, 0)


STATISTICS = Statistics(100, 1_000, 0, 0, {"key": 2}, {})


def test_one_match_is_the_best_and_its_neighbours_have_their_shares() -> None:
    units = {5: said(1), 4: said(0), 6: said(0), 7: said(0), 8: said(0)}
    useful = rank(Question({"key": 1.0}), STATISTICS, units, [5]).useful
    # Ranked 5, then its neighbours 4 and 6, which have 0.4 of its score: 1/11, 1/12 and 1/13.
    first, second, third = 1 / 11, 1 / 12, 1 / 13
    scores = {
        4: second + 0.35 * first + 0.2 * third,
        5: first + 0.35 * second,
        6: third + 0.35 * first + 0.2 * second,
        7: 0.35 * third + 0.2 * first,
        8: 0.2 * third,
    }
    best = max(scores.values())
    assert useful == pytest.approx({unit: (score / best) ** 2 for unit, score in scores.items()})


def test_answers_fall_with_the_rank_of_replies_and_results() -> None:
    statistics = Statistics(0, 0, 100, 1_000, {}, {"key": 3})
    units = {place: UnitWords({}, {"key": count}, 0, 10) for place, count in ((3, 1), (20, 4), (40, 2))}
    ranked = rank(Question({"key": 1.0}), statistics, units, units)
    assert ranked.answers == pytest.approx({20: 1.0, 40: 11 / 12, 3: 11 / 13})
    assert max(ranked.useful, key=lambda unit: ranked.useful[unit]) == 20


def test_bm25_by_hand() -> None:
    idf = math.log(1 + (100 - 2 + 0.5) / 2.5)
    norm = 1.2 * (1 - 0.6 + 0.6 * 20 / 10)
    expected = idf * 3 * 2.2 / (3 + norm)
    weights = recall_rank._weights(Question({"key": 1.0, "none": 1.0}), 100, {"key": 2})
    score = recall_rank._bm25(weights, {"key": 3}, 20 / 10)
    assert score == pytest.approx(expected)


def test_rarer_terms_and_more_of_them_rank_higher() -> None:
    asked = Question({"key": 1.0, "the": 1.0})
    statistics = Statistics(100, 1_000, 0, 0, {"key": 2, "the": 90}, {})
    units = {10: UnitWords({"the": 1}, {}, 10, 0), 50: UnitWords({"key": 1}, {}, 10, 0)}
    useful = rank(asked, statistics, units, [10, 50]).useful
    assert useful[50] == 1.0 > useful[10] > 0


def test_traits_of_a_message() -> None:
    words = unit_words(["Thanks! The new port is 8080."], ["It is open."], {"port"})
    assert words.acknowledges
    assert words.has_number
    assert words.said_length == sum(words.said.values())
    distinct = len(words.said)
    assert words.novelty == (distinct - 1) / distinct
    assert not unit_words(["The port, thanks."], [], set()).acknowledges
    assert unit_words([], [], set()) == UnitWords({}, {}, 0, 0)


def test_a_set_falls_off_slower_and_prefers_who_came_first() -> None:
    units = {place: said(1) for place in (10, 30, 50, 70)}
    point = rank(Question({"key": 1.0}), STATISTICS, units, units).useful
    order = rank(Question({"key": 1.0}, "order"), STATISTICS, units, units).useful
    assert list(point.values()) == sorted(point.values(), reverse=True)
    assert order[10] == point[10] == 1.0
    assert point[70] == pytest.approx((11 / 14) ** 2)
    # All of the relevance but its own was told before it; the best had none before.
    shares = [11 / 11, 11 / 12, 11 / 13, 11 / 14]
    assert order[70] == pytest.approx(shares[3] / (1 + 1.0))


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("What is the port?", "point", False),
        ("In what order did we open the ports?", "order", False),
        ("Give me an overview of the ports.", "summary", False),
        ("Summarize how it evolved over time.", "summary", False),
        ("Which port did you suggest?", "point", True),
        ("What was it that you've recommended?", "point", True),
        ("Can you order a pizza?", "point", False),
    ],
)
def test_kinds_of_questions(text: str, kind: str, told: bool) -> None:
    asked = question(text)
    assert (asked.kind, asked.told) == (kind, told)


def test_a_set_question_is_told_by_its_words() -> None:
    assert question("Give me an overview.").wants_set
    assert not question("What is the port?").wants_set


def test_what_stands_beside_a_query_counts_for_less() -> None:
    asked = question("Open the port port.", ["the firewall port"])
    assert asked.terms == pytest.approx({"open": 1.0, "port": 2.0, "firewal": 0.3 * 0.6})


def test_a_message_that_speaks_for_itself_is_asked_alone() -> None:
    words = "lease journal crate yard harbour"
    assert set(question(words, ["firewall"]).terms) == set(question(words).terms)
    fewer = question(words.rsplit(" ", 1)[0], ["firewall"])
    assert fewer.terms["firewal"] == pytest.approx(0.06)


def test_a_query_of_a_whole_file_is_bounded() -> None:
    asked = question(" ".join(f"word{n}" for n in range(500)) + " last last")
    assert len(asked.terms) == 64
    assert asked.terms["last"] == 2.0
