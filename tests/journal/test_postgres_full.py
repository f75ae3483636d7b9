"""A disk that is really full under the server: said in a sentence, nothing lost, work goes on with room."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shiftbook.clock import SystemClock
from shiftbook.entries import ActionFinished, ActionStarted
from shiftbook.errors import StoreError
from shiftbook.journal.postgres import PostgresStore, open_postgres
from shiftbook.providers.scripted import Scripted, call, say
from shiftbook.run.agent import Agent
from shiftbook.run.book import read_entries
from shiftbook.run.loop import resume, start
from shiftbook.tools.function import tool
from shiftbook.verify import verify
from tests import postgres

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
