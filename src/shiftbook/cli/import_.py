"""`shiftbook import`: take a run in that another journal exported, whole or not at all."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TextIO

import typer

from shiftbook.cli.options import Db, Json, Verbose
from shiftbook.cli.output import data, note
from shiftbook.cli.places import journal
from shiftbook.cli.words import count
from shiftbook.errors import BadInput
from shiftbook.transfer import import_run

STDIN = Path("-")


def command(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", show_default=False, help="What `shiftbook export` wrote; - is stdin."),
    ],
    db: Db = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Import an exported run under its own id. What another tool recorded is no journal: see `rerun`."""
    asyncio.run(_import(file, db, json))


async def _import(file: Path, db: str | None, json: bool) -> None:
    with _opened(file) as lines:
        async with journal(db, create=True) as store:
            try:
                imported = await import_run(store, lines)
            except UnicodeDecodeError as fault:
                raise BadInput(
                    f"{file} is not UTF-8 text (byte {fault.start + 1} of a piece): no export wrote it."
                ) from None
    if json:
        data(asdict(imported))
    else:
        note(f"Run {imported.run} was imported with {count(imported.entries, 'entry', 'entries')}.")


@contextmanager
def _opened(file: Path) -> Iterator[TextIO]:
    if file == STDIN:
        sys.stdin.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]  # a TextIOWrapper
        yield sys.stdin
        return
    try:
        opened = file.open(encoding="utf-8", newline="\n")
    except OSError as fault:
        raise BadInput(
            f"{file} cannot be read ({fault.strerror}): give the file that `shiftbook export` wrote."
        ) from None
    with opened:
        yield opened
