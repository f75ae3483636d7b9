"""A connection to the book, opened so that what SQLite says it wrote is on the disk.

Every pragma is drained and read back: WAL, synchronous FULL, foreign keys. The layout comes from the
numbered files in `migrations/`, each applied once under a write lock; their number is the database's
`user_version`, and its `application_id` says that it is ours. A database of another program or of a newer
Shiftbook is refused and left byte for byte as it was. Nothing that a crafted file brings along is run: no
triggers, no functions in its schema, no extensions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from shiftbook.clock import Clock
from shiftbook.errors import NewerFormat, StoreUnusable, UnknownRun
from shiftbook.journal.sqlite_errors import DRIVER_ERRORS, translated
from shiftbook.projections.standing import Standing

APPLICATION_ID = 0x53686674
"""What marks a database as ours: the letters "Shft"."""

SCHEMA = 1
"""Number of the newest migration; a database with a greater one is refused."""

MIGRATIONS = Path(__file__).parent / "migrations"

BUSY_MS = 10_000
"""How long a statement waits for another process's lock before it is refused."""

BUSY_PAUSE_MS = 20
"""Pause between attempts where SQLite's own waiting does not reach: the switch to WAL."""

PAGE_BYTES = 8192
"""Page size: the smallest at which rows with results of about 1 kB pack well (shared measurements: 2,058
bytes a turn with 4 kB pages, 1,697 with 8 kB)."""

VALUE_BYTES_MAX = 256 * 1024 * 1024
"""The largest value that is read or written; a crafted larger one is refused before it takes the memory."""

KNOWN_MAX = 4096
"""Runs about which a connection remembers something before it forgets them all."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a SQLite database is: its name towards people and what SQLite opens."""

    name: str
    target: str
    in_memory: bool = False


class Database:
    """One connection, and what was learnt through it: run numbers and standings.

    What was learnt inside a transaction that did not come to be is forgotten. Jobs are plain functions of a
    database; `transaction` joins the one that is open, so that a job is the same alone and in a group.
    """

    __slots__ = ("_numbers", "_opened", "address", "busy_ms", "clock", "connection", "joined", "standings")

    def __init__(self, connection: apsw.Connection, address: Address, clock: Clock, busy_ms: int) -> None:
        self.connection = connection
        self.address = address
        self.clock = clock
        self.busy_ms = busy_ms
        self.joined = False
        self.standings: dict[int, tuple[int, Standing]] = {}
        """Run number -> (position, the standing there). Entries are never changed, so it stays true."""
        self._numbers: dict[str, int] = {}
        self._opened: tuple[int, int] | None = None

    def stay_here(self) -> None:
        """From now on `check_place` holds the file that the path names against the one that it names now."""
        self._opened = self._file()

    def check_place(self) -> None:
        """Raise `StoreUnusable` when the file was deleted, moved or replaced since: a commit would be lost.

        SQLite goes on in a file that no path leads to any more, without a word.
        """
        if self._opened is not None and self._file() != self._opened:
            raise StoreUnusable(
                f"{self.address.name} was deleted, moved or replaced while it was in use; nothing of this "
                "was written. Put the file and its -wal file back, or resume from where they are now."
            )

    def _file(self) -> tuple[int, int] | None:
        if self.address.in_memory:
            return None
        try:
            found = os.stat(self.address.target)  # noqa: PTH116 - in every commit; a Path costs more
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def rows(self, statement: str, bindings: tuple[apsw.SQLiteValue, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement, which is finished then and keeps no lock."""
        return self.connection.execute(statement, bindings).fetchall()

    def run(self, statement: str, bindings: tuple[apsw.SQLiteValue, ...] = ()) -> int:
        """Execute a statement without rows; returns how many rows it changed."""
        self.connection.execute(statement, bindings)
        return self.connection.changes()

    def number(self, run: str) -> int:
        """The number under which a run's rows are kept; `UnknownRun` when no lease was ever taken on it."""
        number = self._numbers.get(run)
        if number is None:
            found = self.rows("SELECT number FROM leases WHERE run = ?", (run,))
            if not found:
                raise UnknownRun(run)
            number = int(found[0][0])
            if len(self._numbers) >= KNOWN_MAX:
                self._numbers.clear()
            self._numbers[run] = number
        return number

    def learn(self, number: int, position: int, standing: Standing) -> None:
        """Remember where a run stands at a position."""
        if len(self.standings) >= KNOWN_MAX:
            self.standings.clear()
        self.standings[number] = (position, standing)

    def forget(self) -> None:
        """Forget what was learnt: it may have been read from a transaction that did not come to be."""
        self._numbers.clear()
        self.standings.clear()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, with the write lock from the start. Joins the transaction of a group."""
        if self.joined:
            yield
            return
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            self.undo()
            raise

    def undo(self) -> None:
        """Roll back, unless SQLite has done so already, and forget."""
        self.forget()
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def translated(self, error: Exception) -> Exception:
        """A driver's error in our words."""
        return translated(error, self.address.name, self.busy_ms)


async def open_database(
    address: Address, clock: Clock, *, create: bool = True, read_only: bool = False, busy_ms: int = BUSY_MS
) -> Database:
    """Open, check, and bring up to this release's layout.

    Raises `StoreUnusable` when that cannot be done and `NewerFormat` when a newer Shiftbook made it.
    """
    if not address.in_memory:
        _check_path(address, create=create and not read_only)
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    if address.in_memory:
        flags |= apsw.SQLITE_OPEN_URI
    connection: apsw.Connection | None = None
    try:
        connection = apsw.Connection(address.target, flags=flags)
        connection.set_busy_timeout(busy_ms)
        database = Database(connection, address, clock, busy_ms)
        _harden(connection)
        connection.create_scalar_function("shiftbook_now", _now_of(clock), 0, flags=apsw.SQLITE_DIRECTONLY)
        # Until it is known to be ours, nothing may be moved, not even from the log into the file.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        number = _schema_number(database)
        if read_only:
            if number < SCHEMA:
                raise StoreUnusable(_unmade(address, number))
        else:
            await _make_durable(database, fresh=number == 0)
            _migrate(database)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        database.stay_here()
        return database
    except DRIVER_ERRORS as error:
        _let_go(connection)
        raise translated(error, address.name, busy_ms) from None
    except BaseException:
        _let_go(connection)
        raise


def _now_of(clock: Clock) -> Callable[..., int]:
    def now_ms(*_values: apsw.SQLiteValue) -> int:
        return clock.now_ms()

    return now_ms


def _let_go(connection: apsw.Connection | None) -> None:
    if connection is not None:
        connection.close(True)


def _check_path(address: Address, *, create: bool) -> None:
    path = Path(address.target)
    try:
        path.lstat()
    except OSError as fault:
        if not isinstance(fault, FileNotFoundError | NotADirectoryError):
            why = f"{address.name:.200}: cannot be looked at ({fault.strerror})"
            raise StoreUnusable(f"{why}; check the path, or name another file as the database.") from None
    except ValueError:
        raise StoreUnusable(f"{address.name!r:.200} cannot be the path of a file; name another.") from None
    if path.is_dir():
        raise StoreUnusable(f"{address.name} is a directory; name a file in it as the database.")
    if not path.parent.is_dir():
        raise StoreUnusable(
            f"The directory {path.parent} does not exist; make it, or name another file as the database."
        )
    if not create and not path.exists():
        raise StoreUnusable(
            f"There is no database {address.name}; name another with --db, or start a run first."
        )


def _harden(connection: apsw.Connection) -> None:
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0)
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)


