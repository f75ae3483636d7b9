"""The tables of the queue: made once, and brought up to date, by whoever comes first.

Each numbered script is applied in one transaction under an advisory lock, as the journal's migrations are. A
script only adds, so that workers of the release before go on beside it.
"""

from __future__ import annotations

from importlib import resources

from shiftbook.errors import NewerFormat
from shiftbook.journal.postgres_database import Database

SCHEMA = "shiftbook_queue"
LAYOUTS = {1: "queue.sql", 2: "queue_2.sql", 3: "queue_3.sql"}
"""What makes each layout from the one before; a queue of a greater one was made by a newer Shiftbook."""

HERE = f"SET LOCAL search_path TO {SCHEMA}"
"""Has the rest of a transaction find the queue's tables."""

_LOCK = 0x53686651
"""Number of the advisory lock under which the schema is made: the letters "ShfQ"."""


async def make_layout(database: Database) -> None:
    """Make the schema unless it is there, or bring it up to date: once, whoever else begins at that time."""
    from procrastinate.schema import SchemaManager

    if await layout(database) == max(LAYOUTS):
        return
    async with database.transaction():
        await database.rows("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        begun = await layout(database)
        await database.run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        await database.run(HERE)
        if begun == 0:
            await database.connection.execute(SchemaManager.get_schema().encode())
        for number, name in LAYOUTS.items():
            if number > begun:
                script = resources.files("shiftbook.workers").joinpath(name).read_bytes()
                await database.connection.execute(script)


async def layout(database: Database) -> int:
    """The number of the queue's layout, 0 when there is none. `NewerFormat`."""
    # Not by to_regclass: under an advisory lock that may still answer from before the wait for it.
    if not await database.rows(
        "SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
        "WHERE nspname = %s AND relname = 'layout'",
        (SCHEMA,),
    ):
        return 0
    ((number,),) = await database.rows(f"SELECT max(number) FROM {SCHEMA}.layout")
    if number > max(LAYOUTS):
        raise NewerFormat(
            f"The queue in {database.address.name} was made by a newer Shiftbook: update this one."
        )
    return int(number)
