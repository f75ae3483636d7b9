"""`shiftbook init`: write an agent that runs as it stands, without a key, to be changed from there."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from shiftbook.cli.options import Verbose
from shiftbook.cli.output import line, note
from shiftbook.cli.words import ours
from shiftbook.errors import BadInput

AGENT_FILE = "agent.py"


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write agent.py.")] = Path(),
    verbose: Verbose = False,
) -> None:
    """Write a runnable, commented agent.py; a file that is there is never overwritten."""
    target = folder / AGENT_FILE
    text = files("shiftbook.cli").joinpath("template_agent.py").read_text(encoding="utf-8")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise BadInput(f"{target} is there already and was left as it is: name another folder.") from None
    except OSError as fault:
        raise BadInput(f"{target} cannot be written ({fault.strerror}): name a folder that can be.") from None
    line(str(target))
    note("Run it: " + ours("run", f"{target}:shop", "Order 3 boxes of tea."))
