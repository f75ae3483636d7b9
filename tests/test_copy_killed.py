"""A copy that is killed for good, by the system: no half of a run is left, and it is begun again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest

from shiftbook import open_store
from shiftbook.clock import SystemClock, this_process
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.ground import LEASE_MS, Writer, said
from shiftbook.transfer import runs_of
from shiftbook.verify import verify
from tests import records
from tests.cli.program import run as program
from tests.cli.program import running
from tests.exports import RUN, lines_of
from tests.journal.places import fresh_database

HOLD = """
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_xact_lock(77); RETURN NEW; END $$
"""
POINTS = {
    "in its commit": "BEFORE INSERT ON shiftbook.entries FOR EACH ROW WHEN (NEW.position = 20)",
    "as it lets go": "BEFORE UPDATE ON shiftbook.leases FOR EACH ROW "
    "WHEN (NEW.host IS NULL AND OLD.host IS NOT NULL)",
}


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_copy_that_is_really_killed_leaves_no_half_of_a_run_and_goes_on_when_it_is_begun_again(
    point: str, tmp_path: Path
) -> None:
    async def fill() -> list[str]:
        clock, store = SystemClock(), await open_store(str(tmp_path / "book.db"))
        await records.warehouse(store, SimulatedClock(7))
        for run in ("before", "later"):
            lease = await store.leases.take(run, this_process(), LEASE_MS, new=True)
            await Writer(store, lease, clock).append(said("one"), said("two"))
            await store.leases.give_back(lease)
        runs = await runs_of(store)
        await store.close()
        return runs

    async def texts(address: str, runs: list[str]) -> dict[str, list[str]]:
        store = await open_store(address)
        found = {row.run for row in await store.catalogue.runs()}
        # All but the first line, which tells the lease epoch, and the last, which is a checksum of them all.
        told = {run: (await lines_of(store, run))[1:-1] for run in runs if run in found}
        assert RUN not in told or (await verify(store, RUN)).ok
        await store.close()
        return told

    runs = asyncio.run(fill())
    source = asyncio.run(texts(str(tmp_path / "book.db"), runs))
    with fresh_database() as address, psycopg.connect(address, autocommit=True) as holder:
        words = ("copy", "--from", "book.db", "--to", address)
        assert program(tmp_path, *words, "before").code == 0
        holder.execute(HOLD)
        holder.execute(f"CREATE TRIGGER hold {POINTS[point]} EXECUTE FUNCTION hold()")
        holder.execute("SELECT pg_advisory_lock(77)")
        with running(tmp_path, *words, RUN, "later") as process:
            while holder.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() == (0,):
                assert process.poll() is None, process.communicate()
            process.kill()
            process.wait()
        holder.execute("DROP TRIGGER hold ON " + POINTS[point].split()[3])
        holder.execute("SELECT pg_advisory_unlock(77)")
        there = asyncio.run(texts(address, runs))
        assert there == {run: source[run] for run in there}, "a run is there whole, or not at all"
        assert "later" not in there
        again = program(tmp_path, *words)
        assert again.code == 0, again.err
        assert asyncio.run(texts(address, runs)) == source
