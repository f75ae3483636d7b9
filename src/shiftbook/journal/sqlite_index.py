"""The search index in a SQLite file of its own, with FTS5 for which unit holds which term.

The file lies beside the journal's, under its name and `-search`. It may be deleted at any time; who has it
open goes on with what it had. One that is damaged or of another layout is replaced, never repaired: nothing
in it is truth. Common terms
are passed over where rarer ones are asked for too, so that a search costs what it finds and not what the run
holds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from shiftbook.errors import Damaged, StoreUnusable
from shiftbook.journal import sqlite_vectors
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
from shiftbook.journal.sqlite_errors import DRIVER_ERRORS, translated
from shiftbook.projections.recall_units import Unit, UnitWords

SUFFIX = "-search"
LAYOUT = 2
"""Another one on the disk: the file is made anew."""

APPLICATION_ID = 0x53687365
"""What marks a search index of ours: the letters "Shse"."""

MIXED_UP = (struct.error, TypeError)
"""What comes of reading values of another kind or length: SQLite hands them out from a damaged file."""

BUSY_MS = 2_000
TERMS_ASKED = 400
"""Terms that one statement asks for."""

UNIT_BITS = 32
UNIT_MAX = (1 << UNIT_BITS) - 1
_LAYOUT_FILE = Path(__file__).parent / "search.sql"
_UNIT_COLUMNS = "id, first, last, said_length, done_length, traits, novelty, said_more, done_more"


class SqliteIndex:
    """Keeps the promise `Index`. It belongs to the loop that made it."""

    def __init__(self, connection: apsw.Connection, name: str) -> None:
        self._connection = connection
        self._name = name

    async def covered(self, run: str) -> Covered:
        with self._translated():
            found = self._rows("SELECT position, mark, units FROM runs WHERE run = ?", (run,))
        return Covered(*found[0]) if found else Covered()

    async def known(self, run: str, terms: Iterable[str]) -> set[str]:
        with self._translated():
            return set(self._terms(self._number(run), sorted(terms)))

    async def add(self, run: str, units: Sequence[Unit], covered: Covered, to: Covered) -> bool:
        with self._translated(), self._transaction():
            if await self.covered(run) != covered:
                return False
            self._run("INSERT OR IGNORE INTO runs (run) VALUES (?)", (run,))
            number = self._number(run)
            ids = self._counted(number, units)
            for unit in units:
                self._write(number, unit, ids)
            sums = sums_of(units)
            self._run(
                "UPDATE runs SET position = ?, mark = ?, units = ?, said_units = said_units + ?, said_length "
                "= said_length + ?, done_units = done_units + ?, done_length = done_length + ? "
                "WHERE number = ?",
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

    async def candidates(
        self,
        run: str,
        terms: Sequence[str],
        *,
        reach: int,
        limit: int | None = None,
        alike: Alike | None = None,
    ) -> Candidates:
        with self._translated(), self._snapshot():
            number = self._number(run)
            found = self._terms(number, terms)
            kept = self._rows(
                "SELECT units, said_units, said_length, done_units, done_length FROM runs WHERE number = ?",
                (number,),
            )
            sums = Sums(*kept[0]) if kept else Sums()
            read = [(each, self._units(number, each)) for each in readings(found, sums)]
            scores = scores_of(read)
            chosen = chosen_of(scores, candidates_of(sums.units) if limit is None else limit)
            likeness: dict[int, float] = {}
            if alike is not None:
                given = (self._connection, number, *_ids(number), alike, chosen, sums.units)
                likeness = sqlite_vectors.likeness(*given)
                chosen = sorted({*chosen, *likeness})
            wanted = around(scores, chosen, most_alike(likeness), reach, sums.units)
            rows = self._rows(
                f"SELECT {_UNIT_COLUMNS} FROM units WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
                (sqlite_vectors.ids_told(number << UNIT_BITS, wanted),),
            )
            names = {term.key: name for name, term in found.items()}
            said_by, done_by = held_by(read, 0, chosen), held_by(read, 1, chosen)
            words: dict[int, UnitWords] = {}
            spans: dict[int, tuple[int, int]] = {}
            for key, first, last, *row, said_more, done_more in rows:
                unit = key & UNIT_MAX
                spans[unit] = (first, last)
                said = _counted_up(said_by.get(unit, {}), said_more, names)
                done = _counted_up(done_by.get(unit, {}), done_more, names)
                words[unit] = words_of_row(said, done, (row[0], row[1], row[2], row[3]))
            matching = tuple(unit for unit in chosen if unit in scores)
            return Candidates(statistics_of(sums, found), words, spans, matching, likeness)

    async def lacking(self, run: str, name: str, limit: int) -> Lacking:
        with self._translated(), self._snapshot():
            number = self._number(run)
            return sqlite_vectors.lacking(self._connection, number, *_ids(number), name, limit)

    async def add_vectors(self, run: str, name: str, start: int, vectors: Sequence[bytes]) -> bool:
        with self._translated(), self._transaction():
            number = self._number(run)
            low, high = _ids(number)
            next_ones = sqlite_vectors.lacking(self._connection, number, low, high, name, len(vectors))
            if next_ones.start != start or len(next_ones.spans) != len(vectors):
                return False
            sqlite_vectors.add(self._connection, number, low, high, name, vectors)
            return True

    async def drop(self, run: str | None = None) -> None:
        with self._translated(), self._transaction():
            if run is None:
                for table in ("runs", "terms", "units", "search", "vector_runs", "vectors", "signs"):
                    self._run(f"DELETE FROM {table}")
                return
            number = self._number(run)
            low, high = _ids(number)
            sqlite_vectors.forget(self._connection, number, low, high)
            self._run("DELETE FROM search WHERE rowid BETWEEN ? AND ?", (low, high))
            self._run("DELETE FROM units WHERE id BETWEEN ? AND ?", (low, high))
            self._run("DELETE FROM terms WHERE run = ?", (number,))
            self._run("DELETE FROM runs WHERE run = ?", (run,))

    async def close(self) -> None:
        self.leave()

    def leave(self) -> None:
        """Let go of the file at once."""
        self._connection.close(True)

    def _number(self, run: str) -> int:
        found = self._rows("SELECT number FROM runs WHERE run = ?", (run,))
        return int(found[0][0]) if found else 0

    def _terms(self, number: int, terms: Sequence[str]) -> dict[str, Term]:
        """Those of these terms that stand in the run, in their order."""
        found: dict[str, Term] = {}
        for start in range(0, len(terms), TERMS_ASKED):
            some = terms[start : start + TERMS_ASKED]
            marks = ", ".join("?" * len(some))
            for term, *values in self._rows(
                f"SELECT term, id, said, done FROM terms WHERE run = ? AND term IN ({marks})", (number, *some)
            ):
                found[term] = Term(*values)
        return {term: found[term] for term in terms if term in found}

    def _counted(self, number: int, units: Sequence[Unit]) -> dict[str, int]:
        """Count the units' terms in; the id of each term."""
        counts = counts_of(units)
        self._connection.executemany(
            "INSERT INTO terms (run, term, said, done) VALUES (?, ?, ?, ?) ON CONFLICT (run, term) DO UPDATE "
            "SET said = said + excluded.said, done = done + excluded.done",
            [(number, term, said, done) for term, (said, done) in counts.items()],
        )
        return {name: term.key for name, term in self._terms(number, list(counts)).items()}

    def _write(self, number: int, unit: Unit, ids: Mapping[str, int]) -> None:
        words = unit.words
        key = (number << UNIT_BITS) + unit.number
        self._run(
            f"INSERT INTO units ({_UNIT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                key,
                unit.first,
                unit.last,
                words.said_length,
                words.done_length,
                traits_of(words),
                words.novelty,
                _packed(words.said, ids),
                _packed(words.done, ids),
            ),
        )
        tokens = [f"s{ids[term]}" for term in words.said] + [f"d{ids[term]}" for term in words.done]
        self._run("INSERT INTO search (rowid, terms) VALUES (?, ?)", (key, " ".join(tokens)))

    def _units(self, number: int, reading: Reading) -> dict[int, int]:
        """The newest units that hold a term, each once; `_counted_up` knows how often."""
        token = f"{'d' if reading.side else 's'}{reading.key}"
        rows = self._rows(
            "SELECT rowid - ? FROM search WHERE search MATCH ? ORDER BY rowid DESC LIMIT ?",
            (number << UNIT_BITS, token, reading.limit),
        )
        return dict.fromkeys((unit for (unit,) in rows), 1)

    def _rows(self, statement: str, bindings: tuple[apsw.SQLiteValue, ...] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, bindings).fetchall()

    def _run(self, statement: str, bindings: tuple[apsw.SQLiteValue, ...] = ()) -> None:
        self._connection.execute(statement, bindings)

    @contextmanager
    def _transaction(self, how: str = "IMMEDIATE") -> Iterator[None]:
        self._connection.execute(f"BEGIN {how}")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """All reads of one state, whoever fills meanwhile."""
        with self._transaction("DEFERRED"):
            yield

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DRIVER_ERRORS as error:
            raise translated(error, self._name, BUSY_MS) from None
        except MIXED_UP:
            raise Damaged(f"{self._name}: a value is not of the kind that was put in.") from None


