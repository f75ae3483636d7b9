"""The catalogue in PostgreSQL: who runs and who rests, told a page at a time.

It is derived. A commit writes it only when it moves a run's standing; a run's last position and stamp are
read from its last row, so that ordinary turns write nothing here. A line that is not there is derived from
the run's rows as it is read, and written anew by the run's next commit that moves its standing.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast, get_args

from shiftbook.codec import payload_blob
from shiftbook.entries import KIND_NUMBERS, State
from shiftbook.errors import Damaged, NewerFormat, RunExists, UnknownRun
from shiftbook.journal.admission import RUN_ID
from shiftbook.journal.postgres_blobs import read_blob
from shiftbook.journal.postgres_connections import Connections
from shiftbook.journal.postgres_database import Database
from shiftbook.journal.postgres_rows import COLUMNS, row_of
from shiftbook.journal.promises import RunRow
from shiftbook.projections.standing import STANDING_KINDS, Standing, after

_STATES = frozenset(get_args(State))
_STANDING_NUMBERS = sorted(KIND_NUMBERS[kind] for kind in STANDING_KINDS)
_HAS_ENTRIES = "EXISTS (SELECT 1 FROM shiftbook.entries WHERE entries.run = leases.number)"
"""Any entry will do: a run that lost its first is a run that `verify` has something to say about."""

_MATCHES_MAX = 5
"""Runs that an ambiguous prefix is told with."""


class PostgresCatalogue:
    """Keeps the promise `Catalogue`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def runs(
        self, *, state: State | None = None, tag: str | None = None, after: str | None = None, limit: int = 50
    ) -> list[RunRow]:
        return await self._connections.run(
            partial(read_runs, state=state, tag=tag, before=after, limit=limit)
        )

    async def find(self, prefix: str) -> str:
        return await self._connections.run(partial(find, prefix=prefix))

    async def rebuild(self) -> None:
        await self._connections.run(rebuild, again=rebuild)


async def read_runs(
    database: Database, state: State | None, tag: str | None, before: str | None, limit: int
) -> list[RunRow]:
    """A page of runs, the one opened last first; asked for no state or tag, also those that have no line."""
    wheres = [_HAS_ENTRIES]
    bindings: list[Any] = []
    if state is not None:
        wheres.append("runs.state = %s")
        bindings.append(state)
    if tag is not None:
        wheres.append("leases.number IN (SELECT tags.run FROM shiftbook.tags WHERE tag = %s)")
        bindings.append(tag)
    if before is not None:
        wheres.append("leases.number < %s")
        bindings.append(await database.number(before))
    found = await database.rows(
        "SELECT leases.number, leases.run, last.position, last.at_ms, runs.agent, runs.state, "
        "runs.opened_ms, ARRAY(SELECT tag FROM shiftbook.tags WHERE tags.run = leases.number ORDER BY place) "
        "FROM shiftbook.leases LEFT JOIN shiftbook.runs USING (number) CROSS JOIN LATERAL ("
        "SELECT position, at_ms FROM shiftbook.entries WHERE entries.run = leases.number "
        f"ORDER BY position DESC LIMIT 1) AS last WHERE {' AND '.join(wheres)} "
        "ORDER BY leases.number DESC LIMIT %s",
        (*bindings, max(limit, 0)),
    )
    return [await _run_row(database, *columns) for columns in found]


async def _run_row(
    database: Database,
    number: int,
    run: str,
    position: int,
    changed_ms: int,
    agent: str | None,
    state: str | None,
    opened_ms: int,
    tags: list[str],
) -> RunRow:
    if agent is not None and state in _STATES:
        return RunRow(run, agent, cast(State, state), tuple(tags), position, opened_ms, changed_ms)
    standing = await _derived(database, number, run)
    return RunRow(
        run, standing.agent, standing.state, standing.tags, position, standing.opened_ms, changed_ms
    )


