"""`shiftbook show`: the entries of a run, one a line; one entry whole."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from shiftbook import canonical
from shiftbook.cli.options import Db, Json, Last, RunId, Verbose
from shiftbook.cli.output import data, line, note
from shiftbook.cli.places import journal, run_meant
from shiftbook.entries import Entry
from shiftbook.errors import BadInput
from shiftbook.journal.promises import Store
from shiftbook.messages import Json as JsonValue
from shiftbook.views import entries_of, hold_of, hold_told, show_row, standing_of, summary_line
from shiftbook.workers.board import queued


def command(
    run: RunId = None,
    entry: Annotated[
        int | None,
        typer.Option(
            "--entry",
            metavar="N",
            show_default=False,
            help="Show entry N whole: what a handle in a prompt points to.",
        ),
    ] = None,
    after: Annotated[int, typer.Option("--after", metavar="N", help="Begin after entry N.")] = 0,
    last: Last = False,
    db: Db = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what happened in a run, entry by entry. With --json one entry a line, whole."""
    asyncio.run(_show(run, last, entry, after, db, json))


async def _show(
    run: str | None, last: bool, entry: int | None, after: int, db: str | None, json: bool
) -> None:
    async with journal(db, read_only=True) as store:
        name = await run_meant(store, run, last)
        if entry is not None:
            found = await _one(store, name, entry)
            if json:
                data(show_row(found))
            else:
                _tell_whole(found)
            return
        async for each in entries_of(store, name, max(0, after)):
            if json:
                data(show_row(each))
            else:
                line(summary_line(each))
        if not json:
            await _tell_hold(store, name)


async def _tell_hold(store: Store, name: str) -> None:
    if (await standing_of(store, name)).state != "running":
        return
    hold, holder = await hold_of(store, name)
    if hold != "held" and await queued(store, [name]):
        hold = "queued"
    note(f"Run {name} is running, and {hold_told(hold, holder)} has it.")


async def _one(store: Store, run: str, position: int) -> Entry:
    if position >= 1:
        async for found in entries_of(store, run, position - 1, position):
            return found
    head = await store.entries.head(run)
    raise BadInput(f"Run {run} has no entry {position}: its entries are 1 to {head.position}.")


def _tell_whole(entry: Entry) -> None:
    """Every field on its own lines, text as it is, with nothing left out."""
    for name, value in show_row(entry).items():
        _tell_value(name, value, "")


def _tell_value(name: str, value: JsonValue, indent: str) -> None:
    if isinstance(value, str) and "\n" in value:
        line(f"{indent}{name}:")
        for text in value.splitlines():
            line(f"{indent}  {text}")
    elif isinstance(value, dict) and value:
        line(f"{indent}{name}:")
        for inner, each in value.items():
            _tell_value(str(inner), each, indent + "  ")
    elif isinstance(value, list) and value:
        line(f"{indent}{name}:")
        for number, each in enumerate(value, 1):
            _tell_value(str(number), each, indent + "  ")
    else:
        line(f"{indent}{name}: {value if isinstance(value, str) else canonical.encode(value)}")
