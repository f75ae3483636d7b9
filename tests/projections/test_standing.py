"""A run's standing: folded in pieces or from the rows that say it, the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook.codec import Row, draft, genesis, seal
from shiftbook.entries import RunEnded, RunOpened, RunRested, State, Warned, What
from shiftbook.errors import Damaged
from shiftbook.projections.standing import STANDING_KINDS, Standing, after, is_unmoved

STATES: tuple[State, ...] = ("waiting", "paused", "limited", "finished", "failed", "cancelled")
WHATS = st.one_of(
    st.just(Warned("noted", "x")),
    st.sampled_from(STATES).map(RunRested),
    st.sampled_from(STATES).map(RunEnded),
)


def rows_of(*whats: What) -> list[Row]:
    sealed = seal(
        [draft(what) for what in whats],
        after=0,
        head=genesis("r"),
        at_ms=range(100, 100 + len(whats)),
        epoch=1,
        token=bytes,
    )
    return [*sealed.rows]


def fold(rows: list[Row]) -> Standing | None:
    standing = None
    for row in rows:
        standing = after(standing, row)
    return standing


def test_a_run_rests_goes_on_and_ends() -> None:
    opened, rested, noted, ended = (
        RunOpened("r", "a.py:x", "0", ("blue",)),
        RunRested("waiting"),
        Warned("noted", "x"),
        RunEnded("failed"),
    )
    running = Standing("a.py:x", "running", ("blue",), 100)
    assert fold(rows_of(opened)) == fold(rows_of(opened, rested, noted)) == running
    assert fold(rows_of(opened, noted, rested)) == Standing("a.py:x", "waiting", ("blue",), 100)
    over = Standing("a.py:x", "failed", ("blue",), 100, ended=True)
    assert fold(rows_of(opened, ended)) == fold(rows_of(opened, rested, ended, noted, rested)) == over


def test_a_row_that_says_it_unreadably_is_damaged() -> None:
    (row,) = rows_of(RunRested("paused"))
    broken = Row(1, row.kind, row.version, row.at_ms, row.epoch, row.salt, '{"state":"asleep"}')
    with pytest.raises(Damaged):
        after(None, broken)


@given(st.lists(WHATS, max_size=8))
def test_only_the_rows_that_say_it_and_the_last_are_needed(whats: list[What]) -> None:
    rows = rows_of(RunOpened("r", "a.py:x", "0"), *whats)
    needed = [row for row in rows if row.kind in STANDING_KINDS or row is rows[-1]]
    assert fold(needed) == fold(rows)


@given(st.lists(WHATS, max_size=5), st.lists(WHATS, min_size=1, max_size=3))
def test_what_is_called_unmoved_does_not_move(before: list[What], then: list[What]) -> None:
    rows = rows_of(RunOpened("r", "a.py:x", "0"), *before, *then)
    standing = fold(rows[: len(before) + 1])
    assert standing is not None
    added = rows[len(before) + 1 :]
    if is_unmoved(standing, {row.kind for row in added}):
        assert fold(rows) == standing
    else:
        assert standing.state != "running" or any(row.kind in STANDING_KINDS for row in added)
