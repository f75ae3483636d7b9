"""Real recordings, where they are at hand: the figures of docs/guides/measure.md, counted anew."""

from __future__ import annotations

import pytest

from shiftbook.measure.predict import check_sums, held_against, reasons
from shiftbook.measure.series import series_of
from shiftbook.sessions import RecordedRequests, walk_requests
from tests.rerun.data import CLAUDE, SKIP_REASON

pytestmark = pytest.mark.skipif(not CLAUDE.is_dir(), reason=SKIP_REASON)


@pytest.fixture(scope="module")
def sessions() -> list[RecordedRequests]:
    return [each for each in walk_requests([CLAUDE]) if isinstance(each, RecordedRequests)]


def test_the_cache_of_recorded_sessions_is_predicted_as_the_guide_says(
    sessions: list[RecordedRequests],
) -> None:
    held = [held_against(series_of(each)) for each in sessions]
    sums = check_sums(held)
    assert (len(sessions), sum(each.requests for each in held)) == (29, 4_197)
    assert (sums["sessions"], sums["near"], sums["misses"]) == (29, 29, 104)
    assert (sum(each.hits for each in held), sum(len(each.false) for each in held)) == (87, 7)
    assert sums["precision"] == pytest.approx(87 / 94)
    assert sums["recall"] == pytest.approx(87 / 104), "the aim of .9 is missed, and the guide says so"
    assert sums["not_foreseen"] == {"person": 9, "plan": 3, "shortened": 2, "result": 2, "reasoning": 1}
    assert sums["false_alarms"] == {"life": 7}
    failing = [each for each in held if each.false or each.unseen]
    assert all(reasons(each) for each in failing)


def test_the_misses_are_those_of_an_independent_count(sessions: list[RecordedRequests]) -> None:
    found = 0
    for each in sessions:
        prompts = [row.usage.prompt or 0 for row in each.rows]
        reads = [row.usage.cache_read or 0 for row in each.rows]
        for before, read in zip(prompts, reads[1:], strict=False):
            found += read < 0.8 * before and before - read > 2_000
    assert found == 104
