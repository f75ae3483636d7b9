"""The recorded sessions, if they are at hand: every file is read, and its counts are pinned.

The files are not part of the project. SHIFTBOOK_DATA names their folder; without it, `shared/data` beside
the checkout is looked at. The pins are the counts of `count_by_hand.py`, which shares no code with the
readers: for a Claude Code file the requests in it, requests driven, texts of a person, notices, and calls
without an answer; for the tau-bench trajectories runs, requests, texts, notices, calls without an answer.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from shiftbook.errors import SessionUnreadable
from shiftbook.sessions import (
    Notice,
    PersonText,
    Reply,
    Session,
    count_sessions,
    each_session,
    open_session,
)
from tests.sessions import count_by_hand

DATA = Path(os.environ.get("SHIFTBOOK_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
CLAUDE, TAU = DATA / "claude-code-sessions", DATA / "tau-bench"

pytestmark = pytest.mark.skipif(
    not CLAUDE.is_dir(),
    reason=f"NOT TESTED ON RECORDED SESSIONS: {CLAUDE} is not there; set SHIFTBOOK_DATA to the data folder",
)

PINS = {
    "entire-01-08940314.jsonl.gz": (288, 288, 22, 11, 0),
    "entire-03-1284c080.jsonl.gz": (258, 258, 36, 13, 0),
    "entire-05-c35cf82b.jsonl.gz": (248, 248, 14, 3, 0),
    "entire-07-43b2bd6e.jsonl.gz": (227, 227, 18, 2, 0),
    "entire-09-79e9becd.jsonl.gz": (258, 258, 34, 14, 0),
    "entire-11-a318ad73.jsonl.gz": (211, 211, 13, 3, 0),
    "entire-13-7f78a542.jsonl.gz": (223, 223, 28, 6, 0),
    "entire-15-1e0816ef.jsonl.gz": (204, 204, 32, 25, 1),
    "entire-17-9d7a9d52.jsonl.gz": (175, 175, 4, 3, 2),
    "entire-19-f4237e82.jsonl.gz": (198, 198, 22, 7, 0),
    "entire-21-9e2434f3.jsonl.gz": (156, 156, 7, 7, 0),
    "entire-23-266b3f40.jsonl.gz": (202, 202, 13, 1, 1),
    "entire-25-a0927dd5.jsonl.gz": (165, 165, 10, 6, 0),
    "entire-27-e8811ad6.jsonl.gz": (165, 165, 22, 8, 1),
    "entire-29-533ff7a3.jsonl.gz": (138, 138, 3, 2, 0),
    "entire-31-6dccd523.jsonl.gz": (180, 180, 9, 1, 1),
    "entire-33-4ddad80c.jsonl.gz": (97, 97, 3, 0, 0),
    "entire-35-0822e04b.jsonl.gz": (96, 96, 9, 0, 0),
    "entire-37-1664f311.jsonl.gz": (59, 59, 1, 3, 0),
    "entire-39-0a76fbfe.jsonl.gz": (63, 63, 2, 0, 0),
    "entire-41-ee6078de.jsonl.gz": (51, 51, 3, 0, 0),
    "entire-43-1c38adc0.jsonl.gz": (46, 46, 7, 5, 0),
    "entire-45-ae68c513.jsonl.gz": (30, 30, 2, 0, 0),
    "entire-47-8897bd54.jsonl.gz": (35, 35, 3, 0, 0),
    "entire-49-0c97beba.jsonl.gz": (14, 14, 1, 0, 0),
    "entire-51-2577a596.jsonl.gz": (18, 18, 4, 3, 0),
    "spotter-01-ae4a77f8.jsonl.gz": (217, 217, 2, 5, 0),
    "spotter-03-fa812bfe.jsonl.gz": (157, 157, 2, 2, 0),
    "spotter-06-agent-af.jsonl.gz": (18, 18, 1, 0, 0),
}
TAU_FILE = "gpt-4o-airline.trajectories.json.gz"
TAU_PINS = (200, 2454, 1490, 0, 0)


def kinds(session: Session) -> Counter[type]:
    return Counter(type(step) for step in session.steps)


def unanswered(session: Session) -> int:
    return sum(answer is None for reply in session.replies for answer in reply.answers)


def test_every_recorded_file_is_pinned() -> None:
    assert {path.name for path in CLAUDE.iterdir()} == set(PINS)


@pytest.mark.parametrize("name", PINS)
def test_a_recorded_file_counts_as_by_hand(name: str) -> None:
    session = open_session(CLAUDE / name)
    kind = kinds(session)
    counts = (
        session.requests_in_file,
        kind[Reply],
        kind[PersonText],
        kind[Notice],
        unanswered(session),
    )
    assert counts == PINS[name] == count_by_hand.claude(CLAUDE / name)
    assert dict(session.named).get("call without an answer", 0) == unanswered(session)
    assert (
        not {"answer without a call", "second answer to a call", "repeated line"} & dict(session.named).keys()
    )


def test_the_recorded_runs_count_as_by_hand() -> None:
    runs = list(each_session(TAU / TAU_FILE))
    kind = sum((kinds(run) for run in runs), Counter[type]())
    counts = (len(runs), kind[Reply], kind[PersonText], kind[Notice], sum(map(unanswered, runs)))
    assert counts == TAU_PINS == count_by_hand.tau(TAU / TAU_FILE)
    assert {run.named for run in runs} == {()}
    assert all(run.instructions for run in runs)
    assert count_sessions(TAU / TAU_FILE) == 200
    assert open_session(TAU / TAU_FILE, only=200) == runs[199]


def test_other_recorded_files_are_refused() -> None:
    folders = (TAU, DATA / "tau2-bench", DATA / "personamem")
    others = [path for folder in folders for path in folder.glob("*.gz") if path.name != TAU_FILE]
    assert others
    for path in others:
        with pytest.raises(
            SessionUnreadable, match=r"is no session of a known format|is a tau-bench few-shot"
        ):
            open_session(path)
