"""tau-bench runs, as one JSON list or one a line, and the choice of one among many."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from shiftbook.errors import SessionUnreadable
from shiftbook.sessions import (
    Answer,
    CallPart,
    PersonText,
    TextPart,
    count_sessions,
    each_session,
    open_session,
)

FIXTURES = Path(__file__).parent / "fixtures"
LIST, LINES = FIXTURES / "tau_list.json", FIXTURES / "tau_lines.jsonl"


@pytest.mark.parametrize("path", [LIST, LINES])
def test_a_run_in_normal_form(path: Path) -> None:
    session = open_session(path, only=1)
    assert session.instructions == "Be a baker."
    assert [type(step).__name__ for step in session.steps] == [
        "PersonText",
        "Reply",
        "Reply",
        "Reply",
        "PersonText",
    ]
    first, second, third = session.replies
    assert first.parts == (CallPart("k1", "bake", {"loaves": 2}, '{"loaves": 2}'),)
    assert first.answers == (Answer(None, (TextPart("baked"),), None, 4),)
    assert second.parts == (TextPart("Once more."), CallPart("k1", "bake", None, '{"loaves": 2,'))
    assert second.answers == (Answer(None, (TextPart("Error: bad arguments"),), None, 6),)
    assert third.parts == (TextPart("Two loaves are baked."),)
    assert session.steps[-1] == PersonText(None, "thanks ###STOP###", 8)
    assert (session.requests_in_file, session.named, session.model) == (3, (), None)
    assert all(reply.usage is None and reply.at_ms is None for reply in session.replies)


def test_a_call_without_an_answer_is_left_open_and_counted() -> None:
    session = open_session(LINES, only=2)
    assert session.steps[0] == PersonText(None, "a line\u2028apart", 2)
    assert session.replies[0].answers == (None,)
    assert session.replies[0].calls[0].arguments == {"g": 2}
    assert session.named == (("call without an answer", 1),)


def test_a_list_and_lines_hold_the_same_sessions() -> None:
    listed = [dataclasses.replace(session, source="") for session in each_session(LIST)]
    lined = [dataclasses.replace(session, source="") for session in each_session(LINES)]
    assert listed == lined
    assert [session.number for session in listed] == [1, 2]
    assert count_sessions(LIST) == count_sessions(LINES) == 2


def test_one_of_many_must_be_chosen() -> None:
    with pytest.raises(SessionUnreadable, match="holds 2 sessions; choose one with --only 1 to --only 2"):
        open_session(LIST)
    with pytest.raises(SessionUnreadable, match="has no session 3: it holds 2"):
        open_session(LIST, only=3)


def test_a_few_shot_file_is_refused_with_its_reason() -> None:
    with pytest.raises(SessionUnreadable, match="few-shot record, whose display text leaves out"):
        open_session(FIXTURES / "tau_few_shot.jsonl")


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ('{"role": "oracle", "content": "x"}', 'run 1: message 2 has the role "oracle"'),
        ('{"content": "x"}', 'run 1: "traj[2].role" is missing, not text'),
        ('{"role": "user", "content": 4}', 'run 1: "traj[2].content" is a number'),
        ('{"role": "assistant", "function_call": {"name": "f"}}', 'message 2 has a "function_call"'),
        ('{"role": "tool", "content": "x"}', '"traj[2].tool_call_id" is missing'),
    ],
)
def test_a_broken_message_is_told_by_run_and_line(tmp_path: Path, message: str, what: str) -> None:
    path = tmp_path / "runs.json"
    path.write_text(f'[\n{{"task_id": 0, "traj": [{{"role": "user", "content": "a"}}, {message}]}}\n]')
    with pytest.raises(SessionUnreadable) as caught:
        open_session(path)
    assert caught.value.line == 2
    assert what in caught.value.what
