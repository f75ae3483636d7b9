"""Misses, breaks and pauses, told apart as the module says."""

from __future__ import annotations

from shiftbook.measure.series import series_of
from shiftbook.measure.warmth import is_missed, warmth_of
from tests.measure.made import growing, row, session


def warmth(rows, life=None):
    return warmth_of(series_of(session(rows)), life)


def test_a_warm_session_has_no_miss_and_no_break():
    found = warmth(growing([50_000, 51_000, 52_000]))
    assert (found.pairs, found.missed, found.cold, found.breaks) == (2, 0, 0, ())
    assert found.rewrite == (50_000 + 1_000 + 1_000) / 52_000


def test_an_expired_life_is_a_miss_and_no_break():
    found = warmth([row(50_000, 0), row(51_000, 0, minute=6, line=2)])
    assert (found.missed, found.cold, found.cold_share, found.breaks) == (1, 1, 1.0, ())
    assert [
        (bar.over_ms, bar.requests, bar.missed, bar.rewritten) for bar in found.pauses if bar.requests
    ] == [(300_000, 1, 1, 51_000)]


def test_the_same_loss_within_the_life_is_a_break():
    found = warmth([row(50_000, 0), row(51_000, 0, minute=1, line=2)])
    assert [(each.at, each.tokens, each.pause_ms) for each in found.breaks] == [(2, 50_000, 60_000)]
    hour = warmth([row(50_000, 0, hour=True), row(51_000, 0, minute=6, line=2, hour=True)])
    assert (hour.life, hour.life_recorded, len(hour.breaks)) == ("1h", True, 1)


def test_a_miss_takes_a_fifth_and_more_than_two_thousand_tokens():
    assert not is_missed(1_500, 0)
    assert not is_missed(2_000, 0)
    assert is_missed(2_001, 0)
    assert not is_missed(100_000, 80_000)
    assert is_missed(100_000, 79_999)


def test_a_small_loss_is_no_break():
    few = warmth([row(30_000, 0), row(31_000, 15_000, minute=1, line=2)])
    assert (few.missed, few.breaks) == (1, ())  # 15,000 tokens are no 20,000
    little = warmth([row(200_000, 0), row(201_000, 170_000, minute=1, line=2)])
    assert little.breaks == ()  # 30,000 of 200,000 are no fifth


def test_a_step_down_and_another_model_are_misses_and_no_breaks():
    down = warmth([row(100_000, 0), row(40_000, 10_000, minute=1, line=2)])
    assert (down.missed, down.cold, down.breaks) == (1, 0, ())
    other = warmth([row(100_000, 0), row(101_000, 0, minute=1, line=2, model="claude-haiku-4-5")])
    assert (other.missed, other.breaks) == (1, ())


def test_what_is_not_recorded_is_not_counted():
    found = warmth([row(50_000, None), row(51_000, None, minute=9, line=2)])
    assert (found.pairs, found.cold_share, found.life_recorded) == (0, None, False)
    alone = warmth_of((), None)
    assert (alone.pairs, alone.cold_share, alone.rewrite) == (0, None, None)
