"""A connection to the book on PostgreSQL, and what a store learnt about its runs.

Each connection is held to what durability and a shared server need: time-outs for statements, locks and
idle transactions, commits that are on the disk when they return, UTF-8, a server that is new enough.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from shiftbook.clock import Clock, SystemClock
from shiftbook.errors import StoreUnusable, UnknownRun
from shiftbook.journal.admission import RUN_ID
from shiftbook.journal.postgres_address import PostgresAddress, driver
from shiftbook.projections.standing import Standing

if TYPE_CHECKING:
    from psycopg import AsyncConnection

SERVER_MIN = 14
"""The oldest PostgreSQL that is known to have what the book needs and is still kept up by its authors."""

STATEMENT_MS = 60_000
LOCK_MS = 10_000
IDLE_MS = 15_000
"""How long a statement may take, wait for a lock, or an open transaction may stand idle, in milliseconds.

The last bounds how long a holder that froze in the middle of one keeps its run's row from its successor.
"""

POOLER_LOOKS = 3
"""How often it is looked whether a pooler shares sessions: others may have taken the session in between."""

KNOWN_MAX = 4096
"""Runs about which a store remembers something before it forgets them all."""

SETTINGS = f"""
    set_config('default_transaction_isolation', 'read committed', false),
    CASE current_setting('synchronous_commit')
        WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END,
    set_config('statement_timeout', '{STATEMENT_MS}', false),
    set_config('lock_timeout', '{LOCK_MS}', false),
    set_config('idle_in_transaction_session_timeout', '{IDLE_MS}', false),
    set_config('idle_session_timeout', '0', false),
    CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL
        THEN set_config('transaction_timeout', '0', false) END
"""
"""For a SELECT: ours in place of what the server's owner has set for everybody. Whoever waited for a lock has
to see what was committed before. A session that listens is idle for hours, and `transaction_timeout` (of
PostgreSQL 17 and newer) ends a connection in its commit."""

_HELLO = f"""
SELECT {SETTINGS},
    set_config('default_transaction_read_only', %s, false),
    current_setting('server_encoding'),
    pg_backend_pid(),
    pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'
"""


class Known:
    """What a store learnt: run numbers, and standings as (position, the standing there).

    Neither ever changes, so what was learnt of a commit that came to be stays true.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.standings: dict[int, tuple[int, Standing]] = {}
        self.has_own_sessions = False
        """Whether a pooler in between was looked at, and gives each connection a session of its own."""

    def learn_number(self, run: str, number: int) -> None:
        """Remember a run's number."""
        if len(self.numbers) >= KNOWN_MAX:
            self.numbers.clear()
        self.numbers[run] = number

    def learn(self, number: int, position: int, standing: Standing) -> None:
        """Remember where a run stands at a position."""
        if len(self.standings) >= KNOWN_MAX:
            self.standings.clear()
        self.standings[number] = (position, standing)

    def forget(self) -> None:
        """Forget what was learnt: another server may answer now, which lacks what the last one had."""
        self.numbers.clear()
        self.standings.clear()


class Database:
    """One connection, in the hands of one job at a time."""

    __slots__ = ("address", "clock", "connection", "known", "uncertain")

    def __init__(
        self, connection: AsyncConnection[Any], address: PostgresAddress, clock: Clock, known: Known
    ) -> None:
        self.connection = connection
        self.address = address
        self.clock = clock
        self.known = known
        self.uncertain = False
        """Whether something is under way of which, if the connection dies, nobody can tell the outcome."""

    @property
    def is_alive(self) -> bool:
        """Whether the connection can serve another job."""
        return not self.connection.closed and int(self.connection.info.transaction_status) == 0

    async def rows(
        self, statement: str, bindings: tuple[Any, ...] | dict[str, Any] = ()
    ) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        cursor = await self.connection.execute(statement, bindings or None)
        return await cursor.fetchall()

    async def run(self, statement: str, bindings: tuple[Any, ...] = ()) -> int:
        """Execute a statement without rows; returns how many rows it changed."""
        return (await self.connection.execute(statement, bindings or None)).rowcount

    async def number(self, run: str) -> int:
        """The number under which a run's rows are kept; `UnknownRun` when no lease was ever taken on it."""
        number = self.known.numbers.get(run)
        if number is None:
            found: list[tuple[Any, ...]] = []
            if RUN_ID.fullmatch(run):
                found = await self.rows("SELECT number FROM shiftbook.leases WHERE run = %s", (run,))
            if not found:
                raise UnknownRun(run)
            number = int(found[0][0])
            self.known.learn_number(run, number)
        return number

    def time_ms(self, told_ms: int) -> int:
        """The database's time: the server's as it was told (`shiftbook.now_ms()`), in a test the test's."""
        return int(told_ms) if isinstance(self.clock, SystemClock) else self.clock.now_ms()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """All or nothing, durable when it ends."""
        await self.connection.execute("BEGIN")
        try:
            yield
        except BaseException:
            with suppress(driver().Error):
                if not self.connection.closed:
                    await self.connection.execute("ROLLBACK")
            raise
        self.uncertain = True
        await self.connection.execute("COMMIT")
        self.uncertain = False

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[None]:
        """All reads of one state of the database, whoever writes meanwhile."""
        await self.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            yield
        finally:
            with suppress(driver().Error):
                if not self.connection.closed:
                    await self.connection.execute("ROLLBACK")


async def connect(address: PostgresAddress, clock: Clock, known: Known, *, read_only: bool) -> Database:
    """A connection that is fit for the book. Raises the driver's errors, and `StoreUnusable`."""
    psycopg = driver()
    connection = await psycopg.AsyncConnection.connect(**address.parameters, autocommit=True)
    try:
        version = connection.info.server_version
        if version < SERVER_MIN * 10_000:
            raise StoreUnusable(
                f"{address.name}: the server is PostgreSQL {version // 10_000}; Shiftbook needs {SERVER_MIN} "
                "or newer."
            )
        database = Database(connection, address, clock, known)
        ((*_set, encoding, session, is_read_only),) = await database.rows(
            _HELLO, ("on" if read_only else "off",)
        )
        if session != connection.info.backend_pid and not known.has_own_sessions:
            await _check_own_session(address, session)
            known.has_own_sessions = True
        if encoding != "UTF8":
            raise StoreUnusable(
                f"{address.name}: the database keeps its texts as {encoding}; create one with encoding UTF8."
            )
        if is_read_only and not read_only:
            raise StoreUnusable(
                f"{address.name}: the database is read-only (a replica, or set so); name the primary. "
                "Reading verbs work here."
            )
        return database
    except BaseException:
        await connection.close()
        raise


async def _check_own_session(address: PostgresAddress, session: int) -> None:
    """Refuse a pooler that gave `session` to one connection and gives it to another as well.

    There is a pooler if a connection is told another session's number than the server's: pgbouncer is one
    that does so. In its transaction mode a second connection gets the session that the first one left.
    """
    async with await driver().AsyncConnection.connect(**address.parameters, autocommit=True) as second:
        for _ in range(POOLER_LOOKS):
            ((other,),) = await (await second.execute("SELECT pg_backend_pid()")).fetchall()
            if other == session:
                raise StoreUnusable(
                    f"{address.name}: a pooler there gives one session of the server to several connections "
                    "(the transaction mode of pgbouncer), but Shiftbook's sessions carry settings, locks and "
                    "LISTEN; name the server itself, or a pool in session mode."
                )
