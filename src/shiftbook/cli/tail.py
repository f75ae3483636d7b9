"""`shiftbook tail`: follow a run while it runs, whatever process runs it."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from shiftbook.cli.options import Db, Json, Last, RunId, Verbose
from shiftbook.cli.output import data, line
from shiftbook.cli.places import journal, run_meant
from shiftbook.entries import RunEnded, RunRested
from shiftbook.journal.promises import Store
from shiftbook.views import follow_entries, show_row, summary_line

BEFORE_DEFAULT = 10


def command(
    run: RunId = None,
    before: Annotated[
        int, typer.Option("--before", metavar="N", help="Begin with the N newest entries.")
    ] = BEFORE_DEFAULT,
    until_rest: Annotated[bool, typer.Option("--until-rest", help="End when the run rests.")] = False,
    last: Last = False,
    db: Db = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show a run's newest entries and each new one as it is written, until Ctrl-C or, if asked, its rest."""
    try:
        asyncio.run(_tail(run, last, before, until_rest, db, json))
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


async def _tail(
    run: str | None, last: bool, before: int, until_rest: bool, db: str | None, json: bool
) -> None:
    async with journal(db, read_only=True) as store:
        name = await run_meant(store, run, last)
        head = (await store.entries.head(name)).position
        start = max(0, head - max(0, before))
        if until_rest:
            start = min(start, max(0, head - 1))
        async for entry in follow_entries(store, name, start):
            if entry.position > head - before:
                data(show_row(entry)) if json else line(summary_line(entry))
            rests = isinstance(entry.what, RunRested | RunEnded)
            if until_rest and rests and await _is_last(store, name, entry.position):
                return


async def _is_last(store: Store, run: str, position: int) -> bool:
    return (await store.entries.head(run)).position == position
