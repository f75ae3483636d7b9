"""The predicted cache against recordings whose answers are known; it never looks at what was read."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from shiftbook.measure.predict import check_sums, held_against, predicted_reads, reasons
from shiftbook.measure.series import series_of
from tests.measure.made import growing, row, session


def held(rows):
    return held_against(series_of(session(rows)))


def wrong(found):
    """Hits, false alarms, and misses that were not foreseen."""
    return found.hits, len(found.false), len(found.unseen)


def blind(rows):
    """The same rows with every token laid to the writes, so that nothing tells what was read."""
    told = []
    for each in rows:
        usage = replace(each.usage, cache_read=0, cache_write=each.usage.prompt)
        five = None if usage.cache_write_1h else usage.cache_write
        told.append(replace(each, usage=replace(usage, cache_write_5m=five)))
    return told


@given(
    st.lists(st.integers(5_000, 200_000), min_size=2, max_size=30),
    st.lists(st.floats(0, 20), min_size=30, max_size=30),
)
def test_the_prediction_is_the_same_when_the_recorded_reads_are_hidden(sizes, minutes):
    at = 0.0
    rows = []
    for number, (each, pause) in enumerate(zip(growing(sizes), minutes, strict=False)):
        at += pause if number else 0
        rows.append(replace(each, at_ms=round(at * 60_000)))
    seen, hidden = series_of(session(rows)), series_of(session(blind(rows)))
    assert predicted_reads(seen, "5m") == predicted_reads(hidden, "5m")
    for (branch, number), read in predicted_reads(seen, "5m").items():
        assert branch == ""
        assert 0 <= read <= sizes[number]


def test_a_warm_session_is_predicted_to_the_token_after_its_first_request():
    found = held(growing([20_000, 21_000, 25_000, 26_000]))
    assert found.recorded == found.predicted
    assert wrong(found) == (0, 0, 0)


def test_an_expired_life_is_predicted_by_the_stamps():
    five = held([row(50_000, 0), row(51_000, 0, minute=6, line=2)])
    assert (five.life, *wrong(five)) == ("5m", 1, 0, 0)
    hour = held([row(50_000, 0, hour=True), row(51_000, 50_000, minute=6, line=2, hour=True)])
    assert (hour.life, hour.off, *wrong(hour)) == ("1h", 0.0, 0, 0, 0)


def test_a_compaction_and_another_model_are_predicted_by_the_sizes_and_the_name():
    assert held([row(100_000, 0), row(30_000, 5_000, minute=1, line=2)]).hits == 1
    assert held([row(50_000, 0), row(51_000, 0, minute=1, line=2, model="claude-haiku-4-5")]).hits == 1


def test_reasoning_dropped_from_the_end_leaves_the_cache_warm():
    assert wrong(held([row(50_000, 0), row(47_000, 46_900, minute=1, line=2)])) == (0, 0, 0)


def test_what_a_prediction_cannot_know_is_counted():
    changed = held([row(50_000, 0), row(51_000, 16_000, minute=1, line=2)])
    assert wrong(changed) == (0, 0, 1)
    outlived = held([row(50_000, 0), row(51_000, 50_000, minute=6, line=2)])
    assert wrong(outlived) == (0, 1, 0)
    sums = check_sums([changed, outlived, held([row(50_000, 0), row(51_000, 0, minute=6, line=2)])])
    assert (sums["misses"], sums["precision"], sums["recall"]) == (2, 0.5, 0.5)
    assert (sums["not_foreseen"], sums["false_alarms"]) == ({"unknown": 1}, {"life": 1})


def test_a_share_that_is_off_without_a_wrong_request_has_a_reason_too():
    found = held([row(50_000, 25_000), row(51_000, 50_000, minute=1, line=2)])
    assert (wrong(found), abs(found.off) > 3) == ((0, 0, 0), True)
    assert "though no request was foreseen wrongly" in reasons(found)[0]


def test_branches_have_prefixes_of_their_own():
    rows = [
        row(50_000, 0, minute=0, line=1),
        row(30_000, 0, minute=0.5, line=2, branch="agent"),
        row(51_000, 50_000, minute=1, line=3),
        row(31_000, 30_000, minute=1.5, line=4, branch="agent"),
    ]
    found = held(rows)
    assert (found.requests, *wrong(found)) == (4, 0, 0, 0)
    assert found.predicted == found.recorded


def test_nothing_recorded_gives_nothing():
    found = held([row(50_000, None), row(51_000, None, minute=1, line=2)])
    assert (found.requests, found.recorded, found.off) == (0, None, None)
    assert check_sums([])["precision"] is None
