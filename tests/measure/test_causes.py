"""Each failure of the predicted cache has the cause that its file tells: invented files, one a cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from shiftbook.measure.causes import ALARM_WORDS, MISS_WORDS, AlarmCause, Diagnosis, MissCause
from shiftbook.measure.predict import Held, check_row, held_against, reasons
from shiftbook.measure.series import series_of
from shiftbook.sessions import requests_of
from shiftbook.sessions.requests import Mark
from tests.measure.files import reply, said, write
from tests.measure.made import row, session

THOUGHT = {"type": "thinking", "thinking": "The beds first, then the paths."}
DIG = {"type": "tool_use", "id": "c1", "name": "Dig", "input": {"bed": 3}}
RESULT = [{"tool_use_id": "c1", "type": "tool_result", "content": "Dug."}]
LOST = 16_000


def held(tmp_path: Path, *lines: dict[str, Any]) -> Held:
    (found,) = requests_of(write(tmp_path / "garden.jsonl", lines))
    return held_against(series_of(found))


def answered(number: int, prompt: int, read: int, minute: float, *parts: dict[str, Any]) -> dict[str, Any]:
    line = reply(number, prompt, read, minute)
    line["message"]["content"] = list(parts) or line["message"]["content"]
    return line


def opened(words: str = "Plan the garden.") -> list[dict[str, Any]]:
    return [said(words), answered(1, 50_000, 0, 0, DIG)]


def causes(held: Held) -> list[str]:
    assert not held.false
    return [each.cause for each in held.unseen]


def test_a_miss_at_a_persons_message_and_one_at_a_result_are_told_apart(tmp_path: Path) -> None:
    person = said("Now the paths.", 1, uuid="u1")
    picture = said([{"type": "image"}, {"type": "text", "text": "So?"}], 1, uuid="u1")
    result = said(RESULT, 1, uuid="u1")
    notice = said("<task-notification> done", 1, uuid="u1")
    for asked, cause in ((person, "person"), (picture, "person"), (result, "result"), (notice, "result")):
        assert causes(held(tmp_path, *opened(), asked, reply(2, 51_000, LOST, 1))) == [cause]


def test_what_nobody_said_does_not_hide_what_is_answered(tmp_path: Path) -> None:
    """An interrupt, a local command and a text of the client's own stand between, and answer nothing."""
    between = [
        said(RESULT, 1, uuid="u1"),
        said([{"type": "text", "text": "[Request interrupted by user]"}], 1, uuid="u2"),
        said("<command-name>/cost</command-name>", 1, uuid="u3"),
        said("Beds are numbered from the gate.", 1, uuid="u4", isMeta=True),
    ]
    assert causes(held(tmp_path, *opened(), *between, reply(2, 51_000, LOST, 1))) == ["result"]


def test_a_plan_carried_out_without_reasoning_is_named_and_one_with_it_is_not(tmp_path: Path) -> None:
    words = "Implement the following plan:\n\nDig, then plant."
    after = [said("And water it.", 1, uuid="u1"), reply(2, 51_000, LOST, 1)]
    assert causes(held(tmp_path, *opened(words), *after)) == ["plan"]
    thought = [said(words), answered(1, 50_000, 0, 0, THOUGHT, DIG)]
    assert causes(held(tmp_path, *thought, *after)) == ["person"]


def test_a_prompt_that_became_smaller_lost_something(tmp_path: Path) -> None:
    asked = said("Now the paths.", 1, uuid="u1")
    assert causes(held(tmp_path, *opened(), asked, reply(2, 49_500, LOST, 1))) == ["shortened"]


@pytest.mark.parametrize("word", get_args(Diagnosis))
def test_the_vendors_own_diagnosis_comes_first_and_predicts_nothing(tmp_path: Path, word: str) -> None:
    told = reply(2, 49_500, LOST, 1)
    told["message"]["diagnostics"] = {"cache_miss_reason": {"type": word, "cache_missed_input_tokens": 9}}
    assert causes(held(tmp_path, *opened(), said("On.", 1, uuid="u1"), told)) == [word]


@pytest.mark.parametrize("diagnostics", [{"cache_miss_reason": {"type": "unavailable"}}, {}, None, "x", 7])
def test_a_diagnosis_that_says_nothing_leaves_the_cause_to_the_file(
    tmp_path: Path, diagnostics: object
) -> None:
    told = reply(2, 51_000, LOST, 1)
    told["message"]["diagnostics"] = diagnostics
    assert causes(held(tmp_path, *opened(), said("On.", 1, uuid="u1"), told)) == ["person"]


def test_a_switch_that_foretold_no_miss_is_named() -> None:
    """Reasoning goes off and comes back: what stood before it is looked for, and was lost all the same."""
    rows = [row(50_000, 0), row(50_500, 0, minute=1, line=3), row(51_000, 0, minute=2, line=5)]
    marks = [Mark("reasoning", None, "", 2, by="off"), Mark("reasoning", None, "", 4, by="on")]
    found = held_against(series_of(session(rows, marks)))
    assert (found.hits, causes(found)) == (1, ["reasoning"])


def test_a_false_alarm_is_laid_to_what_foretold_it() -> None:
    warm = row(51_000, 50_000, minute=1, line=3)
    fallen = [row(30_000, 0), row(90_000, 30_000, minute=1, line=2), row(60_000, 80_000, minute=2, line=3)]
    for rows, mark, cause in (
        ([row(50_000, 0), replace(warm, at_ms=360_000)], None, "life"),
        ([row(50_000, 0), replace(warm, model="claude-haiku-4-5")], None, "model"),
        ([row(50_000, 0), warm], Mark("restart", None, "", 2), "restart"),
        ([row(50_000, 0), warm], Mark("reasoning", None, "", 1, by="off"), "reasoning"),
        (fallen, None, "fall"),
    ):
        found = held_against(series_of(session(rows, [mark] if mark else [])))
        assert ([each.cause for each in found.false], found.unseen) == ([cause], ())


def test_a_session_is_told_in_sentences_and_one_by_one(tmp_path: Path) -> None:
    lines = opened()
    for number in range(2, 5):
        lines += [
            said("Go on.", number, uuid=f"u{number}"),
            reply(number, 50_000 + number * 500, LOST, number),
        ]
    lines += [said(RESULT, 5, uuid="u5"), reply(5, 53_000, LOST, 5)]
    lines += [said("Still there?", 12, uuid="u6"), reply(6, 54_000, 53_000, 12)]
    (found,) = requests_of(write(tmp_path / "garden.jsonl", lines))
    told = held_against(series_of(found))
    assert reasons(told) == [
        "4 misses not foreseen: 3 at a person's message, 1 at the result of a tool or a task",
        "1 false alarm: still held after its life had ended",
    ]
    rows = check_row(found, told)
    assert (rows["unseen"], rows["false"], len(rows["not_foreseen"])) == (4, 1, 4)
    assert rows["not_foreseen"][3] == {
        "branch": "",
        "request": 5,
        "line": 10,
        "at_ms": found.rows[4].at_ms,
        "pause_ms": 60_000,
        "prompt_before": 52_000,
        "prompt": 53_000,
        "read": LOST,
        "predicted_read": 52_000,
        "cause": "result",
    }
    assert rows["false_alarms"][0]["cause"] == "life"


def test_every_cause_has_words_and_every_word_a_cause() -> None:
    assert MISS_WORDS.keys() == {*get_args(Diagnosis), *get_args(MissCause)}
    assert ALARM_WORDS.keys() == set(get_args(AlarmCause))
