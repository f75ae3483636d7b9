"""The figures by hand: Wilson, any, all and mean, whole and cut; the study as a command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from shiftbook.errors import BadInput
from shiftbook.messages import Block, Result, Text
from shiftbook.prompt.measure import Gauge
from shiftbook.studies.asking import CharsMeter, outcomes
from shiftbook.studies.beam import read_beam
from shiftbook.studies.chats import Asked, Chat, Message
from shiftbook.studies.holding import Outcome, figures, held
from shiftbook.studies.intervals import wilson
from shiftbook.studies.recall import Options, study_recall
from tests.cli.program import run
from tests.studies import data
from tests.vectors.made import folder_of, vectors

TEXTS = ("a" * 500, "Yes", "c" * 399)
CHAT = Chat(
    "beam",
    "tiny",
    "1",
    "tuned",
    tuple(Message(place, "person", text) for place, text in enumerate(TEXTS, 1)),
    (),
)


def block(text: str, *entries: int) -> Block:
    return Block("user", (Text(text),), "", entries)


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662)],
)
def test_wilson(hits: int, of: int, low: float, high: float) -> None:
    # The last is the example of Newcombe, Statistics in Medicine 17 (1998), method 3.
    assert wilson(hits, of) == pytest.approx((low, high), abs=5e-5)
    assert wilson(0, 0) == (0.0, 1.0)


def test_whole_and_cut() -> None:
    asked = Asked("t", "?", (1, 2, 3))
    assert held([block("a" * 500, 1), block("Yes", 2), block("c" * 399, 3)], CHAT, asked) == (3, 3)
    assert held([block("a" * 400 + "\n[...]", 1)], CHAT, asked) == (0, 1)
    assert held([block("a" * 399 + "\n[...]", 1)], CHAT, asked) == (0, 0)
    # The last 400 characters are not the first where these differ, and 398 of 399 are not the text.
    assert held([block("c" * 398, 3)], CHAT, asked) == (0, 0)
    # The words of another message do not count, nor a block that names the message without its words.
    assert held([block("Yes, a whole sentence.", 1), block("[dropped]", 1, 2)], CHAT, asked) == (0, 0)
    assert held([Block("user", (Result("c", (Text("Yes"),)),), "", (2,))], CHAT, asked) == (1, 1)
    assert held([block("Yes", 2), block("Yes", 2)], CHAT, asked) == (1, 1)


def test_any_all_and_mean() -> None:
    two, three = Asked("pair", "?", (1, 2)), Asked("triple", "?", (1, 2, 3))

    def outcome(asked: Asked, whole: int, cut: int) -> Outcome:
        return Outcome(CHAT, asked, "window", 100, whole, cut, 90)

    found = figures([outcome(two, 1, 2), outcome(two, 0, 0), outcome(three, 3, 3), outcome(three, 1, 2)])
    assert (found["n"], found["any"], found["all"]) == (4, 0.75, 0.25)
    assert found["mean"] == pytest.approx((1 / 2 + 0 + 1 + 1 / 3) / 4, abs=1e-4)
    assert (found["cut"]["any"], found["cut"]["all"]) == (0.75, 0.5)
    assert found["cut"]["mean"] == pytest.approx((1 + 0 + 1 + 2 / 3) / 4, abs=1e-4)
    assert found["by_type"]["pair"]["mean"] == 0.25
    assert found["by_type"]["pair"]["cut"]["all"] == 0.5
    assert found["interval"]["all"] == pytest.approx([0.0456, 0.6994], abs=1e-4)
    assert found["tokens_max"] == 90


def test_the_meter_is_a_quarter_of_the_characters_and_three(tmp_path: Path) -> None:
    gauge = Gauge(meter=CharsMeter(), bound=CharsMeter())
    assert [gauge.measure(block("x" * length)) for length in (1, 4, 27, 34, 400)] == [3, 4, 9, 11, 103]
    chat, _ = read_beam(data.beam(tmp_path))
    update, _ = outcomes(chat, "recall-only", 10_000, CharsMeter())
    assert update.tokens == sum(len(each.text) // 4 + 3 for each in chat.messages)


def test_each_way_to_make_a_prompt_holds_what_it_should(tmp_path: Path) -> None:
    chat, _ = read_beam(data.beam(tmp_path))
    whole = sum(len(each.text) // 4 + 3 for each in chat.messages)
    for policy in ("transcript", "window", "recall-only"):
        update, name = outcomes(chat, policy, whole + 100, CharsMeter())
        assert (update.whole, name.whole) == (2, 1), policy
        assert update.tokens <= whole + 100
    # Below the long reply the window still has both short messages, and recall has its pick.
    assert [each.whole for each in outcomes(chat, "window", 100, CharsMeter())] == [2, 0]
    assert [each.whole for each in outcomes(chat, "recall-only", 100, CharsMeter())] == [2, 0]
    # The transcript stands where it stopped: before the message that did not fit any more.
    assert [each.whole for each in outcomes(chat, "transcript", 30, CharsMeter())] == [1, 0]


def test_caps_hold_and_more_room_holds_no_less_for_every_policy(tmp_path: Path) -> None:
    folder = data.beam(tmp_path)
    options = Options(caps=(40, 100, 2_000))
    result = study_recall(folder, options, "", lambda _line: None)
    assert {row["tokens"] <= row["cap"] for row in result["rows"]} == {True}
    for policy, caps in result["table"]["beam"]["tiny"].items():
        means = [caps[cap]["mean"] for cap in ("40", "100", "2000")]
        assert means == sorted(means), policy
        assert means[-1] == 1.0


def test_the_command_prints_the_contract_and_is_deterministic(tmp_path: Path) -> None:
    data.beam(tmp_path / "beam")
    data.locomo(tmp_path / "locomo")
    words = ("study", "recall", ".", "--cap", "60", "--policy", "recall-only", "--policy", "window")
    first, second = run(tmp_path, *words, "--json"), run(tmp_path, *words, "--json")
    assert first.code == 0
    assert first.out == second.out
    value = first.json
    assert value["study"] == "recall"
    assert value["command"].startswith("shiftbook study recall")
    assert value["questions"] == {"asked": 6, "skipped": 4, "mended": 1}
    for found in (
        value["table"]["beam"]["tiny"]["recall-only"]["60"],
        value["table"]["locomo"]["all"]["window"]["60"],
    ):
        assert {"n", "any", "all", "mean", "by_type"} <= found.keys()
    assert value["table"]["locomo"]["all"]["recall-only"]["60"]["mean"] == 0.6667
    assert len(value["rows"]) == 12
    told = run(tmp_path, *words)
    assert "knowledge update" in told.out
    assert "6 questions, 4 without usable labels, 1 with labels from the audit" in told.err


def test_vectors_are_one_more_ranking_and_are_named(tmp_path: Path) -> None:
    data.locomo(tmp_path)
    table = {"t": np.array([[0, 0], [3, 1], [4, 1], [-1, 4]], np.float32)}
    folder_of(tmp_path / "v", table, ("[UNK]", "flew", "kite", "cat"))
    words = ("study", "recall", ".", "--cap", "20", "--policy", "recall-only", "--json")
    without, ranked = run(tmp_path, *words), run(tmp_path, *words, "--vectors", "v")
    assert without.json["vectors"] is None
    assert ranked.json["vectors"].startswith("static-2-")
    of = [each.json["table"]["locomo"]["all"]["recall-only"]["20"]["by_type"] for each in (without, ranked)]
    # The question what flew has no word of what is labelled, "a red kite".
    assert of[0]["multi-hop"]["mean"] < of[1]["multi-hop"]["mean"]
    assert f"ranks by {ranked.json['vectors']} too" in run(tmp_path, *words[:-1], "--vectors", "v").err


def test_a_policy_recalls_by_vectors_too(tmp_path: Path) -> None:
    texts = [f"Crates of salt stand in yard {number}. " * 8 for number in range(60)]
    texts[5] = "The boat lies at pier seventeen. " * 8
    messages = tuple(Message(place, "person", text) for place, text in enumerate(texts, 1))
    question = Asked("t", "Which vessel do captains, sailors, pilots or harbourmasters seek?", (6,))
    chat = Chat("beam", "tiny", "1", "tuned", messages, (question,))
    made = vectors(tmp_path / "v")
    for given, held_whole in ((None, 0), (made, 1)):
        (found,) = outcomes(chat, "journal", 2_000, CharsMeter(), given)
        assert (found.whole, found.tokens <= 2_000) == (held_whole, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("study", "nothing", "."), "There is no study 'nothing'"),
        (("study", "recall", "."), "no folder of BEAM or LoCoMo"),
        (("study", "recall", "beam", "--policy", "magic"), "There is no policy 'magic' to study"),
        (("study", "recall", "beam", "--meter", "feet"), "There is no meter 'feet'"),
        (("study", "recall", "beam", "--cap", "0"), "A cap is a number of tokens"),
        (("study", "recall", "beam", "--size", "huge"), "nothing to ask in beam of size huge"),
        (("study", "recall", "beam", "--vectors", "nowhere"), "There is no folder nowhere"),
        (("study", "boundary", "beam", "--vectors", "nowhere"), "has no --size, --meter and --vectors"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    data.beam(tmp_path / "beam")
    (tmp_path / "beam").rename(tmp_path / "renamed")
    if "beam" in words:
        (tmp_path / "renamed").rename(tmp_path / "beam")
    ran = run(tmp_path, *words)
    assert ran.code == 2
    assert told in ran.err
    assert ran.out == ""


def test_options_are_checked_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no policy"):
        study_recall(tmp_path / "nowhere", Options(policies=("x",)), "", lambda _line: None)
    assert json.dumps(Options().checked().caps) == "[]"
