"""SIGKILL in child processes, inside tools, model and commits; what is left is read by another process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crash.killing import Kill, Place, entries_in, found_in, run_child, violations

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
    Kill("report", "before"),
    Kill("report", "inside"),
    Kill("report", "after"),
    Kill("report", "before", 2),
    Kill("report", "inside", 2),
    Kill("report", "after", 2),
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


UNDER_NOTES = [
    *AROUND_A_REPORT[:6],
    # The answer and the epoch that shows it.
    Kill("entries.append", "before", 20),
    Kill("entries.append", "after", 20),
]


@pytest.mark.parametrize("kill", UNDER_NOTES, ids=str)
def test_a4_c10_a_process_killed_around_a_models_notes(tmp_path: Path, kill: Kill) -> None:
    place = Place(tmp_path, "in-loop", "noted")
    assert run_child(place, kill) == "here"
    before = entries_in(place)
    assert run_child(place, None) == "finished"
    assert violations(place, before) == []
    kinds = [entry.kind for entry in entries_in(place)]
    assert (kinds.count("ReportAnswered"), kinds.count("ReportWritten"), kinds.count("EpochOpened")) == (
        1,
        1,
        2,
    )


@pytest.mark.parametrize(
    "kill",
    [Kill("entries.append", moment, at) for at in (14, 15) for moment in ("before", "inside", "after")],
    ids=str,
)
def test_c10_a_process_killed_around_the_epoch_that_masks(tmp_path: Path, kill: Kill) -> None:
    place = Place(tmp_path, "writer", "masked")
    assert run_child(place, kill) == "here"
    before = entries_in(place)
    assert run_child(place, None) == "finished"
    assert violations(place, before) == []
    assert [entry.kind for entry in entries_in(place)].count("EpochOpened") == 2


WHILE_FILLING = [
    Kill("index.add", "before"),
    Kill("index.write", "before"),
    Kill("index.write", "before", 3),
    Kill("index.add", "after"),
]


@pytest.mark.parametrize("kill", WHILE_FILLING, ids=str)
def test_j1_a_process_killed_while_it_fills_the_search_index(tmp_path: Path, kill: Kill) -> None:
    """The next one finds what an uncrashed run found, and the index says what one filled afresh says."""
    place = Place(tmp_path, "in-loop", "found")
    assert run_child(place, kill) == "here"
    before = entries_in(place)
    assert run_child(place, None) == "finished"
    assert violations(place, before) == []
    entries = entries_in(place)
    assert [entry.kind for entry in entries].count("Recalled") == 1
    assert not [entry for entry in entries if entry.kind == "Warned"]
    words = ["crates", "report", "1", "line"]
    assert found_in(place, words, anew=False) == found_in(place, words, anew=True)


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
