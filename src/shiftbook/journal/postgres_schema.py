"""Bringing a PostgreSQL database up to this release's layout, once, whoever comes first.

The numbered files in `migrations/postgres/` are applied in one transaction under an advisory lock: two
programs that start at once wait for each other, and one that dies half-way leaves nothing behind.
"""

from __future__ import annotations

from pathlib import Path

from shiftbook.errors import NewerFormat, StoreUnusable
from shiftbook.journal.postgres_database import Database

SCHEMA = 3
"""Number of the newest migration; a database with a greater one is refused."""

MIGRATIONS = Path(__file__).parent / "migrations" / "postgres"

LOCK = 0x53686674
"""Number of the advisory lock, by which whoever migrates waits for another: the letters "Shft"."""


async def prepare(database: Database, *, create: bool, read_only: bool) -> None:
    """See that the layout is this release's, making it when that is wanted and missing.

    Raises `StoreUnusable` and `NewerFormat`; then nothing was changed.
    """
    name = database.address.name
    number = await schema_number(database)
    if number == SCHEMA:
        return
    if number == 0 and (read_only or not create):
        raise StoreUnusable(
            f"There is no journal in {name}; name another database with --db, or start a run first."
        )
    if read_only:
        raise StoreUnusable(f"{name} has an older layout; open it once for writing to bring it up to date.")
    async with database.transaction():
        await migrate(database)


async def migrate(database: Database) -> None:
    """Apply what is not in yet, within the transaction that the caller has begun.

    It is whole or not at all with everything else that the caller does there.
    """
    await database.rows("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
    start = await schema_number(database)
    for number, path in migrations():
        if number > start:
            await database.connection.execute(path.read_bytes())
            await database.run(
                "INSERT INTO shiftbook.migrations (number, name, applied_ms) "
                "VALUES (%s, %s, shiftbook.now_ms())",
                (number, path.stem),
            )


async def schema_number(database: Database) -> int:
    """The number of the last migration that made this database, 0 when there is none of ours."""
    # Not by to_regclass: behind an advisory lock that may still answer from before the wait for it.
    ((has_schema, has_table),) = await database.rows(
        "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'shiftbook'), EXISTS (SELECT 1 FROM "
        "pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
        "WHERE nspname = 'shiftbook' AND relname = 'migrations')"
    )
    if not has_schema:
        return 0
    name = database.address.name
    if not has_table:
        raise StoreUnusable(
            f"{name}: the schema shiftbook there belongs to another program; name another database."
        )
    ((number,),) = await database.rows("SELECT coalesce(max(number), 0) FROM shiftbook.migrations")
    if number > SCHEMA:
        raise NewerFormat(
            f"{name} was laid out by a newer Shiftbook (layout {number}; this one knows up to {SCHEMA}). "
            "Update Shiftbook to use it; nothing was changed."
        )
    return int(number)


def migrations() -> list[tuple[int, Path]]:
    """The numbered SQL files of this release, in order."""
    return sorted((int(path.name[:4]), path) for path in MIGRATIONS.glob("[0-9][0-9][0-9][0-9]_*.sql"))
