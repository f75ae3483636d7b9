"""The queue of runs: wakes, and what is due later, on the journal's own PostgreSQL.

A wake is a job of procrastinate whose only argument is the run. Its lock is the run, so that one worker at a
time looks at it; its queueing lock is the run too, so that wakes that nobody has taken yet are one. That is
where a wake can be lost: a message joins a wake that is being taken in the same moment, by a worker that does
not see the message yet. So whoever joins a wake locks its row first: then it is taken after the message is
there, or it is taken already and a new one is put in.

A message and its wake are one transaction on one connection. Everything lies in the schema `shiftbook_queue`:
another program's procrastinate in the same database is left alone, and leaves this one alone.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any

from shiftbook.errors import BadInput, StoreUnusable
from shiftbook.journal.postgres import PostgresStore
from shiftbook.journal.postgres_database import Database
from shiftbook.journal.postgres_inbox import put_in
from shiftbook.journal.promises import InboxItem, Store
from shiftbook.workers.connector import app_on
from shiftbook.workers.layout import HERE, SCHEMA, layout, make_layout

if TYPE_CHECKING:
    from procrastinate import App

WAKE = "shiftbook.wake"
"""The name of the job that has a worker look at a run."""

UPKEEP = "shiftbook"
"""The queue of the periodic jobs of the release before: no agent's."""

PLACE_MS = 10_000
"""How long a woken run's place in the line for a share is kept, in milliseconds: it may find no worker."""

QUEUE_NAME_MAX = 40
"""Characters of a queue's name: its channel's name, with procrastinate's prefix, has to fit into 63 bytes."""

DUE_MAX = 100
"""Wakes that one look at the due index hands out."""

_PLAIN = re.compile(rf"[A-Za-z0-9._:/-]{{1,{QUEUE_NAME_MAX}}}")


@dataclass(frozen=True, slots=True)
class Wake:
    """What the queue knows of a run that a worker takes.

    The agent's reference and the tags are the catalogue's, the reference "" where that does not know it;
    `tries` is how often the run was put off in a row, `since` when it began to wait for a share, if it does.
    """

    run: str
    tries: int = 0
    agent: str = ""
    tags: tuple[str, ...] = ()
    priority: int = 0
    since: datetime | None = None


def queue_of(reference: str) -> str:
    """The queue of an agent's runs: its reference without overrides, or a digest where that is too long."""
    bare = reference.partition("?")[0]
    if _PLAIN.fullmatch(bare) and bare != UPKEEP:
        return bare
    return f"agent-{sha256(bare.encode('utf-8')).hexdigest()[:24]}"


