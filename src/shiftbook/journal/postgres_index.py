"""The search index in PostgreSQL: tables beside the journal's, asked over the store's own connections.

The same candidates as from SQLite's file: what a search reads and how it chooses is `index_search`, and here
rows are only written and looked up. A batch is one transaction, which locks the run's row in the index and
nothing of the journal: an append neither waits for it nor makes it wait. Every write may be repeated, since
`add` is told what it is to find; so a connection that dies costs time only.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from shiftbook.errors import Damaged
from shiftbook.journal import postgres_vectors
from shiftbook.journal.index import Alike, Candidates, Covered, Lacking
from shiftbook.journal.index_search import (
    Reading,
    Sums,
    Term,
    around,
    candidates_of,
    chosen_of,
    counts_of,
    held_by,
    readings,
    scores_of,
    statistics_of,
    sums_of,
    traits_of,
    words_of_row,
)
from shiftbook.journal.index_vectors import most_alike
from shiftbook.journal.postgres_connections import Connections
from shiftbook.journal.postgres_database import Database
from shiftbook.projections.recall_units import Unit, UnitWords

_TABLES = (*postgres_vectors.TABLES, "search_postings", "search_units", "search_terms")


class PostgresIndex:
    """Keeps the promise `Index`, over a store's connections, which stay the store's to close."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def covered(self, run: str) -> Covered:
        return await self._connections.run(partial(_covered, run=run))

    async def known(self, run: str, terms: Iterable[str]) -> set[str]:
        return await self._connections.run(partial(_known, run=run, terms=sorted(terms)))

    async def add(self, run: str, units: Sequence[Unit], covered: Covered, to: Covered) -> bool:
        job = partial(_add, run=run, units=units, covered=covered, to=to)
        # If it was written after all, the second attempt finds the index elsewhere and writes nothing.
        return await self._connections.run(job, again=job)

    async def candidates(
        self,
        run: str,
        terms: Sequence[str],
        *,
        reach: int,
        limit: int | None = None,
        alike: Alike | None = None,
    ) -> Candidates:
        job = partial(_candidates, run=run, terms=list(terms), reach=reach, limit=limit, alike=alike)
        return await self._connections.run(job)

    async def lacking(self, run: str, name: str, limit: int) -> Lacking:
        return await self._connections.run(partial(_lacking, run=run, name=name, limit=limit))

    async def add_vectors(self, run: str, name: str, start: int, vectors: Sequence[bytes]) -> bool:
        job = partial(_add_vectors, run=run, name=name, start=start, vectors=vectors)
        # As with `add`: a second attempt finds them there and writes nothing.
        return await self._connections.run(job, again=job)

    async def drop(self, run: str | None = None) -> None:
        job = _drop_all if run is None else partial(_drop, run=run)
        await self._connections.run(job, again=job)

    async def close(self) -> None:
        """Nothing of its own is open."""


async def _covered(database: Database, run: str) -> Covered:
    found = await database.rows(
        "SELECT position, mark, units FROM shiftbook.search_runs WHERE run = %s", (run,)
    )
    return Covered(*found[0]) if found else Covered()


async def _known(database: Database, run: str, terms: list[str]) -> set[str]:
    found = await database.rows(
        "SELECT term FROM shiftbook.search_terms WHERE term = ANY(%s::text[]) "
        "AND run = (SELECT number FROM shiftbook.search_runs WHERE run = %s)",
        (terms, run),
    )
    return {term for (term,) in found}


async def _add(database: Database, run: str, units: Sequence[Unit], covered: Covered, to: Covered) -> bool:
    async with database.transaction():
        await database.run(
            "INSERT INTO shiftbook.search_runs (run) VALUES (%s) ON CONFLICT (run) DO NOTHING", (run,)
        )
        # Whoever fills the same run waits here, and then finds it filled.
        found = await database.rows(
            "SELECT number, position, mark, units FROM shiftbook.search_runs WHERE run = %s FOR UPDATE",
            (run,),
        )
        if not found or Covered(*found[0][1:]) != covered:
            return False
        number = int(found[0][0])
        await _write_units(database, number, units)
        await _write_postings(database, number, units, await _counted(database, number, units))
        sums = sums_of(units)
        await database.run(
            "UPDATE shiftbook.search_runs SET position = %s, mark = %s, units = %s, "
            "said_units = said_units + %s, said_length = said_length + %s, "
            "done_units = done_units + %s, done_length = done_length + %s WHERE number = %s",
            (
                to.position,
                to.mark,
                to.units,
                sums.said_units,
                sums.said_length,
                sums.done_units,
                sums.done_length,
                number,
            ),
        )
        return True


