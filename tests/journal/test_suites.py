"""SQLite and PostgreSQL keep the six promises; the suites that say so fail every store that breaks one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from shiftbook.testing import stores
from shiftbook.testing.broken_stores import BROKEN
from shiftbook.testing.ground import Clause, hold
from tests.journal.places import STORES, Place, opening

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


@pytest.mark.parametrize("place", STORES)
@pytest.mark.parametrize("promise", [*CHECKS, "store"])
def test_every_store_keeps(promise: str, place: Place, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("name", BROKEN)
def test_on_postgres_too_the_suite_fails_the_store_that(name: str, tmp_path: Path) -> None:
    broken = BROKEN[name]

    async def main() -> None:
        async with opening("postgres", tmp_path) as open_store:
            for seed, clause in enumerate(broken.clauses):
                with pytest.raises(stores.Broken) as told:
                    await hold([CLAUSES[clause]], broken.wrap(open_store), seed)
                assert told.value.clause == clause

    asyncio.run(main())


def test_every_clause_fails_some_store() -> None:
    """A clause that no broken store fails may be empty."""
    assert {clause for broken in BROKEN.values() for clause in broken.clauses} == CLAUSES.keys()


def test_every_clause_says_which_store_it_fails() -> None:
    assert [name for name, clause in CLAUSES.items() if "Fails" not in (clause.__doc__ or "")] == []


@pytest.mark.parametrize("place", STORES)
@pytest.mark.parametrize(
    "clause",
    [
        "j4_a_fenced_writer_is_refused",
        "w1_a_name_taken_twice_is_two_holders",
        "w1_what_was_given_back_is_free",
    ],
)
def test_c4_a_zombie_of_the_same_name_is_fenced(clause: str, place: Place, tmp_path: Path) -> None:
    """A fresh epoch at each taking, checked inside the append's transaction; names mean nothing."""
    hold_to(clause, place, tmp_path)


@pytest.mark.parametrize("place", STORES)
@pytest.mark.parametrize("clause", ["j1_order_is_position_not_time", "j4_items_wait_in_order"])
def test_d3_clocks_that_disagree_change_no_order(clause: str, place: Place, tmp_path: Path) -> None:
    """Two holders whose clocks are two minutes apart take turns; order is position and nothing else."""
    hold_to(clause, place, tmp_path)


@pytest.mark.parametrize("place", STORES)
def test_c3_outsiders_put_in_while_a_holder_appends(place: Place, tmp_path: Path) -> None:
    hold_to("j4_outsiders_need_no_lease", place, tmp_path)


def hold_to(clause: str, place: Place, folder: Path) -> None:
    async def main() -> None:
        async with opening(place, folder) as open_store:
            await hold([CLAUSES[clause]], open_store, seed=3)

    asyncio.run(main())
