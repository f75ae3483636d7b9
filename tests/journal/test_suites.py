"""SQLite keeps the six promises; and the suites that say so fail every store that breaks one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from shiftbook.testing import stores
from shiftbook.testing.broken_stores import BROKEN
from shiftbook.testing.ground import Clause, hold
from tests.journal.places import PLACES, Place, opening

CLAUSES: dict[str, Clause] = {
    clause.__name__: clause for clauses in stores.SUITES.values() for clause in clauses
}
CHECKS = {
    "entries": stores.check_entries,
    "leases": stores.check_leases,
    "inbox": stores.check_inbox,
    "blobs": stores.check_blobs,
    "catalogue": stores.check_catalogue,
    "cache": stores.check_cache,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("promise", [*CHECKS, "store"])
def test_sqlite_keeps(promise: str, place: Place, tmp_path: Path) -> None:
    async def main() -> None:
        async with opening(place, tmp_path) as open_store:
            await {**CHECKS, "store": stores.check_store}[promise](open_store)

    asyncio.run(main())


@pytest.mark.parametrize("name", BROKEN)
def test_the_suite_fails_the_store_that(name: str, tmp_path: Path) -> None:
    """The clauses it breaks fail it by their name, and so does the suite of that promise."""
    broken = BROKEN[name]

    async def main() -> None:
        async with opening("memory", tmp_path) as open_store:
            for seed, clause in enumerate(broken.clauses):
                with pytest.raises(stores.Broken) as told:
                    await hold([CLAUSES[clause]], broken.wrap(open_store), seed)
                assert told.value.clause == clause
                assert str(told.value).startswith(f"{clause}: ")
            with pytest.raises(AssertionError):
                await stores.check_store(broken.wrap(open_store), seed=7)

    asyncio.run(main())


def test_every_clause_fails_some_store() -> None:
    """A clause that no broken store fails may be empty."""
    assert {clause for broken in BROKEN.values() for clause in broken.clauses} == CLAUSES.keys()


def test_every_clause_says_which_store_it_fails() -> None:
    assert [name for name, clause in CLAUSES.items() if "Fails" not in (clause.__doc__ or "")] == []
