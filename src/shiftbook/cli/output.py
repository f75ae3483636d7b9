"""Data on stdout, words for people on stderr.

JSON is UTF-8 whatever the locale, and what could steer a terminal stands in it as an escape.
Colours are rich's affair: it leaves them out in a pipe and heeds NO_COLOR. Tables have no lines: a table of
runs has to fit into 80 columns.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TextIO

from shiftbook import canonical
from shiftbook.cli.words import escaped, plain
from shiftbook.errors import BadInput
from shiftbook.messages import Json

PIPE_WIDTH = 10_000
"""Columns of a table in a pipe: nothing is folded there."""


def data(value: Json) -> None:
    """One JSON value on a line of its own."""
    sys.stdout.flush()
    sys.stdout.buffer.write(escaped(canonical.encode(value)).encode("utf-8") + b"\n")
    sys.stdout.buffer.flush()


def line(text: str) -> None:
    """A line of data that is meant to be read as it is."""
    sys.stdout.write(plain(text) + "\n")


def note(text: str) -> None:
    """A line for people."""
    sys.stderr.write(plain(text) + "\n")
    sys.stderr.flush()


def unread(stream: TextIO) -> None:
    """Let a stream whose reader went away lead nowhere, so that no later write to it fails."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def write_page(file: Path, text: str) -> None:
    """Write a page to a file; a place where none can be written is bad input."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as fault:
        raise BadInput(
            f"The page cannot be written to {file} ({fault.strerror}): name another file."
        ) from None
    note(f"page written to {file}")


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    folded: Sequence[str] = (),
) -> None:
    """A plain table on stdout; the columns in `right` are numbers, those in `folded` may take more lines."""
    from rich.console import Console
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, padding=(0, 1))
    for name in columns:
        side: Literal["left", "right"] = "right" if name in right else "left"
        shown.add_column(name, justify=side, overflow="fold", no_wrap=name not in folded)
    for row in rows:
        shown.add_row(*(plain(cell) for cell in row))
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    Console(highlight=False, markup=False, emoji=False, width=width).print(shown)
