"""The sweep: die at every await of a run, resume, and nothing is lost, repeated or claimed.

A failure prints the line that reproduces it. Points are dealt out to several tests, so that two workers
share them.
"""

from __future__ import annotations

import random

import pytest

from shiftbook.entries import Recalled
from tests.crash.invariants import broken
from tests.crash.points import (
    at_point,
    commits,
    crash,
    crash_again,
    resumed,
    taken_over,
    told,
    unconfirmed,
    uncrashed,
)
from tests.crash.scenarios import CANCELLED, LONG, RECALLING, REPORTED, SCENARIOS, SHORT, TINY
from tests.crash.sweep import Ground

SWEPT = [(LONG.name, part, 8) for part in range(8)]
SWEPT += [(name, part, 2) for name in (SHORT.name, CANCELLED.name, TINY.name) for part in range(2)]
SWEPT += [(REPORTED.name, part, 2) for part in range(2)]
SWEPT += [(RECALLING.name, part, 4) for part in range(4)]
SEEDED_FIRSTS, SEEDED_SECONDS = 75, 4


def test_the_scenarios_hold_at_least_500_points_of_every_kind() -> None:
    passed = [point for name in SCENARIOS for point in uncrashed(name).points]
    assert len(passed) >= 500
    seams = {point.seam for point in passed}
    tools = {seam for seam in seams if seam.startswith("tool.")}
    assert len(tools) >= 10
    assert {"entries.append", "leases.take", "inbox.waiting", "model", "clock.sleep_ms", "ask.ship"} <= seams
    assert {(seam, "inside") for seam in (*tools, "model", "ask.ship", "clock.sleep_ms")} <= {
        (point.seam, point.moment) for point in passed
    }


def test_older_entries_come_back_at_a_rebuild_and_for_a_message() -> None:
    whats = [entry.what for entry in uncrashed(RECALLING.name).ground.journal()]
    back = [what for what in whats if isinstance(what, Recalled) and what.found]
    assert {what.asked_by for what in back} == {"message", "rebuild"}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_uncrashed_runs_are_whole_and_always_the_same(name: str) -> None:
    first = uncrashed(name)
    again = Ground(SCENARIOS[name])
    process = again.process()
    assert broken(again, summary=process.summary, error=process.error, same_as=first.ground) == []
    assert process.seams.passed == first.points
    assert [entry.what for entry in again.journal()] == [entry.what for entry in first.ground.journal()]


@pytest.mark.parametrize(("name", "part", "parts"), SWEPT)
def test_a1_a8_b13_b17_l3_die_at_every_point_and_resume(name: str, part: int, parts: int) -> None:
    points = uncrashed(name).points
    tried = 0
    for point in points[part::parts]:
        left = crash(SCENARIOS[name], point.number)
        for message in (False, True):
            _, violations = resumed(left, message=message)
            at = f"{point.number}{'+message' if message else ''}"
            assert not violations, told(name, at, violations)
        left.ground.close()
        tried += 1
    assert tried == len(range(part, len(points), parts))


@pytest.mark.parametrize("part", range(6))
def test_die_again_in_the_resume_at_every_pair_of_points(part: int) -> None:
    firsts = uncrashed(TINY.name).points[part::6]
    for point in firsts:
        left = crash(TINY, point.number)
        process, _ = resumed(left)
        for second in range(1, len(process.seams.passed) + 1):
            violations = crash_again(left, second)
            assert not violations, told(TINY.name, f"{point.number},{second}", violations)
        left.ground.close()


@pytest.mark.parametrize("seed", range(5))
def test_die_again_in_the_resume_at_300_seeded_pairs(seed: int) -> None:
    lot = random.Random(seed)
    for _ in range(SEEDED_FIRSTS // 5):
        scenario = lot.choice([LONG, SHORT, CANCELLED])
        point = lot.choice(uncrashed(scenario.name).points)
        left = crash(scenario, point.number)
        process, _ = resumed(left)
        for _ in range(SEEDED_SECONDS):
            second = lot.randint(1, len(process.seams.passed))
            violations = crash_again(left, second)
            assert not violations, told(scenario.name, f"{point.number},{second}", violations)
        left.ground.close()


@pytest.mark.parametrize("name", [SHORT.name, TINY.name])
def test_c4_b16_a_frozen_holder_that_wakes_up_is_refused_at_every_commit(name: str) -> None:
    # The first commit is skipped: until it is made there is no run that another could take.
    for at in commits(name, "before")[1:]:
        violations = taken_over(SCENARIOS[name], at)
        assert not violations, told(name, f"{at}+takeover", violations)


@pytest.mark.parametrize("name", [SHORT.name, TINY.name])
def test_a_commit_whose_confirmation_is_lost_is_not_made_twice(name: str) -> None:
    for at in commits(name, "after"):
        violations = unconfirmed(SCENARIOS[name], at)
        assert not violations, told(name, f"{at}+unconfirmed", violations)


@pytest.mark.parametrize(("name", "at"), [(REPORTED.name, 14), (RECALLING.name, 12)])
def test_a_confirmation_lost_where_a_prompt_is_decided_is_told_and_no_other_refusal(
    name: str, at: int
) -> None:
    """Found by the sweep of every point: the answer before a rebuild was committed, and then once more."""
    number = commits(name, "after")[at]
    violations = unconfirmed(SCENARIOS[name], number)
    assert not violations, told(name, f"{number}+unconfirmed", violations)


def test_a_point_can_be_named_and_tried_alone() -> None:
    for at in ("1", "20", "20+message", "20,9"):
        assert at_point(TINY.name, at) == []
    with pytest.raises(ValueError, match="points, not 9999"):
        at_point(TINY.name, "9999")
