"""Procrastinate's way to the database: a few connections of its own, held to what ours are held to.

A connection that the server closed while it lay idle is found out before it is lent, by a look at its socket,
which costs no trip. It is replaced at once: the pool's own `check` would wait a second before it looks at the
next one, then two, then four, and a restart of the server closes all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shiftbook.errors import ShiftbookError
from shiftbook.journal.postgres_address import PostgresAddress, driver
from shiftbook.journal.postgres_connections import has_news
from shiftbook.journal.postgres_database import SETTINGS
from shiftbook.journal.postgres_errors import not_connected, translated
from shiftbook.workers.layout import SCHEMA

if TYPE_CHECKING:
    from procrastinate import App
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

POOL_MAX = 4
"""Connections that procrastinate's part of a worker keeps at the most, beside the one that listens."""

WAIT_S = 10.0
"""How long a statement of procrastinate's waits for a connection, in seconds, before its loop ends."""


def app_on(address: PostgresAddress) -> App:
    """Procrastinate's application on a database; nothing is connected yet."""
    from procrastinate import App, PsycopgConnector

    # A pool of this name tells in its log where it cannot connect, never with what password.
    return App(
        connector=PsycopgConnector(
            kwargs={**address.parameters, "application_name": "shiftbook queue"},
            configure=_configure,
            min_size=1,
            max_size=POOL_MAX,
            timeout=WAIT_S,
            name="shiftbook queue",
            pool_factory=_pool,
        )
    )


def _pool(**settings: Any) -> AsyncConnectionPool[Any]:
    from psycopg_pool import AsyncConnectionPool

    class LivePool(AsyncConnectionPool[Any]):
        """Lends no connection that the server has closed."""

        async def getconn(self, timeout: float | None = None) -> AsyncConnection[Any]:
            """A connection that can be asked. Raises `PoolTimeout`."""
            while True:
                connection: AsyncConnection[Any] = await super().getconn(timeout)
                if not (connection.closed or has_news(connection)):
                    return connection
                await connection.close()
                await self.putconn(connection)  # Closed, it is replaced.

    # Procrastinate gives a check that asks the server each time.
    return LivePool(**{**settings, "check": None})


_NO_SUCH_WORKER = "23503"
"""A job was fetched for a worker whose registration others have taken away."""

_GONE = frozenset({"", "08", "57"})
"""Classes of errors by which a connection or its server goes, and those that a client makes up by itself."""


def told(fault: BaseException, name: str) -> str:
    """A fault of the queue in one sentence, with neither a payload nor a password."""
    if isinstance(fault, ShiftbookError):
        return str(fault)
    cause = fault.__cause__ if isinstance(fault.__cause__, Exception) else fault
    code = str(getattr(cause, "sqlstate", None) or "")
    if code == _NO_SUCH_WORKER:
        return f"{name}: this worker did not beat for so long that it was taken for dead; it signs on anew"
    if not isinstance(cause, (driver().Error, OSError)):
        return f"{name}: {(str(cause).strip().splitlines() or [type(cause).__name__])[0]}"
    words = not_connected if code[:2] in _GONE else translated
    return str(words(cause, name)).rstrip(".")


async def _configure(connection: AsyncConnection[Any]) -> None:
    # Each of procrastinate's statements is whole: a worker that freezes between one and its commit would
    # keep a job locked that nobody can take then.
    await connection.set_autocommit(True)
    # Not by `options` of the address, which poolers refuse.
    await connection.execute(f"SELECT set_config('search_path', '{SCHEMA}', false), {SETTINGS}")
