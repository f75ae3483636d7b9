"""`shiftbook runs`: which runs the journal holds and how each stands."""

from __future__ import annotations

import asyncio
from typing import Annotated, cast, get_args

import typer

from shiftbook.cli.options import Db, Json, Verbose
from shiftbook.cli.output import data, note, table
from shiftbook.cli.places import journal
from shiftbook.economics.price_book import known_prices
from shiftbook.entries import State
from shiftbook.errors import BadInput
from shiftbook.views import RunLine, hold_told, one_line, runs_view
from shiftbook.views.reported import Prices
from shiftbook.workers.board import queued

PAGE = 200


def command(
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="STATE",
            show_default=False,
            help=f"Only runs of this state: {', '.join(get_args(State))}.",
        ),
    ] = None,
    tag: Annotated[
        str | None, typer.Option("--tag", metavar="TAG", show_default=False, help="Only runs with this tag.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="List at most so many, the newest first.")
    ] = 50,
    cost: Annotated[
        bool,
        typer.Option("--cost", help="Read each run whole and price it as its providers reported; in USD."),
    ] = False,
    db: Db = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """List the runs of the journal, the newest first. Tokens are those that the providers reported."""
    if state is not None and state not in get_args(State):
        raise BadInput(f"There is no state {state!r}; a run is one of: {', '.join(get_args(State))}.")
    if limit < 1:
        raise BadInput(f"--limit {limit} lists nothing: give at least 1.")
    lines = asyncio.run(_runs(cast("State | None", state), tag, limit, known_prices if cost else None, db))
    if json:
        data(lines)
    elif lines:
        _tell(lines, cost)
    else:
        note("No run here fits.")


async def _runs(
    state: State | None, tag: str | None, limit: int, prices: Prices | None, db: str | None
) -> list[RunLine]:
    found: list[RunLine] = []
    async with journal(db, read_only=True) as store:
        while len(found) < limit:
            after = found[-1]["run"] if found else None
            page = await runs_view(
                store,
                state=state,
                tag=tag,
                after=after,
                limit=min(PAGE, limit - len(found)),
                prices=prices,
            )
            if not page:
                break
            found.extend(page)
        left = [each["run"] for each in found if each["hold"] in ("free", "expired")]
        waiting = await queued(store, left)
        for each in found:
            if each["run"] in waiting:
                each["hold"] = "queued"
    return found


def _tell(lines: list[RunLine], cost: bool) -> None:
    tags = ("tags",) if any(each["tags"] for each in lines) else ()
    costs = ("cost",) if cost else ()
    held = ("held by",) if any(each["hold"] for each in lines) else ()
    columns = ("run", "state", *held, "entries", "turns", "tokens", *costs, "changed", "agent", *tags)
    rows = [
        (
            each["run"],
            each["state"],
            *([_held(each)] if held else []),
            f"{each['entries']:,}",
            _number(each["turns"]),
            _number(each["tokens"]),
            *([_dollars(each["cost"])] if cost else []),
            each["changed"][:16].replace("T", " "),
            one_line(each["agent"], 60),
            *([" ".join(each["tags"])] if tags else []),
        )
        for each in lines
    ]
    table(columns, rows, right=("entries", "turns", "tokens", *costs), folded=("agent", "tags"))


def _held(each: RunLine) -> str:
    return "" if each["hold"] is None else hold_told(each["hold"], each["holder"])


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _dollars(value: float | None) -> str:
    return "?" if value is None else f"${value:,.4f}"