class Queue:
    """The queue of one journal. Make one with `open_queue`; it ends with its store."""

    def __init__(self, store: PostgresStore, app: App) -> None:
        self.store = store
        self.app = app

    async def enter(self, run: str, reference: str, item: InboxItem, priority: int = 0) -> None:
        """Make a run a queued one, with its first message, and wake it: all of it or nothing.

        `priority` counts upwards: of two runs that wait, the one with the greater is taken first.
        """
        values = (run, queue_of(reference), priority)
        job = partial(self._enter, values=values, run=run, item=item)
        await self.store.connections.run(job, again=job)

    async def _enter(self, database: Database, values: tuple[Any, ...], run: str, item: InboxItem) -> None:
        async with database.transaction():
            await database.run(HERE)
            await put_in(database, run, item)
            await database.run(
                "INSERT INTO queued_runs (run, queue, priority) VALUES (%s, %s, %s) "
                "ON CONFLICT (run) DO UPDATE SET queue = excluded.queue, priority = excluded.priority",
                values,
            )
            await self._wake(database, [run])

    async def send(self, run: str, item: InboxItem) -> bool:
        """Put an item into a run's inbox and wake the run if it is a queued one; False if it is not."""
        job = partial(self._send, run=run, item=item)
        return await self.store.connections.run(job, again=job)

    async def _send(self, database: Database, run: str, item: InboxItem) -> bool:
        async with database.transaction():
            await database.run(HERE)
            await put_in(database, run, item)
            return bool(await self._wake(database, [run]))

    async def _wake(self, database: Database, runs: Sequence[str], ahead: int = 0) -> int:
        """Have a worker look at queued runs; how many there were. Within the caller's transaction.

        `ahead` is added to their priorities: those that have waited go before those that come.
        """
        found = await database.rows(
            "SELECT run, queue, priority FROM queued_runs WHERE run = ANY (%s) ORDER BY run", (list(runs),)
        )
        for run, queue, priority in found:
            while not await self._joined(database, run):
                if await self._put(database, run, queue, priority + ahead):
                    break
        return len(found)

    async def _joined(self, database: Database, run: str) -> bool:
        return bool(
            await database.rows(
                "SELECT 1 FROM procrastinate_jobs WHERE queueing_lock = %s AND status = 'todo' FOR UPDATE",
                (run,),
            )
        )

    async def _put(self, database: Database, run: str, queue: str, priority: int) -> bool:
        from procrastinate.exceptions import AlreadyEnqueued, ConnectorException

        job = self.app.configure_task(
            WAKE, queue=queue, priority=priority, lock=run, queueing_lock=run, connection=database.connection
        )
        await database.run("SAVEPOINT wake")
        try:
            await job.defer_async(run=run)
        except AlreadyEnqueued:
            await database.run("ROLLBACK TO SAVEPOINT wake")
            return False  # Somebody else put one in between: join that.
        except ConnectorException as wrapped:
            # As it came from the driver: the store knows what may be done again, and has words for the rest.
            raise (wrapped.__cause__ or wrapped) from None
        await database.run("RELEASE SAVEPOINT wake")
        return True

    async def due(self) -> int:
        """Put in a wake for whatever is due by the server's time; how many. One query when nothing is."""
        return await self.store.connections.run(self._due, again=self._due)

    async def _due(self, database: Database) -> int:
        # By now(), which an index can be asked with; clock_timestamp() would be compared with every row.
        if not await database.rows(f"SELECT 1 FROM {SCHEMA}.queued_runs WHERE due <= now() LIMIT 1"):
            return 0
        async with database.transaction():
            await database.run(HERE)
            taken = await database.rows(
                "UPDATE queued_runs SET due = NULL WHERE run IN (SELECT run FROM queued_runs "
                "WHERE due <= now() ORDER BY due LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING run",
                (DUE_MAX,),
            )
            return await self._wake(database, [run for (run,) in taken])

    async def orphans(self) -> int:
        """Wake queued runs that have something to do and neither a holder nor a wake; how many.

        There are none unless a job was lost: a worker that came back from the dead ended a job that was
        somebody else's by then, or a program put a message in and knew of no queue.
        """
        return await self.store.connections.run(self._orphans, again=self._orphans)

    async def _orphans(self, database: Database) -> int:
        found = await database.rows(_ORPHANS, (DUE_MAX,))
        if not found:
            return 0
        # Who got a wake in between is woken once more, which costs a look.
        async with database.transaction():
            await database.run(HERE)
            return await self._wake(database, [run for (run,) in found])

    async def has_turn(self, every_ms: float) -> bool:
        """Whether nobody has done the upkeep for so long, by the server's time: then the caller has to."""
        return bool(
            await self._rows(
                f"UPDATE {SCHEMA}.upkeep SET done = clock_timestamp() "
                "WHERE done <= clock_timestamp() - %s * interval '1 millisecond' RETURNING done",
                (every_ms,),
            )
        )

    async def park(self, run: str, share: str, why: str, wait_ms: float) -> None:
        """Leave a run until there is room in a share; at the latest it is looked at again after `wait_ms`.

        It keeps its age if it waited before, for that share or another one that it comes under.
        """
        await self._rows(
            f"UPDATE {SCHEMA}.queued_runs SET due = clock_timestamp() + %s * interval '1 millisecond', "
            "since = coalesce(since, clock_timestamp()), share = %s, why = %s, "
            "worker = NULL, taken = NULL WHERE run = %s RETURNING run",
            (wait_ms, share, why, run),
        )

    async def parked(self) -> list[str]:
        """The shares for which runs wait."""
        found = await self._rows(
            f"SELECT DISTINCT share FROM {SCHEMA}.queued_runs WHERE share IS NOT NULL AND {_PARKED}", ()
        )
        return sorted(str(share) for (share,) in found)

    async def unpark(self, share: str, room: Callable[[Database], Awaitable[int]]) -> int:
        """Wake those that wait for a share, as many as there is room for, in order; how many.

        Their places are kept for `PLACE_MS`: until then they are woken again, and nobody younger gets in.
        """
        job = partial(self._unpark, share=share, room=room)
        return await self.store.connections.run(job, again=job)

    async def _unpark(
        self, database: Database, share: str, room: Callable[[Database], Awaitable[int]]
    ) -> int:
        waits = f"FROM {SCHEMA}.queued_runs WHERE share = %s AND {_PARKED}"
        if not await database.rows(f"SELECT 1 {waits} LIMIT 1", (share,)):
            return 0
        free = await room(database)
        if free <= 0:
            return 0
        async with database.transaction():
            await database.run(HERE)
            woken = await database.rows(
                "UPDATE queued_runs SET due = least(due, clock_timestamp() + %s * interval '1 millisecond') "
                f"WHERE run IN (SELECT run {waits} "
                "ORDER BY priority DESC, since LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING run",
                (PLACE_MS, share, free),
            )
            return await self._wake(database, [run for (run,) in woken], ahead=1)

    async def take(self, run: str, worker: str) -> Wake | None:
        """Note that a worker takes the run; None when it is no queued run (any more)."""
        found = await self._rows(_TAKE, (worker, run))
        if not found:
            return None
        ((tries, priority, since, agent, tags),) = found
        return Wake(run, tries, agent, tuple(tags), priority, since)

    async def put_off(self, run: str, wait_ms: float, why: str, *, failed: bool = True) -> None:
        """Wake the run again after a while, by the server's time, and earlier if it was due earlier.

        With `failed` it is counted among the tries; `why` is one sentence for people.
        """
        await self._rows(
            f"UPDATE {SCHEMA}.queued_runs SET due = least(coalesce(due, 'infinity'), "
            "clock_timestamp() + %s * interval '1 millisecond'), tries = tries + %s, why = %s, "
            "worker = NULL, taken = NULL, share = NULL, since = NULL WHERE run = %s RETURNING run",
            (wait_ms, int(failed), why, run),
        )

    async def settle(self, run: str) -> None:
        """Note that the run rests: nothing is to be done for it until somebody writes to it."""
        await self._rows(
            f"UPDATE {SCHEMA}.queued_runs SET tries = 0, why = '', worker = NULL, taken = NULL, "
            "share = NULL, since = NULL WHERE run = %s RETURNING run",
            (run,),
        )

    async def _rows(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        async def job(database: Database) -> list[tuple[Any, ...]]:
            return await database.rows(statement, values)

        return await self.store.connections.run(job, again=job)


_PARKED = "due IS NOT NULL AND worker IS NULL"
"""Of a run under a share: nobody has woken it, and no worker took it in for a message."""

_TAKE = f"""
UPDATE {SCHEMA}.queued_runs SET worker = %s, taken = clock_timestamp() WHERE run = %s
RETURNING tries, priority, since,
    coalesce((
        SELECT agent FROM shiftbook.runs JOIN shiftbook.leases USING (number)
        WHERE leases.run = queued_runs.run
    ), ''),
    ARRAY(
        SELECT tag FROM shiftbook.tags JOIN shiftbook.leases ON leases.number = tags.run
        WHERE leases.run = queued_runs.run
    )
"""

_ORPHANS = f"""
WITH alone AS NOT MATERIALIZED (
    SELECT queued.run, leases.number
    FROM {SCHEMA}.queued_runs AS queued JOIN shiftbook.leases ON leases.run = queued.run
    WHERE queued.due IS NULL
        AND (leases.host IS NULL OR leases.until_ms <= shiftbook.now_ms())
        AND NOT EXISTS (
            SELECT 1 FROM {SCHEMA}.procrastinate_jobs AS job
            WHERE job.queueing_lock = queued.run AND job.status = 'todo'
        )
        AND NOT EXISTS (
            SELECT 1 FROM {SCHEMA}.procrastinate_jobs AS job
            WHERE job.lock = queued.run AND job.status = 'doing'
        )
)
SELECT alone.run FROM alone JOIN shiftbook.runs ON runs.number = alone.number WHERE runs.state = 'running'
UNION
SELECT alone.run FROM alone JOIN shiftbook.inbox ON inbox.run = alone.number WHERE inbox.moved_to IS NULL
LIMIT %s
"""


def check_packages() -> None:
    """Raise `StoreUnusable` where a package is missing that a queue is made with."""
    for name in ("psycopg", "psycopg_pool", "procrastinate"):
        try:
            import_module(name)
        except ImportError as missing:
            raise StoreUnusable(
                f"A queue of runs needs the package {name}, which cannot be loaded here "
                f"({str(missing).splitlines()[0]:.80}): pip install 'shiftbook[workers]'."
            ) from None


async def open_queue(store: Store, *, create: bool = False) -> Queue | None:
    """The queue beside a journal on PostgreSQL; None when there is none and `create` is not given.

    Raises `BadInput` for a journal that cannot have one, `StoreUnusable` where a package is missing.
    """
    if not isinstance(store, PostgresStore):
        if not create:
            return None
        raise BadInput(
            f"{store.name} is no PostgreSQL database, and only there can runs wait in a queue: give --db "
            "postgresql://HOST/DATABASE."
        )
    if not create and not await store.connections.run(layout):
        return None
    check_packages()
    await store.connections.run(make_layout, again=make_layout)
    return Queue(store, app_on(store.connections.address))
