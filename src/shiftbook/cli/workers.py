"""`shiftbook workers`: who holds which run, since when, and what was written last."""

from __future__ import annotations

import asyncio

from shiftbook.cli.options import Db, Json, Verbose
from shiftbook.cli.output import data, note, table
from shiftbook.cli.places import journal
from shiftbook.cli.words import count
from shiftbook.views import one_line
from shiftbook.workers.board import Board, board


def command(db: Db = None, json: Json = False, verbose: Verbose = False) -> None:
    """List the workers of a PostgreSQL journal and the runs at work: whose, since when, the last entry."""
    told = asyncio.run(_board(db))
    if json:
        data(told)
    else:
        _tell(told)


async def _board(db: str | None) -> Board:
    async with journal(db, read_only=True) as store:
        return await board(store)


def _tell(told: Board) -> None:
    workers = [
        (
            each["worker"],
            f"{each['concurrency']:,}",
            _minute(each["began"]),
            _second(each["seen"]),
            one_line(" ".join(each["agents"]) or "all", 60),
        )
        for each in told["workers"]
    ]
    if workers:
        table(("worker", "runs at once", "began", "seen", "agents"), workers, right=("runs at once",))
    held = [
        (
            each["run"],
            each["worker"] or f"{each['host']}:{each['pid']}",
            "?" if each["since"] is None else _second(each["since"]),
            f"{each['lease_ends_in_ms'] / 1000:.0f} s",
            f"{each['entries']:,}",
            f"{each['last']} {_second(each['last_at'])}",
            one_line(each["agent"], 60),
        )
        for each in told["held"]
    ]
    if held:
        columns = ("run", "held by", "since", "lease left", "entries", "last entry", "agent")
        table(columns, held, right=("lease left", "entries"), folded=("agent",))
    waits = told["waiting"]
    note(
        f"{count(len(held), 'run')} at work, {count(waits['ready'], 'wake')} ready, "
        f"{waits['later']:,} due later, {count(len(workers), 'worker')}."
    )


def _minute(stamp: str) -> str:
    return stamp[:16].replace("T", " ")


def _second(stamp: str) -> str:
    return stamp[11:19]
