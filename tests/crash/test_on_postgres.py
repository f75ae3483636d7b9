"""A bounded part of the crash sweep on PostgreSQL; `make crash-postgres` tries every point."""

from __future__ import annotations

import pytest

from tests import postgres
from tests.crash.invariants import broken
from tests.crash.on_postgres import PostgresGround, sweep
from tests.crash.points import uncrashed
from tests.crash.scenarios import CANCELLED, LONG, SCENARIOS, SHORT, TINY

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(postgres.why_not() is not None, reason=str(postgres.why_not())),
]


@pytest.mark.parametrize("name", [SHORT.name, TINY.name, CANCELLED.name])
def test_a_run_on_a_server_takes_the_same_steps_as_in_memory(name: str) -> None:
    ground = PostgresGround(SCENARIOS[name])
    try:
        process = ground.process()
        wanted = uncrashed(name)
        assert broken(ground, summary=process.summary, error=process.error, same_as=wanted.ground) == []
        assert process.seams.passed == wanted.points
        assert [entry.what for entry in ground.journal()] == [entry.what for entry in wanted.ground.journal()]
    finally:
        ground.close()


@pytest.mark.parametrize(("name", "every"), [(TINY.name, 6), (SHORT.name, 23), (LONG.name, 83)])
def test_c3_c4_die_resume_and_be_taken_over_on_a_server(name: str, every: int) -> None:
    assert sweep(name, every) == []
