"""`shiftbook demo`: see a long run killed in the middle of actions, resumed, and checked."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from shiftbook.cli.options import Json, Verbose
from shiftbook.cli.output import data, note, table
from shiftbook.cli.words import ours
from shiftbook.demo.show import HOLDS, Outcome, show
from shiftbook.errors import BadInput


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the journal of the demo goes.")] = Path(
        "demo"
    ),
    keep: Annotated[
        bool,
        typer.Option(help="Keep the journal, to look into it; otherwise it is made in a temporary folder."),
    ] = True,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Run an agent for 100 turns and more, kill it in the middle of actions, resume it, verify it."""
    note(
        f"An order desk works through its orders; at {len(HOLDS)} charges its process is killed by SIGKILL "
        "in the middle of the action, and a new process resumes it."
    )
    if keep:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise BadInput(f"{folder} cannot be made ({fault.strerror}): name another folder.") from None
        outcome = asyncio.run(show(folder))
    else:
        with tempfile.TemporaryDirectory(prefix="shiftbook-demo-") as place:
            outcome = asyncio.run(show(Path(place)))
    _tell(outcome, json)
    if keep:
        _next(outcome)
    raise typer.Exit(0 if outcome.holds else 1)


def _tell(outcome: Outcome, json: bool) -> None:
    names = ("turns", "actions", "kills", "cut_off", "repeated", "double_effects")
    if json:
        more = {"prompt_tokens": {"median": outcome.prompt_median, "max": outcome.prompt_max}}
        counts = {name: getattr(outcome, name) for name in names}
        data(
            {
                "run": outcome.run,
                "state": outcome.state,
                **counts,
                **more,
                "verify": outcome.verified,
                "ok": outcome.holds,
            }
        )
        return
    rows = [
        ("turns", f"{outcome.turns:,}"),
        ("actions", f"{outcome.actions:,}"),
        ("kills in the middle of an action", f"{outcome.kills:,}"),
        ("finished actions repeated", f"{outcome.repeated:,}"),
        ("charges taken", f"{outcome.charges:,}"),
        ("double effects", f"{outcome.double_effects:,}"),
        ("prompt tokens, median", f"{outcome.prompt_median:,}"),
        (f"prompt tokens, maximum (cap {outcome.cap:,})", f"{outcome.prompt_max:,}"),
        ("verify", "ok" if outcome.verified else "FAULTS"),
    ]
    table(("", "demo"), rows, right=("demo",))
    if not outcome.holds:
        note(f"The demo does not hold what it promises: the run is {outcome.state}; see the table.")


def _next(outcome: Outcome) -> None:
    place = ("--db", str(outcome.db))
    note("What to try next:")
    steps = (
        (("show", outcome.run, *place), "every entry, the kills included"),
        (("prompt", outcome.run, "--turn", "60", *place), "what the model saw in turn 60, to the letter"),
        (("verify", outcome.run, *place), "the record checks, to the byte"),
        (("init",), "an agent of your own to start from"),
    )
    wide = max(len(ours(*words)) for words, _ in steps)
    for words, why in steps:
        note(f"  {ours(*words):<{wide}}    {why}")
