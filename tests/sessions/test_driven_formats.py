"""Formats that hold what was said: steps counted by hand, and each driven through the engine to its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from shiftbook.errors import SessionUnreadable
from shiftbook.journal.open import open_store
from shiftbook.rerun import Rerun, Settings, rerun
from shiftbook.sessions import CallPart, PersonText, Reply, Session, TextPart, open_session
from shiftbook.verify import verify
from tests.sessions.foreign import REQUESTS

SOUND: dict[str, tuple[str | None, list[str], list[tuple[str, list[str]]], dict[str, int]]] = {
    "chat_list.json": (
        "Be brief.",
        ["How deep is the harbour?"],
        [("", ["sound=9 m"]), ("Nine metres.", [])],
        {},
    ),
    "chat_log.jsonl": (
        "Be brief.",
        ["How deep is the harbour?"],
        [("", ["sound=9 m"]), ("Nine metres.", [])],
        {},
    ),
    "anthropic_list.json": (
        None,
        ["How deep is the harbour?", "In metres, please."],
        [("", ["sound=9 m"]), ("Nine metres.", [])],
        {"reasoning": 1},
    ),
    "anthropic_log.jsonl": ("Be brief.", ["How deep?"], [("Nine.", [])], {}),
    "responses_items.json": (
        "Be brief.",
        ["How deep is the harbour?", "Thanks."],
        [("", ["sound=9 m", "sound=4 m"]), ("Nine and four.", []), ("Welcome.", [])],
        {"reasoning": 1, "compaction": 1},
    ),
    "codex/rollout-1.jsonl": (
        "You keep a harbour.",
        ["List the boats.", "Which is older?"],
        [("", ["shell=gull\nheron"]), ("Two boats: gull and heron.", []), ("The gull.", [])],
        {"environment context": 1, "reasoning": 1, "compaction summary": 1},
    ),
    "swe_agent.traj": (
        "You mend code.",
        ["The shed leaks."],
        [("Look first.\n```\nls\n```", ["action=shed.py"]), ("Mend it.", ["submit=None"])],
        {"demonstration": 2, "call without an answer": 1},
    ),
    "atif.json": (
        "You garden.",
        ["Water the beds."],
        [
            ("old", []),
            ("Watering.", ["water=wet"]),
            ("Done.", []),
            ("No metrics here.", []),
            ("by rule", []),
        ],
        {"sub-agent trajectory": 1},
    ),
    "codex_agents/rollout-main.jsonl": (
        "You keep a harbour.",
        ["Sound the piers.", "And the mole?"],
        [
            ("", ["exec_command=9 m", "exec_command=4 m"]),
            ("Nine and four metres.", []),
            ("Piers: nine, four.", []),
            ("", ['spawn_agent={"agent_id":"cx-9a"}']),
            ("Wait.", []),
        ],
        {"compaction summary": 1, "token_usage_record line": 4},
    ),
    "mini_swe_agent.json": (
        "You mend sheds.",
        ["The shed leaks."],
        [("Look.", ["bash=roof"]), ("Mend.", ["bash=dry"])],
        {"end of the run": 1, "complaint about a reply": 1},
    ),
    "mini_swe_agent_responses.json": (
        "You mend sheds.",
        ["The shed leaks."],
        [("Look.", ["bash=roof"]), ("It is dry.", [])],
        {"end of the run": 1},
    ),
}


def sound(name: str, folder: Path) -> Path:
    """The fixture; of a JSONL file without a torn end the whole."""
    path = REQUESTS / name
    if not name.startswith("codex"):
        return path
    kept = folder / "kept"
    kept.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    return kept


def replies(session: Session) -> list[tuple[str, list[str]]]:
    told = []
    for reply in session.replies:
        words = "".join(part.text for part in reply.parts if isinstance(part, TextPart))
        calls = [part for part in reply.parts if isinstance(part, CallPart)]
        answers = [
            None
            if answer is None
            else "".join(part.text for part in answer.content if isinstance(part, TextPart))
            for answer in reply.answers
        ]
        told.append((words, [f"{call.tool}={given}" for call, given in zip(calls, answers, strict=True)]))
    return told


@pytest.mark.parametrize("name", SOUND)
def test_the_steps_of_a_fixture_are_those_counted_by_hand(name: str, tmp_path: Path) -> None:
    instructions, people, said, named = SOUND[name]
    session = open_session(sound(name, tmp_path))
    assert session.instructions == instructions
    assert [step.text for step in session.steps if isinstance(step, PersonText)] == people
    assert replies(session) == said
    assert {what: session_named for what, session_named in session.named if what in named} == named


@pytest.mark.parametrize("name", SOUND)
def test_the_engine_drives_it_to_its_end(name: str, tmp_path: Path) -> None:
    session = open_session(sound(name, tmp_path))

    async def work() -> Rerun:
        store = await open_store(":memory:")
        made = await rerun(store, session, Settings(), run="r1")
        assert (await verify(store, "r1")).faults == ()
        await store.close()
        return made

    made = asyncio.run(work())
    assert made.summary.state == "finished"
    assert made.requests_driven == len([step for step in session.steps if isinstance(step, Reply)])


def test_a_codex_compaction_keeps_the_account_that_replaced_the_history() -> None:
    (account,) = open_session(REQUESTS / "codex_agents" / "rollout-main.jsonl").compactions
    assert account.text.endswith("Piers: nine, four.")


def test_formats_that_only_count_say_so() -> None:
    for name in ("otel.json", "vercel.json", "openhands_events.jsonl"):
        with pytest.raises(SessionUnreadable, match="can be measured"):
            open_session(REQUESTS / name)
    with pytest.raises(SessionUnreadable, match="can be measured, not driven"):
        open_session(REQUESTS / "responses_log.jsonl")


def test_a_literal_in_pythons_notation_is_data_and_never_run(tmp_path: Path) -> None:
    text = (REQUESTS / "swe_agent.traj").read_text()
    marker = tmp_path / "was-run"
    hostile = f"[open({str(marker)!r}, 'w')]"
    start = text.index("\"[{'function'") + 1
    end = text.index(']"', start) + 1
    path = tmp_path / "hostile.traj"
    path.write_text(text[:start] + hostile + text[end:])
    assert open_session(path).replies[1].calls[0].tool == "action"
    assert not marker.exists()
