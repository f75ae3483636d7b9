"""Real processes and SIGKILL: a child works on a SQLite file, says where it is on a pipe, is killed there.

Children are forked from a clean server process that has the imports behind it, so that one is cheap. What the
tools did to the world stands in a file of its own, one line an effect.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from shiftbook.clock import SystemClock
from shiftbook.entries import Entry
from shiftbook.journal.index import fill
from shiftbook.journal.open import open_store
from shiftbook.journal.sqlite_index import SqliteIndex
from shiftbook.journal.sqlite_index import open_index as open_sqlite_index
from shiftbook.providers.scripted import call, calls, fails, say
from shiftbook.run.limits import Limits
from shiftbook.testing.crash import Meanwhile, Moment, Seams
from tests.crash.invariants import broken
from tests.crash.receiver import CHARGES, RECEIVER
from tests.crash.scenarios import RECALLING, REPORTED, Scenario, shift
from tests.crash.sweep import Ground
from tests.crash.virtual import at_once
from tests.crash.world import RUN, WORLD, Violation, World

PATIENCE_S = 60
"""How long a child may take to come to its point before the test fails."""

BRISK = Scenario(
    "brisk",
    {
        1: calls(
            call("look", {"place": "A"}),
            call("mail", {"to": "Ann"}),
            call("pay", {"amount": 5}),
            text="I begin with three things.",
        ),
        2: fails(then=calls(call("send", {"to": "Bob"}), call("pay", {"amount": 5}), call("flaky"))),
        3: say("One more moment, I am only thinking aloud here.", stop="pause"),
    },
    limits=Limits(parallel=2, snapshot_every=5, retry_ms_min=1, retry_ms_max=2),
)

QUICK = replace(
    REPORTED,
    name="quick",
    script={**REPORTED.script, 7: calls(call("mail", {"to": "Ann"}), call("pay", {"amount": 6}))},
    limits=Limits(parallel=2, snapshot_every=5, retry_ms_min=1, retry_ms_max=2),
)
NOTED = replace(QUICK, name="noted", policy="notes")
MASKED = replace(QUICK, name="masked", policy="masking", report="mechanical", cap=4_000, mark=2_000)
FOUND = replace(
    RECALLING,
    name="found",
    script={**RECALLING.script, 4: calls(call("big", {"number": 4, "lines": 20}))},
    limits=QUICK.limits,
)

KILLED = {scenario.name: scenario for scenario in (BRISK, CHARGES, QUICK, NOTED, MASKED, FOUND)}
WARM = [tool.schema for scenario in KILLED.values() for tool in scenario.tools]
"""Schemas are made when they are first asked for: here once, and not in every child."""

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.crash.killing"])


@dataclass(frozen=True)
class Kill:
    """Where a child is killed: at the `at`-th point that fits."""

    seam: str
    moment: Moment
    at: int = 1

    def __str__(self) -> str:
        return f"{self.moment} {self.seam} {self.at}"


@dataclass(frozen=True)
class Place:
    """A database file and a world file; `commits` is the way to commit."""

    folder: Path
    commits: Literal["in-loop", "writer"]
    scenario: str = "brisk"
    receiver: str = ""
    """Address of the HTTP service that the tools of the scenario reach, if they do."""

    @property
    def database(self) -> str:
        """The SQLite file."""
        return str(self.folder / "book.db")

    @property
    def log(self) -> Path:
        """The world's file."""
        return self.folder / "world.jsonl"


def count_filling(seams: Seams) -> None:
    """Count a process's filling of its search index: each batch, and each unit amid its transaction."""
    add, write = SqliteIndex.add, SqliteIndex._write

    async def counted(*args: Any) -> bool:
        return bool(await seams.call("index.add", add, *args))

    def written(*args: Any) -> None:
        seams.reach("index.write", "before")
        write(*args)

    # The process is the child's own, and ends with it.
    SqliteIndex.add, SqliteIndex._write = counted, written  # type: ignore[assignment]


def child(place: Place, kill: Kill | None, pipe: Connection) -> None:
    """What a child does: go on with the run; at its point, say so and wait to be killed."""

    def cue() -> None:
        pipe.send("here")
        pipe.recv()

    meanwhile = () if kill is None else (Meanwhile(kill.at, kill.moment, kill.seam, do=cue),)
    seams = Seams(*meanwhile)
    count_filling(seams)
    scenario = KILLED[place.scenario]

    async def main() -> Any:
        store = await open_store(place.database, commits=place.commits)
        world = World.load(place.log)
        WORLD.set(world)
        RECEIVER.set(place.receiver)
        try:
            return await shift(scenario, world, seams.store(store), seams.clock(SystemClock()), seams)
        finally:
            await store.close()

    summary = asyncio.run(main())
    pipe.send(summary.state)


def run_child(place: Place, kill: Kill | None) -> str:
    """Start a child; kill it at its point, or let it come to its end. What it said last."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=child, args=(place, kill, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(PATIENCE_S):
            raise AssertionError(f"the child did not come to {kill}")
        said = str(ours.recv())
        if said == "here":
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
        return said
    finally:
        process.join(PATIENCE_S)
        if process.is_alive():
            process.kill()
            process.join()
        process.close()
        ours.close()


class FileGround(Ground):
    """What is left in the files, opened by a process that took no part."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.scenario = KILLED[place.scenario]
        self.world = World.load(place.log)
        self.world.log = None
        self.world.peek = self.open()

    def open(self) -> Any:
        return at_once(open_store(self.place.database))


def entries_in(place: Place) -> list[Entry]:
    """The journal as it is in the file."""
    ground = FileGround(place)
    try:
        return ground.journal()
    finally:
        ground.close()


def violations(place: Place, before: list[Entry]) -> list[Violation]:
    """What is broken in the files after the last child came to its end."""
    calm = Ground(KILLED[place.scenario])
    process = calm.process()
    assert process.summary is not None
    # The requests of killed children went with them; what they were made of is in the journal.
    calm.world = replace(calm.world, requests={})
    ground = FileGround(place)
    try:
        return broken(ground, summary=None, before=before, same_as=calm)
    finally:
        ground.close()
        calm.close()


def found_in(place: Place, terms: list[str], *, anew: bool) -> Any:
    """What the search index finds once it is filled to the end: the one that is left, or a new one."""

    async def look() -> Any:
        store = await open_store(place.database)
        index = open_sqlite_index(":memory:" if anew else place.database)
        try:
            while await fill(index, store, RUN):
                pass
            return await index.covered(RUN), await index.candidates(RUN, terms, reach=4)
        finally:
            await index.close()
            await store.close()

    return at_once(look())
