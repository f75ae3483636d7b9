"""Runs the demo: starts receiver and run, kills the run in the middle of charges, resumes it, checks it.

The run is an ordinary `shiftbook run` in a child process, taken up by an ordinary `shiftbook resume` in a new
one after each SIGKILL. Nothing is timed: the receiver says when it holds a charge, and then the kill comes.
All figures are read from the journal and from the receiver's ledger when everything is over.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shiftbook.clock import Clock, SystemClock
from shiftbook.demo import desk
from shiftbook.demo.receiver import AFTER, BEFORE
from shiftbook.ending import end
from shiftbook.errors import ShiftbookError
from shiftbook.journal.open import open_store
from shiftbook.verify import verify
from shiftbook.views import run_figures

HOLDS: Mapping[int, str] = {5: BEFORE, 14: AFTER, 24: BEFORE, 35: AFTER}
"""At which request to the receiver the run is killed, and whether before or after the charge took effect."""

AGENT = "shiftbook.demo.desk:agent"
DB_NAME = "demo.db"


class DemoFailed(ShiftbookError):
    """A process of the demo did not do what it was started for; the message holds its last words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of the demo; `holds` says whether everything is as promised."""

    run: str
    db: Path
    turns: int
    actions: int
    kills: int
    cut_off: int
    repeated: int
    charges: int
    double_effects: int
    prompt_median: int
    prompt_max: int
    cap: int
    verified: bool
    state: str

    @property
    def holds(self) -> bool:
        """Finished, nothing repeated, each order charged once, under the cap, and the record checks."""
        return (
            self.state == "finished"
            and self.turns == desk.TURNS
            and self.kills == self.cut_off == len(HOLDS)
            and self.repeated == self.double_effects == 0
            and self.charges == desk.ORDERS
            and self.prompt_max <= self.cap
            and self.verified
        )


async def show(folder: Path, *, clock: Clock | None = None) -> Outcome:
    """Run the demo with its journal in `folder`. Raises `DemoFailed` when a process of it goes astray."""
    db = folder / DB_NAME
    run = (clock or SystemClock()).new_run_id()
    async with _receiver() as receiver:
        port = (await _hear(receiver))["port"]
        place = {**os.environ, desk.RECEIVER_VARIABLE: f"http://127.0.0.1:{port}"}
        kills = 0
        words = ["run", AGENT, desk.MESSAGE, "--run-id", run]
        while await _killed_at_cue(receiver, [*words, "--db", str(db), "--json"], place):
            kills += 1
            words = ["resume", run]
        _say(receiver, "count")
        ledger = await _hear(receiver)
    return await _outcome(db, run, kills, ledger["effects"])


async def _killed_at_cue(receiver: Process, words: list[str], place: Mapping[str, str]) -> bool:
    """Start `shiftbook` with these words; True when it was killed at a cue, False when it came to its end."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "shiftbook", *words, env=place, stdout=PIPE, stderr=PIPE
    )
    ended = asyncio.create_task(child.communicate())
    cue = asyncio.create_task(_hear(receiver))
    await asyncio.wait({ended, cue}, return_when=asyncio.FIRST_COMPLETED)
    if not cue.done():
        await end(cue)
        _, errors = await ended
        if child.returncode != 0:
            last = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise DemoFailed(f"`shiftbook {words[0]}` ended with code {child.returncode}: {' '.join(last)}")
        return False
    child.send_signal(signal.SIGKILL)
    await ended
    if "holding" not in cue.result():
        raise DemoFailed(f"The receiver said {cue.result()} where a charge should be held.")
    _say(receiver, "go")
    await _hear(receiver)
    return True


@asynccontextmanager
async def _receiver() -> AsyncIterator[Process]:
    holds = [f"{at}:{moment}" for at, moment in HOLDS.items()]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "shiftbook.demo.receiver", *holds, stdin=PIPE, stdout=PIPE
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def _hear(process: Process) -> dict[str, Any]:
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line:
        raise DemoFailed("The receiver ended before the demo did.")
    heard: dict[str, Any] = json.loads(line)
    return heard


def _say(process: Process, word: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{word}\n".encode())


async def _outcome(db: Path, run: str, kills: int, effects: Mapping[str, int]) -> Outcome:
    store = await open_store(str(db), create=False, read_only=True)
    try:
        figures = await run_figures(store, run)
        verdict = await verify(store, run)
    finally:
        await store.close()
    tokens = figures["prompt_tokens"]
    return Outcome(
        run=run,
        db=db,
        turns=figures["turns"],
        actions=figures["actions"],
        kills=kills,
        cut_off=figures["cut_off"],
        repeated=figures["repeated"],
        charges=len(effects),
        double_effects=sum(count - 1 for count in effects.values()),
        prompt_median=tokens["median"] or 0,
        prompt_max=tokens["max"] or 0,
        cap=desk.agent.cap,
        verified=verdict.ok,
        state=figures["state"],
    )
