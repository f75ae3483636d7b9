"""`shiftbook copy`: runs from one journal into another, each whole, checked by its chain."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from shiftbook.cli.options import Json, Verbose
from shiftbook.cli.output import data, note
from shiftbook.cli.words import count, sentence
from shiftbook.errors import BadInput, Damaged, Held, RunExists, ShiftbookError
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Store
from shiftbook.transfer import Copied, copy_run, runs_of


def command(
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="ADDRESS",
            show_default=False,
            help="Journal to copy from: a path or an address.",
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            "--to", metavar="ADDRESS", show_default=False, help="Journal to copy to; made if missing."
        ),
    ],
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN...", show_default=False, help="Runs by id or prefix; else all of them."),
    ] = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Copy runs into another journal, entries, blobs, inbox and lease epochs, byte for byte.

    Start it again if it was cut off: what is there and equal is passed over. A run that has gone its own way
    in the target is left as it is. Stop a run before it is copied, and go on in one of the journals only.
    """
    if source == target:
        raise BadInput("--from and --to name the same journal: name another to copy to.")
    asyncio.run(_copy(source, target, runs or [], json))


async def _copy(source: str, target: str, names: list[str], json: bool) -> None:
    left = await open_store(source, create=False)
    try:
        runs = [await left.catalogue.find(name) for name in names] or await runs_of(left)
        right = await open_store(target)
        try:
            done, refused = await _copied(left, right, runs)
        finally:
            await right.close()
    finally:
        await left.close()
    if json:
        data([{"run": each.run, "entries": each.entries, "written": each.written} for each in done])
    if refused and len(runs) == 1:
        raise refused[0]
    if refused:
        raise BadInput(
            f"{count(len(refused), 'run')} of {len(runs)} could not be copied, for the reasons above; the "
            "others were."
        )
    written = sum(each.written for each in done)
    note(f"{count(len(done), 'run')} copied, {count(written, 'entry', 'entries')} written.")


async def _copied(left: Store, right: Store, runs: list[str]) -> tuple[list[Copied], list[ShiftbookError]]:
    done: list[Copied] = []
    refused: list[ShiftbookError] = []
    for number, run in enumerate(runs, start=1):
        try:
            each = await copy_run(left, right, run)
        except (BadInput, Damaged, Held, RunExists) as error:
            refused.append(error)
            note(f"{number}/{len(runs)} {run}: {sentence(str(error))}")
            continue
        done.append(each)
        how = f"{count(each.written, 'entry', 'entries')} written" if each.written else "is there already"
        note(f"{number}/{len(runs)} {run}: {how}")
    return done, refused