async def find(database: Database, prefix: str) -> str:
    """The one run whose id starts with the prefix; an id that is the prefix itself wins."""
    if not RUN_ID.fullmatch(prefix):
        raise UnknownRun(prefix)
    found = await database.rows(
        f"SELECT run FROM shiftbook.leases WHERE run >= %s AND starts_with(run, %s) AND {_HAS_ENTRIES} "
        "ORDER BY run LIMIT %s",
        (prefix, prefix, _MATCHES_MAX),
    )
    runs = [str(run) for (run,) in found]
    if not runs:
        raise UnknownRun(prefix)
    if len(runs) > 1 and prefix not in runs:
        raise RunExists(f"{prefix!r} fits several runs ({', '.join(runs)}, ..); give more of the id.")
    return runs[0]


async def read_standing(database: Database, number: int, run: str) -> Standing:
    """Where a run with entries stands, from the catalogue or, if it is not listed there, from its rows."""
    found = await database.rows(
        "SELECT agent, state, opened_ms, ended, "
        "ARRAY(SELECT tag FROM shiftbook.tags WHERE tags.run = runs.number ORDER BY place) "
        "FROM shiftbook.runs WHERE number = %s",
        (number,),
    )
    if found and found[0][1] in _STATES:
        agent, state, opened_ms, ended, tags = found[0]
        return Standing(agent, state, tuple(tags), opened_ms, ended)
    return await _derived(database, number, run)


async def write_standing(database: Database, number: int, standing: Standing) -> None:
    """List a run where it stands now, with its tags; in one statement."""
    tags = [*standing.tags]
    await database.run(
        "WITH listed AS ("
        "INSERT INTO shiftbook.runs (number, agent, state, ended, opened_ms) VALUES (%s, %s, %s, %s, %s) "
        "ON CONFLICT (number) DO UPDATE SET agent = excluded.agent, state = excluded.state, "
        "ended = excluded.ended, opened_ms = excluded.opened_ms), "
        "wanted AS (SELECT tag, place FROM unnest(%s::text[]) WITH ORDINALITY AS each (tag, place)), "
        "gone AS (DELETE FROM shiftbook.tags WHERE run = %s AND place > cardinality(%s::text[])) "
        "INSERT INTO shiftbook.tags (run, place, tag) SELECT %s, place, tag FROM wanted "
        "ON CONFLICT (run, place) DO UPDATE SET tag = excluded.tag",
        (
            *(number, standing.agent, standing.state, standing.ended, standing.opened_ms),
            *(tags, number, tags, number),
        ),
    )


async def rebuild(database: Database) -> None:
    """List every run anew from its rows, in one transaction."""
    async with database.transaction():
        # Whoever moves a standing meanwhile waits, and writes the newer one; readers read on.
        await database.run("LOCK TABLE shiftbook.runs IN SHARE ROW EXCLUSIVE MODE")
        await database.run("DELETE FROM shiftbook.tags")
        await database.run("DELETE FROM shiftbook.runs")
        for number, run in await database.rows(
            f"SELECT number, run FROM shiftbook.leases WHERE {_HAS_ENTRIES}"
        ):
            await write_standing(database, number, await _derived(database, number, run))


async def _derived(database: Database, number: int, run: str) -> Standing:
    """A run's standing from the rows that say it, its first and its last; an unreadable row says nothing."""
    found = await database.rows(
        f"SELECT {COLUMNS} FROM shiftbook.entries WHERE run = %s AND (kind = ANY (%s) OR position = 1 OR "
        "position = (SELECT max(position) FROM shiftbook.entries WHERE run = %s)) ORDER BY position",
        (number, _STANDING_NUMBERS, number),
    )
    standing = Standing("", "running", (), 0)
    for place, columns in enumerate(found):
        try:
            row = row_of(columns, run, columns[0])
            name = payload_blob(row) if row.kind in STANDING_KINDS else None
            fetched = {} if name is None else {name: await read_blob(database, run, name)}
            standing = after(standing if place else None, row, fetched.__getitem__)
        except (Damaged, NewerFormat):
            continue
    return standing
