"""The state machine beside this on PostgreSQL: fewer steps, the same promises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests import postgres
from tests.crash.on_postgres import PostgresGround
from tests.state_machine.test_machine import RunMachine


class OnPostgres(RunMachine):
    """A run on a server under everything that can happen to it."""

    kind = PostgresGround


@pytest.mark.slow
@pytest.mark.skipif(postgres.why_not() is not None, reason=str(postgres.why_not()))
def test_a_run_on_a_server_under_everything_that_can_happen_to_it() -> None:
    machine: Any = OnPostgres
    run_state_machine_as_test(
        machine, settings=settings(max_examples=5, stateful_step_count=15, deadline=None)
    )
