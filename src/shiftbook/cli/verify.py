"""`shiftbook verify`: check a run's record from its first entry to its last, prompts included."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from shiftbook.cli.options import Db, Json, Last, RunId, Verbose
from shiftbook.cli.output import data, line
from shiftbook.cli.places import journal, run_meant
from shiftbook.cli.words import count
from shiftbook.errors import BadInput
from shiftbook.journal.promises import Store
from shiftbook.verify import Verdict, verify

FAULTS_FOUND = 1


def command(
    run: RunId = None,
    every: Annotated[bool, typer.Option("--all", help="Check every run of the journal.")] = False,
    last: Last = False,
    db: Db = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Check a run's record: chain, calls and answers, keys, blobs, inbox, and every prompt made again.

    Neither the agent nor its model is needed. Exit code 1 when faults are found. A record whose end was cut
    off whole cannot be told from a shorter one without a seal.
    """
    if every and (run is not None or last):
        raise BadInput("--all checks every run: name no run beside it.")
    raise typer.Exit(asyncio.run(_verify(run, every, last, db, json)))


async def _verify(run: str | None, every: bool, last: bool, db: str | None, json: bool) -> int:
    async with journal(db, read_only=True) as store:
        names = await _all_runs(store) if every else [await run_meant(store, run, last)]
        verdicts = []
        for name in names:
            verdicts.append(await verify(store, name))
            if not json:
                _tell(verdicts[-1])
    if json:
        plain = [asdict(verdict) for verdict in verdicts]
        data(plain if every else plain[0])
    return 0 if all(verdict.ok for verdict in verdicts) else FAULTS_FOUND


async def _all_runs(store: Store) -> list[str]:
    names: list[str] = []
    while page := await store.catalogue.runs(after=names[-1] if names else None):
        names.extend(row.run for row in page)
    return names


def _tell(verdict: Verdict) -> None:
    checked = f"{count(verdict.entries, 'entry', 'entries')}, {count(verdict.prompts, 'prompt')}"
    erased = f", {verdict.erased:,} erased" if verdict.erased else ""
    faults = "ok" if verdict.ok else count(len(verdict.faults), "fault")
    line(f"run {verdict.run}: {faults} ({checked}{erased})")
    for fault in verdict.faults:
        line(f"  entry {fault.position}: {fault.what}" if fault.position else f"  {fault.what}")
