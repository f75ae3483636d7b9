"""The crash sweep on PostgreSQL: every point of every scenario, `python -m tests.crash.on_postgres`.

The same deaths, worlds and invariants as in memory; what comes of them is held against the uncrashed runs
in memory, so that a run on a server is also the same run. Takes many minutes: each crash has two futures,
and each future is a database of its own. The parts are spread over all cores.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor

from shiftbook.journal.promises import Store
from shiftbook.testing.clock import SimulatedClock
from tests import postgres
from tests.blocking import open_blocking
from tests.crash.points import commits, crash, resumed, taken_over, told, unconfirmed, uncrashed
from tests.crash.scenarios import SCENARIOS
from tests.crash.sweep import Ground
from tests.crash.virtual import at_once
from tests.crash.world import Violation

PARTS = 16
"""In how many parts a scenario is swept, so that all cores have something to do until the end."""

_TEMPLATES: list[str] = []


def _template() -> str:
    """A database with the book in it and no run, from which others are copied."""
    if not _TEMPLATES:
        address = postgres.shared().create()
        at_once(open_blocking(address, SimulatedClock()).close())
        _TEMPLATES.append(address)
    return _TEMPLATES[0]


class PostgresGround(Ground):
    """A database on the tests' server and the world around it."""

    def new_place(self) -> str:
        return postgres.shared().create(_name(_template()))

    def open(self) -> Store:
        return open_blocking(self.name, self.new_clock())

    def copied_from(self, source: Ground) -> str:
        # A database that somebody looks at cannot be copied.
        if source.world.peek is not None:
            at_once(source.world.peek.close())
        # Nor one that a session of the dead is still in, which the server has not yet noticed.
        server, name = postgres.shared(), _name(source.name)
        server.sql(
            server.address,
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'",
        )
        place = server.create(name)
        source.world.peek = source.open()
        return place

    def is_opened(self) -> None:
        """On a server nothing has to be kept open."""

    def close(self) -> None:
        super().close()
        postgres.shared().drop(self.name)


def _name(address: str) -> str:
    return address.rpartition("/")[2]


def sweep(name: str, every: int = 1, first: int = 0) -> list[str]:
    """What is broken in a scenario, trying each `every`-th point from the `first` and its commits' ends."""
    scenario = SCENARIOS[name]
    found: dict[str, list[Violation]] = {}
    for point in uncrashed(name).points[first::every]:
        left = crash(scenario, point.number, kind=PostgresGround)
        for message in (False, True):
            at = f"{point.number}{'+message' if message else ''}"
            found[at] = resumed(left, message=message)[1]
        left.ground.close()
    # The first commit is not taken over before: until it is made there is no run that another could take.
    for number in commits(name, "before")[1:][first::every]:
        found[f"{number}+takeover"] = taken_over(scenario, number, kind=PostgresGround)
    for number in commits(name, "after")[first::every]:
        found[f"{number}+unconfirmed"] = unconfirmed(scenario, number, kind=PostgresGround)
    return [told(name, at, violations) for at, violations in found.items() if violations]


def main() -> int:
    """Sweep all scenarios, in as many processes as there are cores; 0 when nothing is broken."""
    faults = 0
    cores = os.cpu_count() or 1
    with postgres.session(), ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
        # Many small parts: a point late in a long run takes much longer than an early one.
        parts = {name: [pool.submit(sweep, name, PARTS, part) for part in range(PARTS)] for name in SCENARIOS}
        for name, sweeping in parts.items():
            broken = [each for part in sweeping for each in part.result()]
            faults += len(broken)
            print(f"{name}: {len(uncrashed(name).points)} points, {len(broken)} broken", flush=True)
            print(*broken, sep="\n", end="\n" if broken else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
