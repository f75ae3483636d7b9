"""Claude Code lines become one normal form: each rule of the reader's docstring, on a file of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shiftbook.errors import SessionUnreadable
from shiftbook.sessions import (
    CallPart,
    MissingPart,
    Notice,
    PersonText,
    RecordedUsage,
    Session,
    Step,
    TextPart,
    count_sessions,
    open_session,
)

FIXTURES = Path(__file__).parent / "fixtures"


def read(name: str) -> Session:
    return open_session(FIXTURES / f"claude_{name}.jsonl")


def told(step: Step) -> str:
    """A step in a few characters: the words, [notice], or =message."""
    if isinstance(step, PersonText):
        return step.text
    return f"[{step.what}]" if isinstance(step, Notice) else f"={step.message_id}"


def test_one_reply_is_gathered_around_its_interleaved_results() -> None:
    session = read("one_reply")
    assert [told(step) for step in session.steps] == ["count the lamps", "=m1", "=m2"]
    first, last = session.replies
    assert first.parts == (
        MissingPart("reasoning"),
        TextPart("Two rooms to look at."),
        CallPart("c1", "look", {"room": "hall"}),
        CallPart("c2", "look", {"room": "attic"}),
    )
    assert first.usage == RecordedUsage(5, 7, 100, 100, 0, 40, None)
    assert first.usage is not None
    assert first.usage.prompt == 112
    assert (first.stop, first.model, first.line) == ("tool_use", "heron-1", 3)
    assert [answer.content if answer else None for answer in first.answers] == [
        (TextPart("3 lamps"),),
        (TextPart("none"), MissingPart("image")),
    ]
    assert [answer.is_error if answer else None for answer in first.answers] == [False, True]
    assert (last.usage, last.stop, last.answers) == (None, "end_turn", ())
    assert session.steps[0].at_ms == 1_935_388_800_250
    assert (session.format, session.number, session.instructions, session.model) == (
        "claude-code",
        1,
        None,
        "heron-1",
    )
    assert session.named == (
        ("summary line", 1),
        ("system line: turn_duration", 1),
        ("reasoning", 1),
        ("image", 1),
    )


def test_only_a_persons_words_are_a_persons_words() -> None:
    session = read("words")
    assert [told(step) for step in session.steps] == [
        "[command echo]",
        "[meta line]",
        "=m1",
        "not the shed, the porch",
        "=m2",
        "[interrupt]",
        "[meta line]",
        "[command echo]",
        "[command output]",
        "[task notification]",
        "[editor context]",
        "[system reminder]",
        "[system reminder]",
        "\nis the <b>broom</b> there?\n",
        "[image]",
        "=m3",
        "[compaction summary]",
        "[compaction summary]",
        "[Request interrupted by user] is what I saw: why?",
        "=m4",
        "[empty text]",
        "[hook message]",
        "<porch> is a tag of mine",
    ]
    answer = session.replies[0].answers[0]
    assert answer is not None
    assert answer.content == (TextPart("declined"),)


def test_sidechains_tool_written_replies_and_copies_are_left_out_and_counted() -> None:
    session = read("mixed_side")
    assert [told(step) for step in session.steps] == ["send a helper", "=m1", "=m2"]
    assert session.replies[1].parts == (TextPart("Done."),)
    assert session.sidechains_skipped == 4
    assert (len(session.replies), session.requests_in_file) == (2, 4)
    assert dict(session.named) == {"repeated line": 1, "synthetic reply": 2, "sidechain line": 4}
    answer = session.replies[0].answers[0]
    assert answer is not None
    assert answer.content == (TextPart("the helper dug"),)


def test_a_file_of_sidechain_lines_alone_is_its_own_run() -> None:
    session = read("all_side")
    assert [told(step) for step in session.steps] == ["dig a hole", "=n1", "=n2"]
    assert (session.sidechains_skipped, session.requests_in_file) == (0, 2)
    assert None not in session.replies[0].answers


def test_answers_find_their_calls_though_ids_repeat() -> None:
    session = read("ids")
    said = [
        tuple(
            None if answer is None else "".join(getattr(part, "text", "") for part in answer.content)
            for answer in reply.answers
        )
        for reply in session.replies
    ]
    assert said == [(None,), ("second rang", "third rang"), ("fourth rang",), ()]
    assert session.replies[3].parts == (MissingPart("server_tool_use"), MissingPart("reasoning"))
    assert dict(session.named) == {
        "answer without a call": 1,
        "second answer to a call": 1,
        "server_tool_use": 1,
        "reasoning": 1,
        "call without an answer": 1,
    }


def test_texts_follow_their_recorded_predecessor_and_all_else_the_lines() -> None:
    assert [told(step) for step in read("order").steps] == [
        "first",
        "=m1",
        "parent is not there",
        "=m2",
        "after c",
        "after late1",
        "=m3",
        "circle two",
        "circle one",
    ]


def test_replies_without_a_message_id_are_told_apart_by_request_then_by_line(tmp_path: Path) -> None:
    lines = [
        {"type": "user", "uuid": "a", "message": {"content": "go"}},
        {"type": "assistant", "uuid": "b", "requestId": "r", "message": {"content": "one"}},
        {"type": "assistant", "uuid": "c", "requestId": "r", "message": {"content": "two"}},
        {"type": "assistant", "uuid": "d", "message": {"content": "three"}},
        {"type": "assistant", "uuid": "e", "message": {"content": "four"}},
    ]
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    session = open_session(path)
    assert [reply.parts for reply in session.replies] == [
        (TextPart("one"), TextPart("two")),
        (TextPart("three"),),
        (TextPart("four"),),
    ]
    assert {step.at_ms for step in session.steps} == {None}


def test_a_file_is_one_session() -> None:
    path = FIXTURES / "claude_order.jsonl"
    assert count_sessions(path) == 1
    assert open_session(path, only=1) == open_session(path)
    for number in (0, -1, 2):
        with pytest.raises(SessionUnreadable, match=f"has no session {number}: it holds 1"):
            open_session(path, only=number)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ({"type": 7}, '"type" is a number, not text'),
        ({"uuid": "x"}, '"type" is missing, not text'),
        ({"type": "user", "uuid": "x"}, '"message" is missing, not an object'),
        ({"type": "user", "message": {"content": 3}}, '"message.content" is a number, not text or a list'),
        (
            {"type": "user", "message": {"role": "assistant", "content": ""}},
            '"message.role" is text, not "us',
        ),
        ({"type": "user", "message": {"content": ["x"]}}, '"message.content[1]" is text, not an object'),
        ({"type": "user", "timestamp": "noon", "message": {"content": "x"}}, '"timestamp" is not an ISO'),
        (
            {"type": "assistant", "message": {"content": [], "usage": {"output_tokens": True}}},
            '"message.usage.output_tokens" is true or false, not a whole number of at least 0',
        ),
        ({"type": "user", "isMeta": 1, "message": {"content": "x"}}, '"isMeta" is a number, not true or'),
        (
            {"type": "assistant", "message": {"content": [], "usage": {"input_tokens": -1}}},
            '"message.usage.input_tokens" is a number, not a whole number of at least 0',
        ),
        (
            {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "i", "name": "n"}]}},
            '"message.content[1].input" is missing, not an object',
        ),
    ],
)
def test_a_field_of_the_wrong_type_is_told_by_name_and_line(
    tmp_path: Path, line: dict[str, object], what: str
) -> None:
    path = tmp_path / "s.jsonl"
    whole = {"type": "user", "uuid": "a", "message": {"role": "user", "content": "go"}}
    path.write_text(f"{json.dumps(whole)}\n{json.dumps(line)}\n")
    with pytest.raises(SessionUnreadable) as caught:
        open_session(path)
    assert caught.value.line == 2
    assert what in caught.value.what
