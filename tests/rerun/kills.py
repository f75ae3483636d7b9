"""A process that has reruns killed: python -m tests.rerun.kills RECORDING FOLDER CAP SEED TIMES

First one rerun goes through alone, and its passes of the store are counted. Then, at the first passes one by
one and TIMES times more, a fork of this process is killed by SIGKILL at a pass drawn by SEED, a second fork
takes the rerun up and is killed at another one, a third finishes it. Each fork is a process of its own, with
its own connection. What each finished journal holds is printed, as one JSON line, beside that of the rerun
which nobody killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from shiftbook.journal.open import open_store
from shiftbook.rerun import Settings, begin, take_up
from shiftbook.run.book import read_entries
from shiftbook.run.restore import restore
from shiftbook.sessions import open_session
from shiftbook.testing.crash import Meanwhile, Seams
from shiftbook.verify import verify
from tests.crash.normal import normal

RUN = "rerun0"
EARLY = 6
"""Passes at the very beginning that are all tried: the lease, the first commit, the first words."""
OF_THE_PROCESS = {"position", "at_ms", "opened_ms", "answered_at", "started", "cut_off"}
"""Fields of the view that count attempts, positions and time."""


def in_fork(work: Callable[[], Any], told: Path) -> int:
    """Do the work in a fork, its result in the file `told`; the status that the fork ended with."""
    pid = os.fork()
    if pid == 0:
        try:
            told.write_text(json.dumps(work()), encoding="utf-8")
        finally:
            os._exit(0)
    return os.waitpid(pid, 0)[1]


def die() -> None:
    """The end of this process."""
    os.kill(os.getpid(), signal.SIGKILL)


async def shift(recording: Path, db: Path, cap: int, at: int | None) -> int:
    """Begin the rerun, or take it up if there is one; dies at pass `at` of the store. The passes in all."""
    seams = Seams(*([] if at is None else [Meanwhile(at, do=die)]))
    inner = await open_store(str(db))
    store = seams.store(inner)
    session = open_session(recording)
    there = await inner.catalogue.runs()
    if there:
        handle = await take_up(store, RUN, session=session)
    else:
        handle = await begin(store, session, Settings(cap=cap), run=RUN)
    async with handle:
        await handle.finish()
    await inner.close()
    return len(seams.passed)


def run_shift(recording: Path, db: Path, cap: int, at: int | None) -> int:
    """`shift` in an event loop of its own."""
    return asyncio.run(shift(recording, db, cap, at))


async def journal(db: Path) -> dict[str, Any]:
    """What the journal holds, without what a kill may change, and what verify says of it."""
    store = await open_store(str(db), create=False, read_only=True)
    entries = await read_entries(store, RUN)
    view = asdict((await restore(store, RUN)).view)
    verdict = await verify(store, RUN)
    await store.close()
    return {
        "entries": repr(normal(entries, {}, frozenset())),
        "view": {name: value for name, value in view.items() if name not in OF_THE_PROCESS},
        "faults": [fault.what for fault in verdict.faults],
        "cut_off": view["cut_off"],
    }


def main(recording: Path, folder: Path, cap: int, seed: int, times: int) -> None:
    """See the module."""
    told = folder / "told.json"

    def read(db: Path) -> Any:
        assert in_fork(lambda: asyncio.run(journal(db)), told) == 0
        return json.loads(told.read_text(encoding="utf-8"))

    whole = folder / "whole.db"
    assert in_fork(partial(run_shift, recording, whole, cap, None), told) == 0
    passes = json.loads(told.read_text(encoding="utf-8"))
    draws = random.Random(seed)
    killed = []
    early = [(at, at) for at in range(1, EARLY + 1)]
    drawn = [(draws.randrange(1, passes), draws.randrange(1, passes)) for _ in range(times)]
    for number, (first, second) in enumerate([*early, *drawn]):
        db = folder / f"killed-{number}.db"
        statuses = [in_fork(partial(run_shift, recording, db, cap, at), told) for at in (first, second, None)]
        killed.append({"at": [first, second], "statuses": statuses, **read(db)})
    sys.stdout.write(json.dumps({"passes": passes, "whole": read(whole), "killed": killed}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:6]))
