"""One database, one world, processes that die: kill one at a point, fork what is left, go on.

A `Ground` is what outlives a process. `fork` copies it, so that the same crash can be followed by different
futures. Processes are simulated: their loop, clock, store connection and handle are their own, and they are
gone at a `Crash`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import apsw

from shiftbook.entries import Entry
from shiftbook.errors import ShiftbookError
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Commit, Store
from shiftbook.run.summary import Summary
from shiftbook.testing.breaking import Changed
from shiftbook.testing.clock import SimulatedClock, Time
from shiftbook.testing.crash import Crash, Dies, Seams
from tests.crash import virtual
from tests.crash.scenarios import LEASE_MS, Scenario, shift
from tests.crash.tools import write
from tests.crash.world import WORLD, World

_names = itertools.count(1)
EXTRA = "extra"


@dataclass
class Process:
    """What became of one process."""

    summary: Summary | None
    seams: Seams
    error: Exception | None = None
    boundaries: list[int] = field(default_factory=list)
    """Numbers of the points at which a message that waits is noticed."""


class Ground:
    """A database in memory and the world around it."""

    def __init__(self, scenario: Scenario, world: World | None = None, time: Time | None = None) -> None:
        self.scenario = scenario
        self.world = world or World()
        self.time = time or Time()
        self.processes = 0
        self.name = self.new_place()
        self.world.peek = self.open()

    def new_place(self) -> str:
        """The address of a new, empty database."""
        return f":memory:{self.scenario.name}-{next(_names)}"

    def open(self) -> Store:
        """A new connection, as a new process has it."""
        return virtual.at_once(open_store(self.name, clock=self.new_clock()))

    def new_clock(self) -> SimulatedClock:
        """The clock of a new connection."""
        self.processes += 1
        return SimulatedClock(self.processes, time=self.time)

    def fork(self) -> Ground:
        """The same database and world, apart from here on."""
        copy = type(self).__new__(type(self))
        copy.scenario, copy.processes = self.scenario, self.processes
        copy.world, copy.time = self.world.copy(), Time(self.time.ms)
        copy.name = copy.copied_from(self)
        copy.world.peek = copy.open()
        copy.is_opened()
        return copy

    def copied_from(self, source: Ground) -> str:
        """The address of a new database that holds what the source's does."""
        place = self.new_place()
        # A database in memory lives as long as one of its connections.
        self._keeper = apsw.Connection(_target(place), flags=_FLAGS)
        other = apsw.Connection(_target(source.name), flags=_FLAGS)
        with self._keeper.backup("main", other, "main") as backup:
            backup.step()
        other.close()
        return place

    def is_opened(self) -> None:
        """Somebody looks at the copy now."""
        self._keeper.close()

    def clock(self) -> SimulatedClock:
        """A new process's clock over the same time."""
        return SimulatedClock(1_000 + self.processes, time=self.time)

    def process(self, *deaths: Dies, engine: Any = shift, extra: bool = False) -> Process:
        """Run one process until the run is finished or the process is dead; the lease of the one before is
        over."""
        self.time.reach(self.time.ms + LEASE_MS + 1)
        if extra:
            write(self.world, EXTRA, "Is it raining?")
        seams = Seams(*deaths)
        inner = self.open()
        process = Process(None, seams)
        try:
            store = self.wrapped(inner, process)
            self.live(process, engine(self.scenario, self.world, store, seams.clock(self.clock()), seams))
        finally:
            virtual.at_once(inner.close())
        return process

    def wrapped(self, inner: Store, process: Process) -> Store:
        """A process's store, every await counted. Without the thread that renews: here nothing takes long."""

        async def append(commit: Commit) -> None:
            if commit.if_no_mail:
                process.boundaries.append(len(process.seams.passed))
            await inner.entries.append(commit)

        async def waiting(run: str, limit: int = 500) -> Any:
            process.boundaries.append(len(process.seams.passed))
            return await inner.inbox.waiting(run, limit)

        noticing = Changed(
            inner,
            name=":memory:",
            entries=Changed(inner.entries, append=append),
            inbox=Changed(inner.inbox, waiting=waiting),
        )
        return process.seams.store(cast(Store, noticing))

    def live(self, process: Process, main: Any) -> None:
        """Let the process run to its end or its death."""
        world, seams = self.world, process.seams
        world.told = set()

        def idle() -> None:
            if seams.died is None:
                world.idle()

        token = WORLD.set(world)
        try:
            process.summary = self.loop(_quiet(main, seams), idle)
        except Crash:
            pass
        except ShiftbookError as error:
            process.error = error
        finally:
            WORLD.reset(token)

    def loop(self, main: Any, idle: Callable[[], None]) -> Any:
        """Run a process's main coroutine; `idle` is called whenever it would wait."""
        return virtual.run(main, idle)

    def journal(self) -> list[Entry]:
        """All entries, read by a connection that has seen nothing before."""
        store = self.open()
        try:
            fresh = World(peek=store)
            return fresh.journal()
        finally:
            virtual.at_once(store.close())

    def close(self) -> None:
        """Let the database go."""
        if self.world.peek is not None:
            virtual.at_once(self.world.peek.close())
            self.world.peek = None


async def _quiet(main: Any, seams: Seams) -> Any:
    """What a dead process's tasks would still have to say is nobody's business."""
    loop = asyncio.get_running_loop()

    def handler(_loop: Any, context: dict[str, Any]) -> None:
        if seams.died is None:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handler)
    return await main


_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI


def _target(name: str) -> str:
    return f"file:/shiftbook-{name.removeprefix(':memory:')}?vfs=memdb"
