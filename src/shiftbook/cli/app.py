"""The program `shiftbook`: finds the verb, runs it, and turns an error into one sentence and an exit code.

Verbs are named in `VERBS` and imported when they are called, so that `--version` and completion stay quick.
Nothing is decided here beyond that; a verb's module reads its options, asks `views` and prints.
"""

from __future__ import annotations

import logging
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import apsw
import typer
from typer.core import TyperGroup

from shiftbook._version import VERSION
from shiftbook.cli.examples import EXAMPLES
from shiftbook.cli.options import VERBOSE_HELP, is_verbose, set_verbose
from shiftbook.cli.output import unread
from shiftbook.cli.words import masked, plain, sentence
from shiftbook.entries import FORMAT
from shiftbook.errors import ShiftbookError

VERBS = {
    "init": "init",
    "demo": "demo",
    "run": "run",
    "resume": "resume",
    "send": "send",
    "worker": "worker",
    "workers": "workers",
    "rerun": "rerun",
    "measure": "measure",
    "replay": "replay",
    "runs": "runs",
    "show": "show",
    "tail": "tail",
    "prompt": "prompt",
    "explain": "explain",
    "verify": "verify",
    "study": "study",
    "export": "export",
    "import": "import_",
    "copy": "copy",
}
"""Each verb and its module in this folder, in the order of `--help`."""

UNREAD = 128 + 13
"""The exit code when the reader of the output has gone: what a shell reports after SIGPIPE."""

EPILOG = (
    "The way in: `shiftbook demo` shows what it does, `shiftbook init` writes an agent that needs no key, "
    "`shiftbook VERB --help` ends with an example. "
    "The journal is found in this order: --db, the environment variable SHIFTBOOK_DB, `db` under "
    "[tool.shiftbook] in the pyproject.toml of this folder or the nearest above it, ./shiftbook.db. "
    "Exit codes: 0 ok; 1 faults found; 2 bad input; 3 agent or model not usable; 4 interrupted, can be "
    "resumed; 5 waiting for a person; 6 limit reached; 7 held by another process; 141 the output was not "
    "read to its end."
)


class Verbs(TyperGroup):
    """The verbs, each imported when it is asked for."""

    def list_commands(self, ctx: object) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: object, cmd_name: str) -> typer.core.TyperCommand | None:
        module = VERBS.get(cmd_name)
        if module is None:
            return None
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        example = f"Example: {EXAMPLES[cmd_name]}"
        single.command(cmd_name, epilog=example)(import_module(f"shiftbook.cli.{module}").command)
        return typer.main.get_command(single)  # type: ignore[return-value]  # one command and no callback


app = typer.Typer(
    cls=Verbs, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False, epilog=EPILOG
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shiftbook {VERSION}, entry format {FORMAT}, SQLite {apsw.sqlite_lib_version()}")
        raise typer.Exit


@app.callback()
def shiftbook(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print program, entry format and SQLite."
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", callback=set_verbose, help=VERBOSE_HELP)
    ] = False,
) -> None:
    """Run AI agents from a journal in a database: kill them, resume them, check what they did."""


def main() -> None:
    """Run the program and exit with its code; quietly, when nobody reads its output to the end."""
    try:
        code = _program()
        sys.stdout.flush()
    except BrokenPipeError:
        code = UNREAD
    # typer ends with 1, our code for faults, and leaves its mark on the stream.
    if code == UNREAD or type(sys.stdout).__name__ == "PacifyFlushWrapper":
        code = UNREAD
        # Python's own flush at the end would find the pipe closed once more, and say so.
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                unread(stream)
    sys.exit(code)


def _refused(error: Exception, told: str, code: int) -> int:
    """Tell why it ended, in one sentence without a password; the exit code."""
    if is_verbose():
        logging.getLogger("shiftbook").error("stopped by an error", exc_info=error)
    sys.stderr.write(plain(f"shiftbook: {masked(sentence(told))}") + "\n")
    return code


def _program() -> int | str | None:
    """Run the verb; the exit code, or None for 0."""
    # A stream that the caller closed is one that nobody reads; Python has None in its place.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - for good
    try:
        app(prog_name="shiftbook")
    except ShiftbookError as error:
        return _refused(error, str(error), error.exit_code)
    except BrokenPipeError:
        raise
    except OSError as error:
        # What the system refuses anywhere (a name too long, no right, a full disk) is told like bad input.
        told = "" if error.filename is None else f"{error.filename!s:.200}: "
        return _refused(error, f"{told}{error.strerror or error}; check the path, its rights and its disk", 2)
    except SystemExit as end:
        return end.code
    return None
