"""The sweep itself is tested: it must fail on each of eight broken engines, by the invariant meant."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tests.crash.broken import BROKEN, Broken
from tests.crash.points import PointMissing, at_point, commits, reference, uncrashed
from tests.crash.scenarios import SHORT, TINY


def points_of(way: str) -> list[str]:
    if way == "+takeover":
        return [f"{at}{way}" for at in commits(SHORT.name, "before")[1:]]
    return [f"{point.number}{way}" for point in uncrashed(SHORT.name).points]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_the_sweep_fails_on_a_broken_engine(broken: Broken) -> None:
    # Points and references are of the good engine: the broken one is held against them.
    points = points_of(broken.way)
    for point in uncrashed(SHORT.name).points:
        reference(SHORT.name, point.number, message=broken.way == "+message")
    causes = set()
    with broken.replace():
        for at in points:
            with suppress(PointMissing):  # a broken engine may have fewer points
                causes |= {violation.invariant for violation in at_point(SHORT.name, at)[:1]}
            if broken.found_by in causes:
                break
    assert broken.found_by in causes


def test_the_sweep_passes_on_the_engine_as_it_is() -> None:
    assert [at_point(TINY.name, at) for at in ("20", "20+message", "20,9")] == [[], [], []]
    assert at_point(SHORT.name, points_of("+takeover")[5]) == []
