"""A disk that is really full under the server: said in a sentence, nothing lost, work goes on with room."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shiftbook.clock import SystemClock
from shiftbook.entries import ActionFinished, ActionStarted
from shiftbook.errors import StoreError
from shiftbook.journal.postgres import PostgresStore, open_postgres
from shiftbook.providers.scripted import Scripted, call, say
from shiftbook.run.agent import Agent
from shiftbook.run.book import read_entries
from shiftbook.run.limits import Limits
from shiftbook.run.loop import resume, start
from shiftbook.tools.function import tool
from shiftbook.verify import verify
from tests import postgres
from tests.workers.ground import an_hour_on

NOBODY = 65534
MIB = 1 << 20
RUNS = ("one", "two", "three")
TURNS = 12


@tool(repeat="safe")
async def fill(turn: str) -> str:
    """A result that no compression makes smaller."""
    return f"{turn} {os.urandom(100_000).hex()}"


def agent() -> Agent:
    steps = [call("fill", {"turn": f"{turn}"}) for turn in range(TURNS)]
    return Agent(
        name="fills", model=Scripted([*steps, say("done")]), tools=(fill,), policy="window", cap=100_000
    )


@contextlib.contextmanager
def small_disk(size: int) -> Iterator[Path]:
    """A file system in memory of so many bytes; skipped where it cannot be mounted."""
    if os.geteuid() != 0 or postgres.why_not() is not None or os.environ.get(postgres.VARIABLE):
        pytest.skip("a small file system can only be mounted as root, and under a server of the tests' own")
    with tempfile.TemporaryDirectory(prefix="shiftbook-full") as folder:
        Path(folder).chmod(0o755)
        place = Path(folder) / "disk"
        place.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", f"size={size},uid={NOBODY},gid={NOBODY}", "tmpfs", str(place)]
        mounted = subprocess.run(words, capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
        try:
            yield place
        finally:
            subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.slow
def test_runs_on_a_full_disk_stop_with_a_sentence_lose_nothing_and_go_on_when_there_is_room() -> None:
    async def go(store: PostgresStore, run: str, *, begins: bool) -> str:
        made = start(store, agent(), "Go.", run=run) if begins else resume(store, run, agent())
        try:
            async with await made as handle:
                return (await handle.finish()).state
        except StoreError as fault:
            return str(fault)

    async def main(server: postgres.Server, disk: Path) -> None:
        server.sql(server.address, f"CREATE TABLESPACE small LOCATION '{disk}'")
        server.sql(server.address, "CREATE DATABASE full_book TABLESPACE small")
        store = await open_postgres(server.named("full_book"), SystemClock())
        filler = disk / "filler"
        with filler.open("wb") as file, contextlib.suppress(OSError):
            for _ in range(1_000):
                file.write(bytes(MIB))
                if os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize < 3 * MIB:
                    break
        told = await asyncio.gather(*(go(store, run, begins=True) for run in RUNS))
        for each in told:
            assert "the server's disk is full; nothing of this was written and nothing is lost" in each
        filler.unlink()
        for run in RUNS:
            assert (await verify(store, run)).ok, "what was confirmed is there, and no half of a commit"
        assert await asyncio.gather(*(go(store, run, begins=False) for run in RUNS)) == ["finished"] * 3
        for run in RUNS:
            assert (await verify(store, run)).ok
            whats = [entry.what for entry in await read_entries(store, run)]
            ended = [what.call for what in whats if isinstance(what, ActionFinished)]
            begun = {what.call for what in whats if isinstance(what, ActionStarted)}
            assert (len(ended), len(set(ended)), begun) == (TURNS, TURNS, set(ended))
        await store.close()

    with small_disk(40 * MIB) as disk, postgres.server("autovacuum=off") as server:
        asyncio.run(main(server, disk))


def wal_onto(server: postgres.Server, disk: Path) -> None:
    """Have a server keep its write-ahead log on that disk."""
    assert server.data is not None
    server.stop()
    subprocess.run(["mv", str(server.data / "pg_wal"), str(disk)], check=True)  # with its owner
    (server.data / "pg_wal").symlink_to(disk / "pg_wal")
    server.start()


@pytest.mark.slow
def test_a_server_that_ends_itself_since_its_write_ahead_log_has_no_room_is_a_database_that_is_away() -> None:
    """PostgreSQL panics then; with room again it comes back with what was confirmed."""

    async def main(server: postgres.Server, disk: Path) -> None:
        address, has_room = server.create(), False
        store = await open_postgres(address, SystemClock(), away_ms=0)
        filler = disk / "filler"
        with filler.open("wb") as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(MIB))
                file.flush()
        fills = replace(
            agent(),
            model=Scripted(lambda request: say("done") if has_room else call("fill", {"turn": "next"})),
            limits=Limits(turns=1_000),
        )
        with pytest.raises(StoreError) as away:
            async with await start(store, fills, "Go.", run="one") as handle:
                await handle.finish()
        assert str(away.value).startswith(store.name)
        assert len(str(away.value).splitlines()) == 1
        await store.close()
        filler.unlink()
        with contextlib.suppress(RuntimeError):  # It has ended by itself, or does so still.
            server.stop("immediate")
        server.start()
        store = await open_postgres(address, an_hour_on())  # The lease could not be given back.
        assert (await verify(store, "one")).ok, "what was confirmed is there, and no half of a commit"
        assert len(await read_entries(store, "one")) > TURNS
        has_room = True
        async with await resume(store, "one", fills) as handle:
            assert (await handle.finish()).state == "finished"
        assert (await verify(store, "one")).ok
        await store.close()

    with small_disk(40 * MIB) as disk, postgres.server("autovacuum=off", "max_wal_size=32MB") as server:
        wal_onto(server, disk)
        asyncio.run(main(server, disk))