async def _counted(database: Database, number: int, units: Sequence[Unit]) -> dict[str, Term]:
    """Count the units' terms in; each of them as it stands then."""
    counts = counts_of(units)
    rows = await database.rows(
        "INSERT INTO shiftbook.search_terms (run, term, said, done) "
        "SELECT %s, each.* FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) AS each "
        "ON CONFLICT (run, term) DO UPDATE SET said = search_terms.said + excluded.said, "
        "done = search_terms.done + excluded.done RETURNING term, key, said, done",
        (number, *_columns(((term, said, done) for term, (said, done) in counts.items()), 3)),
    )
    return {term: Term(key, said, done) for term, key, said, done in rows}


async def _write_units(database: Database, number: int, units: Sequence[Unit]) -> None:
    rows = (
        (
            unit.number,
            unit.first,
            unit.last,
            unit.words.said_length,
            unit.words.done_length,
            traits_of(unit.words),
            unit.words.novelty,
        )
        for unit in units
    )
    await database.run(
        "INSERT INTO shiftbook.search_units "
        "(run, unit, first, last, said_length, done_length, traits, novelty) "
        "SELECT %s, each.* FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], "
        "%s::smallint[], %s::double precision[]) AS each",
        (number, *_columns(rows, 7)),
    )


async def _write_postings(
    database: Database, number: int, units: Sequence[Unit], terms: Mapping[str, Term]
) -> None:
    held: dict[tuple[str, int], list[int]] = {}
    for unit in sorted(units, key=lambda each: each.number):
        for side, words in enumerate((unit.words.said, unit.words.done)):
            for term, count in words.items():
                held.setdefault((term, side), []).extend((unit.number, count))
    rows = (
        (
            terms[term].key,
            side,
            terms[term].done if side else terms[term].said,
            struct.pack(f"<{len(values)}I", *values),
        )
        for (term, side), values in held.items()
    )
    await database.run(
        "INSERT INTO shiftbook.search_postings (run, term, side, upto, units) "
        "SELECT %s, each.* FROM unnest(%s::bigint[], %s::smallint[], %s::bigint[], %s::bytea[]) AS each",
        (number, *_columns(rows, 4)),
    )


async def _lacking(database: Database, run: str, name: str, limit: int) -> Lacking:
    async with database.snapshot():
        found = await database.rows("SELECT number FROM shiftbook.search_runs WHERE run = %s", (run,))
        if not found:
            return Lacking()
        return await postgres_vectors.lacking(database, int(found[0][0]), name, limit)


async def _add_vectors(database: Database, run: str, name: str, start: int, vectors: Sequence[bytes]) -> bool:
    async with database.transaction():
        found = await database.rows(
            "SELECT number FROM shiftbook.search_runs WHERE run = %s FOR UPDATE", (run,)
        )
        if not found:
            return False
        return await postgres_vectors.add(database, int(found[0][0]), name, start, vectors)


