"""A PostgreSQL server that is starting, and several programs that come to an empty database at once."""

from __future__ import annotations

import asyncio

import pytest

from shiftbook.journal.open import open_store
from shiftbook.journal.postgres_errors import door_code, not_connected
from tests.journal.places import fresh_database

DOOR = 'connection failed: connection to server at "127.0.0.1", port 1 failed: FATAL:  '


def test_programs_that_open_an_empty_database_at_once_make_one_journal() -> None:
    async def main(address: str) -> None:
        stores = await asyncio.gather(*(open_store(address) for _ in range(6)))
        for store in stores:
            assert await store.catalogue.runs() == []
            await store.close()

    with fresh_database() as address:
        asyncio.run(main(address))


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("the database system is starting up", ""),
        ("the database system is shutting down", ""),
        ("the database system is not yet accepting connections", ""),
        ("terminating connection due to administrator command", ""),
        ('database "nothere" does not exist', "3D000"),
        ('permission denied for database "theirs"', "42501"),
        ('role "nobody" does not exist', "28000"),
        ("sorry, too many clients already", "53300"),
    ],
)
def test_only_a_refusal_that_will_not_pass_is_one(said: str, code: str) -> None:
    error = OSError(DOOR + said)
    assert door_code(error) == code
    if not code:
        assert "no such database" not in str(not_connected(error, "here"))
