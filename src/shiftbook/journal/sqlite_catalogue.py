"""The catalogue in SQLite: who runs and who rests, told a page at a time.

It is derived. A commit writes it only when it moves a run's standing; a run's last position and stamp are
read from its last row, so that ordinary turns write nothing here. A line that is damaged or not there is
derived from the run's rows as it is read, and written anew by the run's next commit that moves its standing.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast, get_args

import apsw

from shiftbook.entries import KIND_NUMBERS, State
from shiftbook.errors import Damaged, NewerFormat, RunExists, UnknownRun
from shiftbook.journal.admission import POSITION_MAX
from shiftbook.journal.promises import RunRow
from shiftbook.journal.sqlite_blobs import read_blob
from shiftbook.journal.sqlite_commits import Commits
from shiftbook.journal.sqlite_database import Database
from shiftbook.journal.sqlite_reader import Reader
from shiftbook.journal.sqlite_rows import COLUMNS, POSITION_BITS, row_of, span
from shiftbook.projections.standing import STANDING_KINDS, Standing, after

_STATES = frozenset(get_args(State))
_STANDING_NUMBERS = tuple(sorted(KIND_NUMBERS[kind] for kind in STANDING_KINDS))
_HAS_ENTRIES = (
    f"EXISTS (SELECT 1 FROM entries WHERE id BETWEEN (leases.number << {POSITION_BITS}) + 1 "
    f"AND (leases.number << {POSITION_BITS}) + {POSITION_MAX})"
)
"""Any entry will do: a run that lost its first is a run that `verify` has something to say about."""

_MATCHES_MAX = 5
"""Runs that an ambiguous prefix is told with."""


class SqliteCatalogue:
    """Keeps the promise `Catalogue`."""

    def __init__(self, reader: Reader, commits: Commits) -> None:
        self._reader = reader
        self._commits = commits

    async def runs(
        self, *, state: State | None = None, tag: str | None = None, after: str | None = None, limit: int = 50
    ) -> list[RunRow]:
        return self._reader.read(partial(read_runs, state=state, tag=tag, before=after, limit=limit))

    async def find(self, prefix: str) -> str:
        return self._reader.read(partial(find, prefix=prefix))

    async def rebuild(self) -> None:
        await self._commits.write(rebuild)


def read_runs(
    database: Database, state: State | None, tag: str | None, before: str | None, limit: int
) -> list[RunRow]:
    """A page of runs, the one opened last first; asked for no state or tag, also those that have no line."""
    wheres = [_HAS_ENTRIES]
    bindings: list[apsw.SQLiteValue] = []
    if state is not None:
        wheres.append("runs.state = ?")
        bindings.append(state)
    if tag is not None:
        wheres.append("leases.number IN (SELECT run FROM tags WHERE tag = ?)")
        bindings.append(tag)
    if before is not None:
        wheres.append("leases.number < ?")
        bindings.append(database.number(before))
    found = database.rows(
        "SELECT leases.number, leases.run, runs.agent, runs.state, runs.opened_ms FROM leases LEFT JOIN runs "
        f"USING (number) WHERE {' AND '.join(wheres)} ORDER BY leases.number DESC LIMIT ?",
        (*bindings, max(limit, 0)),
    )
    return [_run_row(database, *columns) for columns in found]


def _run_row(database: Database, number: int, run: str, *line: Any) -> RunRow:
    last = database.rows(
        "SELECT id, at_ms FROM entries WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1", span(number)
    )
    if not last or (type(run), *map(type, last[0])) != (str, int, int):
        raise Damaged(f"Run {run!r:.70} cannot be listed: its last entry is no row that Shiftbook wrote.")
    entry, changed_ms = last[0]
    if (*map(type, line),) == (str, str, int) and line[1] in _STATES:
        agent, state, opened_ms = line
        tags = _tags(database, number)
    else:
        standing = _derived(database, number, run)
        agent, state, opened_ms, tags = standing.agent, standing.state, standing.opened_ms, standing.tags
    return RunRow(run, agent, cast(State, state), tags, entry & POSITION_MAX, opened_ms, changed_ms)


def _tags(database: Database, number: int) -> tuple[str, ...]:
    return tuple(
        tag for (tag,) in database.rows("SELECT tag FROM tags WHERE run = ? ORDER BY place", (number,))
    )


def find(database: Database, prefix: str) -> str:
    """The one run whose id starts with the prefix; an id that is the prefix itself wins."""
    found = database.rows(
        f"SELECT run FROM leases WHERE run >= ? AND substr(run, 1, ?) = ? AND {_HAS_ENTRIES} "
        "ORDER BY run LIMIT ?",
        (prefix, len(prefix), prefix, _MATCHES_MAX),
    )
    runs = [str(run) for (run,) in found]
    if not runs or not prefix:
        raise UnknownRun(prefix)
    if len(runs) > 1 and prefix not in runs:
        raise RunExists(f"{prefix!r} fits several runs ({', '.join(runs)}, ..); give more of the id.")
    return runs[0]


def read_standing(database: Database, number: int) -> Standing:
    """Where a run with entries stands, from the catalogue or, if it is not listed there, from its rows."""
    found = database.rows("SELECT agent, state, opened_ms, ended FROM runs WHERE number = ?", (number,))
    if found and (*map(type, found[0]),) == (str, str, int, int) and found[0][1] in _STATES:
        agent, state, opened_ms, ended = found[0]
        return Standing(agent, state, _tags(database, number), opened_ms, bool(ended))
    ((run,),) = database.rows("SELECT run FROM leases WHERE number = ?", (number,))
    return _derived(database, number, run)


def write_standing(database: Database, number: int, standing: Standing) -> None:
    """List a run where it stands now."""
    database.run(
        "INSERT INTO runs (number, agent, state, ended, opened_ms) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (number) DO UPDATE SET agent = excluded.agent, state = excluded.state, "
        "ended = excluded.ended, opened_ms = excluded.opened_ms",
        (number, standing.agent, standing.state, int(standing.ended), standing.opened_ms),
    )
    if standing.tags != _tags(database, number):
        database.run("DELETE FROM tags WHERE run = ?", (number,))
        for place, tag in enumerate(standing.tags):
            database.run("INSERT INTO tags (run, place, tag) VALUES (?, ?, ?)", (number, place, tag))


def rebuild(database: Database) -> None:
    """List every run anew from its rows, in one transaction."""
    with database.transaction():
        database.run("DELETE FROM tags")
        database.run("DELETE FROM runs")
        for number, run in database.rows(f"SELECT number, run FROM leases WHERE {_HAS_ENTRIES}"):
            write_standing(database, number, _derived(database, number, run))


def _derived(database: Database, number: int, run: str) -> Standing:
    """A run's standing from the rows that say it, its first and its last; an unreadable row says nothing."""
    low, high = span(number)
    marks = ", ".join("?" * len(_STANDING_NUMBERS))
    found = database.rows(
        f"SELECT {COLUMNS} FROM entries WHERE id BETWEEN ? AND ? AND (kind IN ({marks}) OR id = ? OR id = "
        "(SELECT id FROM entries WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1)) ORDER BY id",
        (low, high, *_STANDING_NUMBERS, low, low, high),
    )
    standing = Standing("", "running", (), 0)
    for place, columns in enumerate(found):
        try:
            row = row_of(columns, run, columns[0] & POSITION_MAX)
            standing = after(standing if place else None, row, lambda name: read_blob(database, run, name))
        except (Damaged, NewerFormat):
            continue
    return standing
