"""The fitted line and the steps down, on prompts whose answers are known."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from shiftbook.measure.growth import growth_of, has_fallen
from shiftbook.measure.series import series_of
from shiftbook.sessions.requests import Mark
from tests.measure.made import growing, row, session, unknown


def fitted(rows, marks=()):
    return growth_of(series_of(session(rows, marks))[0])


@given(
    fixed=st.integers(0, 100_000),
    growth=st.integers(1, 20_000),
    first=st.integers(2, 60),
    later=st.lists(st.integers(2, 40), max_size=4),
)
def test_a_sawtooth_has_the_fixed_part_and_the_growth_that_it_was_made_of(fixed, growth, first, later):
    lengths = [first, *later]
    sizes = [fixed + growth * n for length in lengths for n in range(1, length + 1)]
    found = fitted(growing(sizes))
    drops = [length for length in lengths[:-1] if has_fallen(fixed + growth * length, fixed + growth)]
    if len(drops) < len(lengths) - 1:
        return  # a tooth too small to be told from jitter
    assert found.growth is not None
    assert abs(found.growth - growth) < 1e-6
    assert found.fixed is not None
    assert abs(found.fixed - fixed) < 1e-3
    assert found.spread is not None
    assert found.spread < 1e-3
    assert len(found.falls) == len(later)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=50))
def test_a_fit_never_leaves_its_bounds(sizes):
    found = fitted(growing(sizes))
    if found.fixed is None:
        assert found.growth is None
        return
    assert found.growth is not None
    assert 0 <= found.fixed <= min(sizes)
    rises = [after - before for before, after in pairwise(sizes)]
    assert min(rises) <= found.growth <= max(rises)


def test_one_request_has_no_line():
    found = fitted([row(5_000)])
    assert (found.fixed, found.growth, found.spread, found.falls) == (None, None, None, ())


def test_a_request_without_usage_is_counted_and_has_no_size():
    series = series_of(session([row(5_000), unknown(2), row(6_000, 5_000, minute=1, line=3)]))[0]
    assert series.requests == 3
    assert [point.prompt for point in series.points] == [5_000, 6_000]


def test_stamps_that_run_backwards_are_put_right():
    rows = [row(3_000, minute=2, line=1), row(1_000, minute=0, line=2), row(2_000, minute=1, line=3)]
    assert [point.prompt for point in series_of(session(rows))[0].points] == [1_000, 2_000, 3_000]


def test_every_step_down_is_explained():
    rows = [
        row(100_000, 0, minute=0, line=1),
        row(30_000, 10_000, minute=1, line=5),  # a summary stands between
        row(60_000, 30_000, minute=2, line=6),
        row(50_000, 49_000, minute=3, line=8),  # a rewind stands between
        row(80_000, 50_000, minute=4, line=9),
        row(60_000, 20_000, minute=5, line=10),  # nothing says why, and the cache knew little of it
        row(70_000, 60_000, minute=6, line=11),
        row(40_000, 0, minute=7, line=12, model="claude-haiku-4-5"),
        row(90_000, 40_000, minute=8, line=13, model="claude-haiku-4-5"),
        row(85_000, 84_000, minute=9, line=14, model="claude-haiku-4-5"),  # the end alone was dropped
        row(60_000, None, minute=10, line=15, model="claude-haiku-4-5"),  # no word of the cache
    ]
    marks = [
        Mark("compaction", None, "", 3),
        Mark("rewind", 150_000, "", 900),
        Mark("compaction", None, "x", 9),
    ]
    assert [(fall.at, fall.why) for fall in fitted(rows, marks).falls] == [
        (2, "compaction"),
        (4, "branch"),
        (6, "micro-compaction"),
        (8, "model switch"),
        (10, "shortened at the end"),
        (11, "unknown"),
    ]


def test_branches_are_never_compared_with_one_another():
    rows = [
        row(50_000, 0, minute=0, line=1),
        row(9_000, 0, minute=0.5, line=2, branch="agent"),
        row(51_000, 50_000, minute=1, line=3),
        row(10_000, 9_000, minute=1.5, line=4, branch="agent"),
        row(52_000, 51_000, minute=2, line=5),
    ]
    found = series_of(session(rows))
    assert [each.branch for each in found] == ["", "agent"]
    assert all(not growth_of(each).falls for each in found)
