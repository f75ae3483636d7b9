"""`shiftbook workers`: who holds which run, since when, and what was written last."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from shiftbook.cli.options import Db, Json, Verbose
from shiftbook.cli.output import data, note, table
from shiftbook.cli.places import journal
from shiftbook.cli.words import count, lasting
from shiftbook.views import one_line
from shiftbook.workers.board import SILENT_MS, Board, board

MILLISECOND = timedelta(milliseconds=1)


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
    def ago(stamp: str) -> str:
        return lasting((datetime.fromisoformat(told["at"]) - datetime.fromisoformat(stamp)) / MILLISECOND)

    workers = [
        (
            each["worker"],
            f"{each['concurrency']:,}",
            ago(each["began"]),
            f"{ago(each['seen'])} ago" + ("" if each["beats"] else ": does not beat"),
            one_line(" ".join(each["agents"]) or "all", 60),
        )
        for each in told["workers"]
    ]
    if workers:
        table(("worker", "runs at once", "for", "seen", "agents"), workers, right=("runs at once", "for"))
    held = [
        (
            each["run"],
            each["worker"] or f"{each['host']}:{each['pid']}",
            "?" if each["since"] is None else ago(each["since"]),
            lasting(each["lease_ends_in_ms"]),
            f"{each['entries']:,}",
            f"{each['last']} {ago(each['last_at'])} ago",
            one_line(each["agent"], 60),
        )
        for each in told["held"]
    ]
    if held:
        columns = ("run", "held by", "for", "lease left", "entries", "last entry", "agent")
        table(columns, held, right=("for", "lease left", "entries"), folded=("agent",))
    put_off = [
        (each["run"], lasting(each["due_in_ms"]), f"{each['tries']:,}", one_line(each["why"], 200))
        for each in told["put_off"]
    ]
    if put_off:
        table(("run put off", "due in", "tries", "why"), put_off, right=("due in", "tries"), folded=("why",))
    note(_sum(told))


def _sum(told: Board) -> str:
    waits, silent = told["waiting"], sum(not each["beats"] for each in told["workers"])
    return (
        f"{count(len(told['held']), 'run')} at work, {count(waits['ready'], 'wake')} ready, "
        f"{waits['later']:,} due later, {waits['parked']:,} waiting for a share, "
        f"{count(len(told['workers']) - silent, 'worker')}"
        + (f" and {silent:,} not seen for {lasting(SILENT_MS)} or longer." if silent else ".")
    )
