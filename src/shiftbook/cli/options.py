"""Options that several verbs share, so that one word means one thing on every verb."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

VERBOSE_HELP = "Show the log of the engine on stderr, and an error's traceback."

Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="ADDRESS",
        show_default=False,
        help="The journal: a SQLite file or postgresql://USER@HOST/NAME. Else SHIFTBOOK_DB, else `db` under "
        "[tool.shiftbook] in the nearest pyproject.toml, else ./shiftbook.db.",
    ),
]
RunId = Annotated[
    str | None,
    typer.Argument(metavar="RUN", show_default=False, help="The run's id, or a prefix that fits one run."),
]
Turn = Annotated[
    int | None,
    typer.Option(
        "--turn", metavar="N", show_default=False, help="The turn, counted from 1; else the newest one."
    ),
]
Last = Annotated[bool, typer.Option("--last", help="Take the newest run.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout; fields are only ever added.")]
PolicyName = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        show_default=False,
        help="How the prompt is made: journal, masking, notes, transcript, window.",
    ),
]
Cap = Annotated[
    int | None,
    typer.Option(
        "--cap", metavar="TOKENS", show_default=False, help="The prompt's hard limit, by our meter."
    ),
]
Mark = Annotated[
    int | None,
    typer.Option(
        "--mark",
        metavar="TOKENS",
        show_default=False,
        help="Rebuild down to this; 40% of the cap by default.",
    ),
]
Fixed = Annotated[
    int | None,
    typer.Option(
        "--fixed",
        metavar="TOKENS",
        show_default=False,
        help="Counted into every prompt for what is not shown; 0.",
    ),
]


def set_verbose(wanted: bool) -> bool:
    """Put the stdlib logger `shiftbook` on stderr, once. The engine itself installs no handler."""
    log = logging.getLogger("shiftbook")
    if wanted and not is_verbose():
        handler = logging.StreamHandler(sys.stderr)
        handler.set_name("shiftbook -v")
        handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.DEBUG)
    return wanted


def is_verbose() -> bool:
    """Whether `-v` was given."""
    return any(handler.name == "shiftbook -v" for handler in logging.getLogger("shiftbook").handlers)


Verbose = Annotated[bool, typer.Option("--verbose", "-v", callback=set_verbose, help=VERBOSE_HELP)]