def open_index(target: str, *, anew: bool = False) -> SqliteIndex:
    """Open the index of the journal at this path, making it if need be. `:memory:` ends with its connection.

    An index of another layout is made anew; with `anew` any index of ours is. Who has the old file open goes
    on with it, apart from the new one. Raises `Damaged` for one that is to be made `anew`, and
    `StoreUnusable` when the file is none of ours, which is then left as it is, or cannot be used.
    """
    path = target if target.startswith(":memory:") else target + SUFFIX
    try:
        index = SqliteIndex(_opened(path), path)
        if not anew:
            return index
        index.leave()
        _removed(path)
    except _NotOurs:
        raise StoreUnusable(
            f"{path} is no search index of Shiftbook; move it away, the index is made anew."
        ) from None
    except _OtherLayout:
        _removed(path)
    except (apsw.CorruptError, apsw.SQLError) as error:
        if not anew:
            raise Damaged(f"{path}: the search index is damaged ({type(error).__name__}).") from None
        _removed(path)
    except DRIVER_ERRORS as error:
        raise translated(error, path, BUSY_MS) from None
    try:
        return SqliteIndex(_opened(path), path)
    except DRIVER_ERRORS as error:
        raise translated(error, path, BUSY_MS) from None


def _removed(path: str) -> None:
    for end in ("", "-wal", "-shm"):
        Path(path + end).unlink(missing_ok=True)