async def _candidates(
    database: Database, run: str, terms: list[str], reach: int, limit: int | None, alike: Alike | None
) -> Candidates:
    async with database.snapshot():
        found = await database.rows(
            "SELECT number, units, said_units, said_length, done_units, done_length "
            "FROM shiftbook.search_runs WHERE run = %s",
            (run,),
        )
        number, sums = (int(found[0][0]), Sums(*found[0][1:])) if found else (0, Sums())
        stand = await _terms(database, number, terms)
        plan = readings(stand, sums)
        units_of = await _units_of(database, number, plan)
        read = [(each, units_of.get((each.key, each.side), {})) for each in plan]
        scores = scores_of(read)
        chosen = chosen_of(scores, candidates_of(sums.units) if limit is None else limit)
        likeness: dict[int, float] = {}
        if alike is not None:
            likeness = await postgres_vectors.likeness(database, number, alike, chosen, sums.units)
            chosen = sorted({*chosen, *likeness})
        rows = await database.rows(
            "SELECT unit, first, last, said_length, done_length, traits, novelty "
            "FROM shiftbook.search_units WHERE run = %s AND unit = ANY(%s::bigint[]) ORDER BY unit",
            (number, around(scores, chosen, most_alike(likeness), reach, sums.units)),
        )
    said_by, done_by = held_by(read, 0, chosen), held_by(read, 1, chosen)
    words: dict[int, UnitWords] = {}
    spans: dict[int, tuple[int, int]] = {}
    for unit, first, last, *row in rows:
        spans[unit] = (first, last)
        words[unit] = words_of_row(
            said_by.get(unit, {}), done_by.get(unit, {}), (row[0], row[1], row[2], row[3])
        )
    matching = tuple(unit for unit in chosen if unit in scores)
    return Candidates(statistics_of(sums, stand), words, spans, matching, likeness)


async def _terms(database: Database, number: int, terms: list[str]) -> dict[str, Term]:
    """Those of these terms that stand in the run, in their order."""
    rows = await database.rows(
        "SELECT term, key, said, done FROM shiftbook.search_terms WHERE run = %s AND term = ANY(%s::text[])",
        (number, terms),
    )
    found = {term: Term(key, said, done) for term, key, said, done in rows}
    return {term: found[term] for term in terms if term in found}


async def _units_of(
    database: Database, number: int, plan: Sequence[Reading]
) -> dict[tuple[int, int], dict[int, int]]:
    """Term and side -> the newest units that hold it, and how often."""
    limits = {(each.key, each.side): each.limit for each in plan}
    # Ordered, so that it is a look-up for each term whatever the server thinks of the table.
    rows = await database.rows(
        "SELECT asked.term, asked.side, held.units FROM unnest(%s::bigint[], %s::smallint[], %s::bigint[]) "
        "AS asked (term, side, beyond) CROSS JOIN LATERAL ("
        "SELECT units, upto FROM shiftbook.search_postings AS each WHERE each.run = %s "
        "AND each.term = asked.term AND each.side = asked.side AND each.upto > asked.beyond "
        "ORDER BY each.upto DESC) AS held ORDER BY asked.term, asked.side, held.upto DESC",
        (*_columns(((each.key, each.side, each.held - each.limit) for each in plan), 3), number),
    )
    found: dict[tuple[int, int], dict[int, int]] = {}
    for term, side, packed in rows:
        units = found.setdefault((term, side), {})
        if len(packed) % 8:
            raise Damaged("A row of the search index is not of the length that was put in.")
        values = struct.unpack(f"<{len(packed) // 4}I", packed)
        for unit, count in zip(values[-2::-2], values[::-2], strict=True):
            if len(units) < limits[term, side]:
                units[unit] = count
    return found


async def _drop(database: Database, run: str) -> None:
    async with database.transaction():
        found = await database.rows(
            "SELECT number FROM shiftbook.search_runs WHERE run = %s FOR UPDATE", (run,)
        )
        for (number,) in found:
            for table in _TABLES:
                await database.run(f"DELETE FROM shiftbook.{table} WHERE run = %s", (number,))
            await database.run("DELETE FROM shiftbook.search_runs WHERE number = %s", (number,))


async def _drop_all(database: Database) -> None:
    async with database.transaction():
        # Whoever fills or drops a run has begun by locking it, so this waits for their end.
        await database.run("LOCK TABLE shiftbook.search_runs IN EXCLUSIVE MODE")
        for table in (*_TABLES, "search_runs"):
            await database.run(f"DELETE FROM shiftbook.{table}")


def _columns(rows: Iterable[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """The rows' columns, to be put together again by the server."""
    columns: list[list[Any]] = [[] for _ in range(width)]
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return columns
