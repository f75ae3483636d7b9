"""SIGKILL in child processes, inside tools, model and commits; what is left is read by another process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crash.killing import Kill, Place, entries_in, run_child, violations

pytestmark = pytest.mark.slow

IN_EVERY_WAY = [
    Kill("tool.look", "before"),
    Kill("tool.look", "inside"),
    Kill("tool.mail", "inside", 2),
    Kill("tool.pay", "after"),
    Kill("tool.send", "inside", 2),
    Kill("tool.flaky", "inside"),
    Kill("model", "before", 2),
    Kill("model", "inside", 3),
    Kill("model", "after", 4),
    Kill("entries.append", "before", 4),
    Kill("entries.append", "after", 3),
    Kill("entries.append", "after", 9),
]
KILLS = [("in-loop", kill) for kill in IN_EVERY_WAY]
KILLS += [("writer", kill) for kill in IN_EVERY_WAY]
KILLS += [("writer", Kill("entries.append", "inside", at)) for at in (2, 3, 5, 8)]


@pytest.mark.parametrize(("commits", "kill"), KILLS, ids=str)
def test_b1_b2_a_killed_process_loses_and_repeats_nothing(tmp_path: Path, commits: Any, kill: Kill) -> None:
    place = Place(tmp_path, commits)
    assert run_child(place, kill) == "here"
    before = entries_in(place)
    # The dead process's lease is not over by half a minute: it is replaced since its holder is gone.
    assert run_child(place, None) == "finished"
    assert violations(place, before) == []


AROUND_A_REPORT = [
    Kill("model", "before", 7),
    Kill("model", "inside", 12),
    Kill("model", "after", 8),
    Kill("entries.append", "before", 15),
    Kill("entries.append", "after", 15),
    Kill("entries.append", "after", 16),
    Kill("entries.append", "before", 17),
]


@pytest.mark.parametrize("commits", ["in-loop", "writer"])
@pytest.mark.parametrize("kill", AROUND_A_REPORT, ids=str)
def test_a4_c10_a_process_killed_around_a_models_report(tmp_path: Path, commits: Any, kill: Kill) -> None:
    """What it has paid for stands and is used, and the run keeps its old prompt until the report is there."""
    place = Place(tmp_path, commits, "quick")
    assert run_child(place, kill) == "here"
    before = entries_in(place)
    assert run_child(place, None) == "finished"
    assert violations(place, before) == []
    answered = [entry.position for entry in entries_in(place) if entry.kind == "ReportAnswered"]
    assert len(answered) == 1


@pytest.mark.parametrize("commits", ["in-loop", "writer"])
def test_a_run_that_is_killed_again_and_again_comes_to_its_end(tmp_path: Path, commits: Any) -> None:
    place = Place(tmp_path, commits)
    before: list[Any] = []
    # A kill inside `mail` leaves it unknown for good, so each later process comes a step further.
    for kill in (
        Kill("tool.mail", "inside"),
        Kill("tool.pay", "inside"),
        Kill("model", "inside"),
        Kill("tool.send", "inside", 2),
        Kill("entries.append", "after", 2),
    ):
        assert run_child(place, kill) == "here"
        entries = entries_in(place)
        assert entries[: len(before)] == before
        before = entries
    assert run_child(place, None) == "finished"
    assert violations(place, before) == []
