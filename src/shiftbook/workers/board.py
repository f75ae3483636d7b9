"""Who holds what: the workers of a journal and the runs that are at work, told as plain rows.

It reads and never writes, so it can be asked of a replica. A worker is listed as long as it was seen within a
day: one that was killed signs nothing off, and does not beat any more. A run is listed while its lease lives,
whoever holds it: a worker, or a person's `shiftbook run`. A run that was put off is listed with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from shiftbook.errors import BadInput
from shiftbook.journal.postgres import PostgresStore
from shiftbook.journal.postgres_database import Database
from shiftbook.journal.promises import Store
from shiftbook.views.rows import stamp
from shiftbook.workers.jobs import Beat
from shiftbook.workers.layout import SCHEMA, layout

HELD_MAX = 1_000
"""Runs at work that are listed at the most."""

PUT_OFF_MAX = 100
"""Runs that were put off that are listed at the most: those that are due first."""

SILENT_MS = Beat().stalled_ms
"""A worker that was not seen for so long does not beat: its runs are given to others. Milliseconds."""


class WorkerRow(TypedDict):
    """A worker. Stamps are ISO 8601 in UTC by the server's time; `agents` is empty when it takes all.

    `beats` is false for one that was not seen for `SILENT_MS`: it is dead, frozen or cut off.
    """

    worker: str
    host: str
    pid: int
    concurrency: int
    agents: list[str]
    began: str
    seen: str
    beats: bool


class HeldRow(TypedDict):
    """A run at work. `since` is None when no worker has it; `last` is its newest entry."""

    run: str
    agent: str
    state: str
    host: str
    pid: int
    worker: str | None
    since: str | None
    lease: int
    lease_ends_in_ms: int
    entries: int
    last: str
    last_at: str


class PutOffRow(TypedDict):
    """A run that is due later, and why; `tries` is how often it was put off in a row."""

    run: str
    why: str
    tries: int
    due_in_ms: int


class Waiting(TypedDict):
    """How many wakes wait for a worker and are with one, how many runs are due later or wait for a share."""

    ready: int
    at_work: int
    later: int
    parked: int


class Board(TypedDict):
    """Everything that `shiftbook workers` tells; `at` is the server's time of it."""

    at: str
    workers: list[WorkerRow]
    held: list[HeldRow]
    put_off: list[PutOffRow]
    waiting: Waiting


async def board(store: Store) -> Board:
    """The workers of a journal and what is at work; `BadInput` for a journal that is not on PostgreSQL."""
    if not isinstance(store, PostgresStore):
        raise BadInput(
            f"{store.name} is no PostgreSQL database, and only there are workers: give --db "
            "postgresql://HOST/DATABASE."
        )
    return await store.connections.run(_board, again=_board)


async def queued(store: Store, runs: Sequence[str]) -> set[str]:
    """Those of some runs that wait for a worker, now or at a moment to come; none where there is no queue."""
    if not isinstance(store, PostgresStore) or not runs:
        return set()

    async def look(database: Database) -> set[str]:
        if not await layout(database):
            return set()
        found = await database.rows(
            f"SELECT run FROM {SCHEMA}.queued_runs WHERE run = ANY (%s) AND (due IS NOT NULL OR EXISTS ("
            f"SELECT 1 FROM {SCHEMA}.procrastinate_jobs AS job "
            "WHERE job.queueing_lock = queued_runs.run AND job.status = 'todo'))",
            (list(runs),),
        )
        return {str(run) for (run,) in found}

    return await store.connections.run(look, again=look)


async def waiting(database: Database) -> Waiting:
    """The queue's length; one query over the wakes that are there, not over all runs."""
    ((ready, at_work, later, parked),) = await database.rows(
        f"SELECT (SELECT count(*) FROM {SCHEMA}.procrastinate_jobs WHERE status = 'todo'), "
        f"(SELECT count(*) FROM {SCHEMA}.procrastinate_jobs WHERE status = 'doing'), "
        f"(SELECT count(*) FROM {SCHEMA}.queued_runs WHERE due IS NOT NULL AND share IS NULL), "
        f"(SELECT count(*) FROM {SCHEMA}.queued_runs WHERE due IS NOT NULL AND share IS NOT NULL)"
    )
    return Waiting(ready=ready, at_work=at_work, later=later, parked=parked)


async def _board(database: Database) -> Board:
    ((layout, now_ms),) = await database.rows(
        f"SELECT to_regclass('{SCHEMA}.layout'), {_MS.format('clock_timestamp()')}"
    )
    at = stamp(now_ms)
    if layout is None:
        none = Waiting(ready=0, at_work=0, later=0, parked=0)
        held = await database.rows(_HELD.format(taken="NULL, NULL", joined=""), (HELD_MAX,))
        return Board(at=at, workers=[], held=[_held(each) for each in held], put_off=[], waiting=none)
    workers = await database.rows(
        f"SELECT name, host, pid, concurrency, agents, {_MS.format('began')}, {_MS.format('seen')} "
        f"FROM {SCHEMA}.workers ORDER BY name"
    )
    joined = f"LEFT JOIN {SCHEMA}.queued_runs AS queued ON queued.run = leases.run"
    taken = f"queued.worker, {_MS.format('queued.taken')}"
    held = await database.rows(_HELD.format(taken=taken, joined=joined), (HELD_MAX,))
    put_off = await database.rows(
        f"SELECT run, why, tries, {_MS.format('due - clock_timestamp()')} FROM {SCHEMA}.queued_runs "
        "WHERE due IS NOT NULL AND why <> '' ORDER BY due LIMIT %s",
        (PUT_OFF_MAX,),
    )
    return Board(
        at=at,
        workers=[_worker(each, now_ms) for each in workers],
        held=[_held(each) for each in held],
        put_off=[
            PutOffRow(run=run, why=why, tries=tries, due_in_ms=max(0, due_ms))
            for run, why, tries, due_ms in put_off
        ],
        waiting=await waiting(database),
    )


_MS = "(extract(epoch FROM {}) * 1000)::bigint"

_HELD = """
SELECT leases.run, runs.agent, runs.state, leases.host, leases.pid, leases.epoch,
    leases.until_ms - shiftbook.now_ms(), last.position, kinds.name, last.at_ms, {taken}
FROM shiftbook.leases
JOIN shiftbook.runs ON runs.number = leases.number
{joined}
CROSS JOIN LATERAL (
    SELECT position, at_ms, kind FROM shiftbook.entries WHERE entries.run = leases.number
    ORDER BY position DESC LIMIT 1
) AS last
JOIN shiftbook.kinds ON kinds.number = last.kind
WHERE leases.host IS NOT NULL AND leases.until_ms > shiftbook.now_ms()
ORDER BY leases.host, leases.pid, leases.run
LIMIT %s
"""


def _worker(row: tuple[Any, ...], now_ms: int) -> WorkerRow:
    name, host, pid, concurrency, agents, began, seen = row
    return WorkerRow(
        worker=name,
        host=host,
        pid=pid,
        concurrency=concurrency,
        agents=list(agents),
        began=stamp(began),
        seen=stamp(seen),
        beats=now_ms - seen < SILENT_MS,
    )


def _held(row: tuple[Any, ...]) -> HeldRow:
    run, agent, state, host, pid, epoch, ends, entries, kind, at_ms, worker, taken = row
    return HeldRow(
        run=run,
        agent=agent,
        state=state,
        host=host,
        pid=pid,
        worker=worker,
        since=None if taken is None else stamp(taken),
        lease=epoch,
        lease_ends_in_ms=ends,
        entries=entries,
        last=kind,
        last_at=stamp(at_ms),
    )