def _schema_number(database: Database) -> int:
    """The number of the last migration that made this database, 0 when it is empty."""
    ((application, number, tables),) = database.rows(
        "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM "
        "pragma_user_version), (SELECT count(*) FROM sqlite_schema)"
    )
    name = database.address.name
    if application == 0 and number == 0 and tables == 0:
        return 0
    if application != APPLICATION_ID:
        raise StoreUnusable(f"{name} is the database of another program; name another file.")
    if number > SCHEMA:
        raise NewerFormat(
            f"{name} was laid out by a newer Shiftbook (layout {number}; this one knows up to {SCHEMA}). "
            "Update Shiftbook to use it; nothing was changed."
        )
    return int(number)


def _unmade(address: Address, number: int) -> str:
    if number == 0:
        return f"{address.name} is an empty database; name another, or start a run in it first."
    return f"{address.name} has an older layout; open it once for writing to bring it up to date."


async def _make_durable(database: Database, *, fresh: bool) -> None:
    """Set what durability hangs on, and believe only what is read back."""
    name = database.address.name
    if database.connection.readonly("main"):
        raise StoreUnusable(
            f"{name}: the file or its medium is read-only; give write permission, or name another file."
        )
    if fresh:
        _pragma(database, f"page_size = {PAGE_BYTES}")
    mode = await _switch_to_wal(database)
    if mode != ("memory" if database.address.in_memory else "wal"):
        raise StoreUnusable(
            f"{name}: this file system refuses SQLite's write-ahead log (journal mode {mode}); put the "
            "database on a local disk."
        )
    for setting, wanted in (("synchronous", 2), ("foreign_keys", 1), ("fullfsync", 1)):
        _pragma(database, f"{setting} = {wanted}")
        got = _pragma(database, setting)
        if got != wanted:
            raise StoreUnusable(
                f"{name}: SQLite answers {setting} = {got} instead of {wanted}; use another build."
            )


async def _switch_to_wal(database: Database) -> str:
    # Two processes that make one new file meet here, and SQLite answers "busy" without waiting.
    attempts = max(1, database.busy_ms // BUSY_PAUSE_MS)
    for attempt in range(1, attempts + 1):
        try:
            return str(_pragma(database, "journal_mode = wal"))
        except (apsw.BusyError, apsw.LockedError):
            if attempt == attempts:
                raise
        await database.clock.sleep_ms(BUSY_PAUSE_MS)
    return ""


def _pragma(database: Database, setting: str) -> Any:
    rows = database.rows(f"PRAGMA {setting}")
    return rows[0][0] if rows else None


def _migrate(database: Database) -> None:
    """Apply the migrations that are not in yet; whoever comes second finds them done."""
    if _schema_number(database) == SCHEMA:
        return
    with database.transaction():
        start = _schema_number(database)
        for number, path in migrations():
            if number <= start:
                continue
            for _row in database.connection.execute(path.read_text(encoding="utf-8")):
                pass
            database.run(
                "INSERT INTO migrations (number, name, applied_ms) VALUES (?, ?, shiftbook_now())",
                (number, path.stem),
            )
        _pragma(database, f"application_id = {APPLICATION_ID}")
        _pragma(database, f"user_version = {SCHEMA}")


def migrations() -> list[tuple[int, Path]]:
    """The numbered SQL files of this release, in order."""
    return sorted((int(path.name[:4]), path) for path in MIGRATIONS.glob("[0-9][0-9][0-9][0-9]_*.sql"))
