"""The list of workers that `shiftbook workers` tells: each signs on, is seen at each beat, and signs off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shiftbook.journal.postgres import PostgresStore
from shiftbook.journal.postgres_database import Database
from shiftbook.workers.layout import SCHEMA


async def sign_on(
    store: PostgresStore,
    name: str,
    host: str,
    pid: int,
    concurrency: int,
    agents: Sequence[str],
    *,
    began: bool,
) -> None:
    """Note that a worker is there, once (`began`) and then at every beat. Those not seen for a day go.

    A container that starts again has the host and the process id of the one before: its row is its own.
    """
    await _run(
        store,
        f"WITH old AS (DELETE FROM {SCHEMA}.workers WHERE seen < now() - interval '1 day' "
        f"AND name <> %s) INSERT INTO {SCHEMA}.workers (name, host, pid, concurrency, agents) "
        "VALUES (%s, %s, %s, %s, %s) "
        "ON CONFLICT (name) DO UPDATE SET seen = excluded.seen, concurrency = excluded.concurrency, "
        "agents = excluded.agents, began = CASE WHEN %s THEN excluded.began ELSE workers.began END",
        (name, name, host, pid, concurrency, list(agents), began),
    )


async def sign_off(store: PostgresStore, name: str) -> None:
    """Note that a worker has ended."""
    await _run(store, f"DELETE FROM {SCHEMA}.workers WHERE name = %s", (name,))


async def _run(store: PostgresStore, statement: str, values: tuple[Any, ...]) -> None:
    async def job(database: Database) -> int:
        return await database.run(statement, values)

    await store.connections.run(job, again=job)
