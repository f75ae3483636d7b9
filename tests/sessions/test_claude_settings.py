"""What a Claude Code file shows of reasoning switched off and of a program begun anew: invented files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shiftbook.measure.predict import held_against
from shiftbook.measure.series import series_of
from shiftbook.sessions import RecordedRequests, requests_of
from tests.measure.files import reply, said, write

THOUGHT = {"type": "thinking", "thinking": "The beds first, then the paths."}
SKILL = {"type": "tool_use", "id": "c1", "name": "Skill", "input": {"skill": "planting"}}
DIG = {"type": "tool_use", "id": "c2", "name": "Dig", "input": {"bed": 3}}
LONG = "Every bed by its own light and soil. " * 60


def answered(number: int, prompt: int, read: int, minute: float, *parts: dict[str, Any], **more: Any) -> Any:
    line = reply(number, prompt, read, minute)
    line["message"]["content"] = list(parts)
    return {**line, **more}


def launched(minute: float, uuid: str = "k1") -> list[dict[str, Any]]:
    """What stands after a skill was called: the tool's answer and the skill's own text, which nobody said."""
    result = [{"tool_use_id": "c1", "type": "tool_result", "content": "Launching skill: planting"}]
    text = [{"type": "text", "text": LONG}]
    return [
        said(result, minute, uuid=f"{uuid}r"),
        said(text, minute, uuid=f"{uuid}t", isMeta=True),
    ]


def read(tmp_path: Path, lines: list[Any]) -> RecordedRequests:
    (found,) = requests_of(write(tmp_path / "garden.jsonl", lines))
    return found


def marks(found: RecordedRequests) -> list[tuple[str, str | None, int]]:
    return [(mark.what, mark.by, mark.line) for mark in found.marks]


def with_a_skill(*after: dict[str, Any]) -> list[Any]:
    return [
        said(),
        answered(1, 20_000, 0, 0, THOUGHT, DIG),
        answered(2, 60_000, 20_000, 1, THOUGHT, SKILL),
        *launched(1),
        answered(3, 62_000, 11_000, 2, *after),
        said("Go on.", 3, uuid="u2"),
        answered(4, 64_000, 60_000, 3, THOUGHT, DIG),
    ]


def test_a_skill_switches_reasoning_off_until_a_person_speaks(tmp_path: Path) -> None:
    assert marks(read(tmp_path, with_a_skill(DIG))) == [("reasoning", "off", 3), ("reasoning", "on", 7)]


def test_a_skill_after_which_a_reply_reasons_switched_nothing(tmp_path: Path) -> None:
    assert marks(read(tmp_path, with_a_skill(THOUGHT, DIG))) == []


def test_one_skill_that_reasons_shows_a_program_without_the_fault(tmp_path: Path) -> None:
    lines = with_a_skill(THOUGHT, SKILL)
    lines += [answered(5, 54_000, 53_000, 4, SKILL), *launched(4, "k2"), answered(6, 55_000, 54_000, 5, DIG)]
    assert marks(read(tmp_path, lines)) == []


def test_a_command_that_is_sent_to_the_model_switches_reasoning_off_and_a_local_one_does_not(
    tmp_path: Path,
) -> None:
    sent = "<command-message>prune</command-message>\n<command-name>/prune</command-name>"
    for words, expected in ((sent, [("reasoning", "off", 3)]), ("<bash-input>ls</bash-input>", [])):
        lines = [
            said(),
            answered(1, 50_000, 0, 0, THOUGHT, DIG),
            said(words, 1, uuid="u2"),
            said([{"type": "text", "text": LONG}], 1, uuid="u3", isMeta=True),
            answered(2, 51_000, 20_000, 2, DIG),
        ]
        assert marks(read(tmp_path, lines)) == expected


def test_a_persons_long_message_and_an_account_are_told_apart(tmp_path: Path) -> None:
    """The long line is not passed over unread, and the account of a compaction is nobody's message."""
    lines = with_a_skill(DIG)
    head = {"parentUuid": "a3", "isSidechain": False, "type": "user"}
    lines[6] = json.dumps({**head, "message": None, **said(LONG, 3, uuid="u2")}, separators=(",", ":"))
    assert len(lines[6]) > 2_000
    assert marks(read(tmp_path, lines))[-1] == ("reasoning", "on", 7)
    lines[6] = said("So far: three beds.", 3, uuid="u2", isCompactSummary=True)
    lines[7] = answered(4, 53_000, 51_000, 3, DIG)
    assert ("reasoning", "on", 7) not in marks(read(tmp_path, lines))


def test_a_session_that_was_left_or_changed_its_program_began_anew(tmp_path: Path) -> None:
    left = "<command-name>/exit</command-name>\n<command-message>exit</command-message>"
    begun = [said(version="2.0.1"), answered(1, 50_000, 0, 0, THOUGHT, DIG, version="2.0.1")]
    back = [said("Back.", 2, uuid="u3"), answered(2, 51_000, 20_000, 2, THOUGHT, DIG)]
    assert marks(read(tmp_path, [*begun, said(left, 1, uuid="u2"), *back])) == [("restart", None, 4)]
    assert marks(read(tmp_path, [*begun, said(left, 1, uuid="u2")])) == []
    newer = [{**each, "version": "2.0.2"} for each in back]
    assert marks(read(tmp_path, [*begun, *newer])) == [("restart", None, 2)]


def test_what_a_mark_says_is_predicted_as_a_miss_and_what_comes_back_as_a_hit(tmp_path: Path) -> None:
    """Off loses the messages; on again a minute later finds the prompt from before the skill."""
    held = held_against(series_of(read(tmp_path, with_a_skill(DIG))))
    assert (held.hits, held.false, held.unseen) == (1, (), ())
    blind = held_against(series_of(read(tmp_path, with_a_skill(THOUGHT, DIG))))
    assert (blind.hits, len(blind.unseen)) == (0, 1)


def test_what_stands_further_back_than_the_vendor_looks_does_not_come_back(tmp_path: Path) -> None:
    """Between the prompt from before the skill and the last one stand 24 blocks: twelve calls and answers."""
    for calls, (late, hits) in ((2, (60_000, 1)), (12, (11_000, 2))):
        lines = with_a_skill(*[DIG] * calls)
        lines[6:] = [
            answered(4, 63_000, 62_000, 3, DIG),
            said("Go on.", 3, uuid="u2"),
            answered(5, 64_000, late, 4, THOUGHT, DIG),
        ]
        held = held_against(series_of(read(tmp_path, lines)))
        assert (held.hits, held.false, held.unseen) == (hits, (), ())
