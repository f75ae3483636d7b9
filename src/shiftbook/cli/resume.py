"""`shiftbook resume`: take a run up where its journal ends, in whatever process."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from shiftbook import rerun
from shiftbook.cli.live import Live
from shiftbook.cli.messages import message_of
from shiftbook.cli.options import Cap, Db, Fixed, Json, Last, Mark, PolicyName, RunId, Verbose, is_verbose
from shiftbook.cli.outcome import Ending, see_through
from shiftbook.cli.places import journal, run_meant
from shiftbook.cli.rerun import ending_of
from shiftbook.errors import BadInput
from shiftbook.journal.promises import Store
from shiftbook.run.loop import resume
from shiftbook.run.reference import Overrides, load_agent
from shiftbook.views import standing_of


def command(
    run: RunId = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="REF",
            show_default=False,
            help="The agent, if it is to be found elsewhere than when the run began.",
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            "--message", metavar="TEXT", show_default=False, help="A message for it; - reads it from stdin."
        ),
    ] = None,
    policy: PolicyName = None,
    cap: Cap = None,
    mark: Mark = None,
    fixed: Fixed = None,
    last: Last = False,
    db: Db = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Take a run up where its journal ends, whatever ended its last process.

    Finished work is not repeated; a call that was cut off is run again only if its author allowed it.
    """
    overrides = Overrides(policy=policy, cap=cap, mark=mark, fixed=fixed)
    said = message_of(None, text, needed=False)
    raise typer.Exit(asyncio.run(_resume(run, last, agent, overrides, said, db, json)))


async def _resume(
    run: str | None,
    last: bool,
    agent: str | None,
    overrides: Overrides,
    message: str | None,
    db: str | None,
    json: bool,
) -> int:
    async with journal(db) as store:
        name = await run_meant(store, run, last)
        reference = (await standing_of(store, name)).agent if agent is None else agent
        if rerun.is_rerun(reference):
            if message is not None or overrides.given():
                raise BadInput(
                    f"Run {name} is a rerun of a recording: it takes no message and no other settings."
                )
            return await _take_up(store, name, reference, db, json)
        live = Live(json=json)
        handle = await resume(store, name, load_agent(reference, overrides), message, watcher=live)
        return await see_through(store, handle, live, Ending(db=db, json=json))


async def _take_up(store: Store, run: str, reference: str, db: str | None, json: bool) -> int:
    """Go on with a rerun of a recording."""
    live = Live(json=json, quiet=not is_verbose())
    session = rerun.recording_of(reference)
    settings = (await rerun.declared_settings(store, run))[1].settings
    handle = await rerun.take_up(store, run, session=session, watcher=live)
    return await see_through(store, handle, live, ending_of(session, settings, db, json))
