"""`shiftbook export`: a run as canonical text that can be checked and imported elsewhere."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from shiftbook.cli.options import Db, Last, RunId, Verbose
from shiftbook.cli.output import note
from shiftbook.cli.places import journal, run_meant
from shiftbook.errors import BadInput
from shiftbook.transfer import export_run


def command(
    run: RunId = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", show_default=False, help="Where to write it; else stdout."
        ),
    ] = None,
    last: Last = False,
    db: Db = None,
    verbose: Verbose = False,
) -> None:
    """Write a run as JSON lines: entries with their chain, blobs, the inbox; `shiftbook import` reads them.

    A file that is there is replaced only when the whole export is written.
    """
    if output is not None and output.is_dir():
        raise BadInput(f"{output} is a folder: name a file in it by --output.")
    asyncio.run(_export(run, last, output, db))


async def _export(run: str | None, last: bool, output: Path | None, db: str | None) -> None:
    async with journal(db, read_only=True) as store:
        name = await run_meant(store, run, last)
        lines = export_run(store, name)
        if output is None:
            async for text in lines:
                sys.stdout.buffer.write(text.encode("utf-8"))
            sys.stdout.buffer.flush()
            return
        part = output.with_name(output.name + ".part")
        with _opened(part) as file:
            try:
                async for text in lines:
                    file.write(text.encode("utf-8"))
            except BaseException:
                part.unlink()
                raise
        part.replace(output)
    note(f"Run {name} was exported to {output}.")


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as fault:
        raise BadInput(
            f"{path} cannot be written ({fault.strerror}): name another file by --output."
        ) from None
