"""`shiftbook rerun`: drive a session that another tool recorded through the live engine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from shiftbook import rerun
from shiftbook.cli.live import Live
from shiftbook.cli.options import Cap, Db, Fixed, Json, Mark, PolicyName, Verbose
from shiftbook.cli.outcome import Ending, see_through
from shiftbook.cli.places import journal
from shiftbook.economics.cache_request import Ttl
from shiftbook.economics.price_book import prices_at
from shiftbook.errors import BadInput
from shiftbook.messages import Json as JsonValue
from shiftbook.run.agent import CAP_DEFAULT
from shiftbook.sessions import Session, open_session
from shiftbook.views import OwnRequests, RunFigures, one_line

TTLS: Mapping[str, Ttl | None] = {"5m": "5m", "1h": "1h", "none": None}
TTL_DEFAULT = "5m"


def command(
    session: Annotated[
        Path,
        typer.Argument(
            metavar="SESSION",
            show_default=False,
            help="A session file of a format that can be driven (guides/measure-formats.md), .gz or not.",
        ),
    ],
    only: Annotated[
        int | None,
        typer.Option(
            "--only", metavar="N", show_default=False, help="The N-th session of a file that holds several."
        ),
    ] = None,
    policy: PolicyName = None,
    cap: Cap = None,
    mark: Mark = None,
    fixed: Fixed = None,
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run-id", metavar="ID", show_default=False, help="The id of the new run; made up if not given."
        ),
    ] = None,
    going_on: Annotated[
        str | None,
        typer.Option(
            "--resume", metavar="RUN", show_default=False, help="Go on with a rerun that was cut off."
        ),
    ] = None,
    stop_after_turn: Annotated[
        int | None,
        typer.Option(
            "--stop-after-turn", metavar="N", show_default=False, help="Rest at the boundary after turn N."
        ),
    ] = None,
    ttl: Annotated[
        str,
        typer.Option(
            "--ttl",
            metavar="LIFE",
            help="For the cached share: how long a cache keeps a prompt, 5m, 1h, or none (for ever).",
        ),
    ] = TTL_DEFAULT,
    db: Db = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Drive a recorded session through the live engine: its replies, tool results and people as recorded.

    Defaults: --policy window, --cap 100000, --mark 40% of the cap, --fixed 0. The cap includes --fixed. A
    rerun that was cut off is taken up by --resume, or by `shiftbook resume RUN`, as it began. The cached
    share is what Anthropic's rules would serve of our own requests, at the recorded times; the cost is theirs
    at the prices of those days, with the output that is to be seen in the recorded replies.
    """
    if ttl not in TTLS:
        raise BadInput(f"--ttl {ttl} is no life of a cache: give one of {', '.join(TTLS)}.")
    settings = rerun.Settings(
        policy=rerun.POLICY_DEFAULT if policy is None else policy,
        cap=CAP_DEFAULT if cap is None else cap,
        mark=mark,
        fixed=fixed or 0,
    )
    if going_on is not None and (
        run_id is not None or any(each is not None for each in (policy, cap, mark, fixed))
    ):
        raise BadInput("--resume goes on with the settings that the rerun began with: give none beside it.")
    recorded = open_session(session, only)
    raise typer.Exit(
        asyncio.run(
            _rerun(recorded, settings, run_id, going_on, stop_after_turn, TTLS[ttl], db, json, verbose)
        )
    )


async def _rerun(
    session: Session,
    settings: rerun.Settings,
    run_id: str | None,
    going_on: str | None,
    stop_after_turn: int | None,
    ttl: Ttl | None,
    db: str | None,
    json: bool,
    verbose: bool,
) -> int:
    live = Live(json=json, quiet=not verbose)
    watch = rerun.StopAfter(live, stop_after_turn)
    async with journal(db, create=going_on is None) as store:
        if going_on is None:
            handle = await rerun.begin(store, session, settings, run=run_id, watcher=watch)
        else:
            name = await store.catalogue.find(going_on)
            handle = await rerun.take_up(store, name, session=session, watcher=watch)
        settings = (await rerun.declared_settings(store, handle.id))[1].settings
        watch.handle = handle
        return await see_through(store, handle, live, ending_of(session, settings, db, json, ttl))


def ending_of(
    session: Session, settings: rerun.Settings, db: str | None, json: bool, ttl: Ttl | None = "5m"
) -> Ending:
    """How to tell of a rerun's end: beside the run's figures, what of the recording they cover and do not."""
    own = OwnRequests(ttl, prices=prices_at)

    def more(figures: RunFigures) -> Mapping[str, JsonValue]:
        return {
            "policy": settings.policy,
            "cap": settings.cap,
            "mark": settings.mark,
            "fixed": settings.fixed,
            "requests_driven": figures["turns"],
            "requests_in_file": session.requests_in_file,
            "named": dict(session.named),
            "cache": {"rules": "anthropic", "minimum": own.minimum, "ttl": ttl or "none"},
        }

    def notes(figures: RunFigures) -> Sequence[str]:
        named = ", ".join(f"{one_line(what, 60)} {times:,}" for what, times in session.named)
        driven, in_file = figures["turns"], session.requests_in_file
        rules = f"--ttl {ttl or 'none'}, prefixes of {own.minimum:,} tokens or more"
        cached = f"cached share of these requests by Anthropic's rules: {rules}"
        how = f"policy {settings.policy}, cap {settings.cap:,} with --fixed {settings.fixed:,} in it"
        return (
            f"{how}; requests driven {driven:,} of {in_file:,} in the file",
            cached,
            f"dropped by the format, or said by no person, and so not in the prompts: {named or 'nothing'}",
        )

    return Ending(db=db, json=json, figures_are_data=True, own=own, more=more, notes=notes)
