"""`shiftbook run`: begin a run of an agent with a message and stay with it until it rests."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from shiftbook.cli.live import Live
from shiftbook.cli.messages import message_of
from shiftbook.cli.options import Cap, Db, Fixed, Json, Mark, PolicyName, Verbose
from shiftbook.cli.outcome import Ending, see_through
from shiftbook.cli.output import data, line, note
from shiftbook.cli.places import journal, server
from shiftbook.errors import BadInput
from shiftbook.run.agent import Agent
from shiftbook.run.loop import start
from shiftbook.run.reference import Overrides, load_agent
from shiftbook.workers.board import board
from shiftbook.workers.entering import enter
from shiftbook.workers.queue import check_packages, open_queue


def command(
    agent: Annotated[
        str,
        typer.Argument(
            metavar="AGENT", show_default=False, help="The agent: agent.py:NAME or package.module:NAME."
        ),
    ],
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", show_default=False, help="What to say to it.")
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            "--message", metavar="TEXT", show_default=False, help="The message; - reads it from stdin."
        ),
    ] = None,
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run-id", metavar="ID", show_default=False, help="The id of the new run; made up if not given."
        ),
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", show_default=False, help="A tag of the run; may be repeated."),
    ] = None,
    queue: Annotated[
        bool,
        typer.Option("--queue", help="Leave the run to a worker, on PostgreSQL: print its id and return."),
    ] = False,
    priority: Annotated[
        int | None,
        typer.Option(
            "--priority",
            metavar="N",
            show_default=False,
            help="With --queue: of two runs that wait, the greater goes first; 0.",
        ),
    ] = None,
    policy: PolicyName = None,
    cap: Cap = None,
    mark: Mark = None,
    fixed: Fixed = None,
    db: Db = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Begin a run of an agent and stay with it until it rests.

    The model's words go to stdout, calls, results and tokens to stderr. Ctrl-C rests the run at the next safe
    boundary; `shiftbook resume` goes on, also after a kill.
    """
    if priority is not None and not queue:
        raise BadInput("--priority is for runs that wait in a queue: give --queue as well, or leave it out.")
    said = message_of(message, text, needed=True)
    loaded = load_agent(agent, Overrides(policy=policy, cap=cap, mark=mark, fixed=fixed))
    if queue:
        asyncio.run(_queue(loaded, said or "", run_id, tag or [], priority or 0, db, json))
        return
    raise typer.Exit(asyncio.run(_run(loaded, said, run_id, tag or [], db, json)))


async def _run(
    agent: Agent, message: str | None, run_id: str | None, tags: list[str], db: str | None, json: bool
) -> int:
    live = Live(json=json)
    async with journal(db, create=True) as store:
        handle = await start(store, agent, message, run=run_id, tags=tags, watcher=live)
        return await see_through(store, handle, live, Ending(db=db, json=json))


async def _queue(
    agent: Agent, message: str, run_id: str | None, tags: list[str], priority: int, db: str | None, json: bool
) -> None:
    check_packages()
    async with journal(server(db), create=True) as store:
        queue = await open_queue(store, create=True)
        assert queue is not None
        run = await enter(queue, agent, message, run=run_id, tags=tags, priority=priority)
        seen = await board(store)
    if json:
        data({"run": run, "queued": True})
    else:
        line(run)
    beating = sum(each["beats"] for each in seen["workers"])
    if not beating:
        note(f"Run {run} waits, but no worker is there now: `shiftbook worker` starts one.")
    else:
        note(f"Run {run} waits for a worker; there {'is' if beating == 1 else 'are'} {beating:,} now.")