class _OtherLayout(Exception):
    """The file is an index of ours in another layout."""


class _NotOurs(Exception):
    """The file is no index of ours."""


def _opened(path: str) -> apsw.Connection:
    connection = apsw.Connection(":memory:" if path.startswith(":memory:") else path)
    try:
        connection.set_busy_timeout(BUSY_MS)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        made = _told(connection)
        if made[0] != APPLICATION_ID and made != (0, 0, 0):
            raise _NotOurs
        # A power cut may cost the last batches, which are filled again; never the file's soundness.
        for pragma in ("journal_mode = wal", "synchronous = normal"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        with connection:
            # Another process may have made it meanwhile.
            if _told(connection) == (0, 0, 0):
                connection.execute(_LAYOUT_FILE.read_text(encoding="utf-8")).fetchall()
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}").fetchall()
                connection.execute(f"PRAGMA user_version = {LAYOUT}").fetchall()
            elif _told(connection)[1] != LAYOUT:
                raise _OtherLayout
        connection.execute("SELECT count(*) FROM runs, search LIMIT 0").fetchall()
    except BaseException as error:
        connection.close(True)
        if isinstance(error, apsw.NotADBError):
            raise _NotOurs from None
        raise
    return connection


def _told(connection: apsw.Connection) -> tuple[int, int, int]:
    """What the file says of itself: whose it is, its layout, how many things are in it."""
    told: list[Any] = connection.execute(
        "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM "
        "pragma_user_version), (SELECT count(*) FROM sqlite_schema)"
    ).fetchall()
    application, layout, things = told[0]
    return int(application), int(layout), int(things)


def _ids(number: int) -> tuple[int, int]:
    """The ids that a run's units can have, the first and the last."""
    return number << UNIT_BITS, (number << UNIT_BITS) + UNIT_MAX


def _packed(counts: Mapping[str, int], ids: Mapping[str, int]) -> bytes:
    more = [value for term, count in counts.items() if count > 1 for value in (ids[term], count)]
    return struct.pack(f"<{len(more)}I", *more)


def _counted_up(held: dict[str, int], more: bytes, names: Mapping[int, str]) -> Mapping[str, int]:
    # Most units are only read since they stand beside one that matches, and hold nothing that was asked for.
    if more and held:
        values = struct.unpack(f"<{len(more) // 4}I", more)
        for key, count in zip(values[::2], values[1::2], strict=True):
            if key in names and names[key] in held:
                held[names[key]] = count
    return held
