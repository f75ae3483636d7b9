"""A run that is running in its journal, and in whose hands it is: on both stores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shiftbook.clock import SystemClock, this_process
from shiftbook.errors import Held
from shiftbook.journal.open import open_store
from shiftbook.providers.scripted import Scripted, say
from shiftbook.run.agent import Agent
from shiftbook.run.loop import resume, start
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.ground import LEASE_MS, Writer, elsewhere, said
from shiftbook.views import hold_of, hold_told, runs_view
from shiftbook.workers.board import queued
from tests.chaos.worker import SkewedClock
from tests.cli.program import run as program
from tests.journal.places import Place, opening
from tests.workers.ground import entered, fetched, fresh_database, queue_at, shop

BOTH: list[Place] = ["file in-loop", "postgres"]


def agent(reference: str = "shop.py:shop", instructions: str = "") -> Agent:
    return Agent(name="shop", model=Scripted([say("Hi.")]), reference=reference, instructions=instructions)


def on_store(place: Place, folder: Path, main: Callable[[Any, SimulatedClock], Any]) -> None:
    async def check() -> None:
        clock = SimulatedClock(3)
        async with opening(place, folder) as open_again:
            store = await open_again(clock)
            await main(store, clock)
            await store.close()

    asyncio.run(check())


@pytest.mark.parametrize("place", BOTH)
def test_a_running_run_is_told_with_who_has_it(place: Place, tmp_path: Path) -> None:
    async def main(store: Any, clock: SimulatedClock) -> None:
        here = this_process()
        async with await start(store, agent(), "Hi", clock=clock, run="one") as run:
            assert await hold_of(store, "one") == ("held", f"{here.host}:{here.pid}")
            (line,) = await runs_view(store)
            assert (line["state"], line["hold"], line["holder"]) == (
                "running",
                "held",
                f"{here.host}:{here.pid}",
            )
        assert await hold_of(store, "one") == ("free", None)
        lease = await store.leases.take("one", elsewhere(), LEASE_MS)
        assert (await hold_of(store, "one"))[0] == "held"
        clock.advance(LEASE_MS + 1)
        (line,) = await runs_view(store)
        assert (line["hold"], line["holder"]) == ("expired", f"{elsewhere().host}:{elsewhere().pid}")
        await store.leases.give_back(lease)
        dead = replace(here, started="1")
        await store.leases.take("one", dead, LEASE_MS)
        assert (await hold_of(store, "one"))[0] == "expired", "a process of this host that is not there"
        async with await resume(store, "one", agent(), clock=clock) as run:
            await run.finish()
        (line,) = await runs_view(store)
        assert (line["state"], line["hold"], line["holder"]) == ("finished", None, None)

    on_store(place, tmp_path, main)


@pytest.mark.parametrize("skew_ms", [60_000, -60_000])
def test_a_holder_is_told_the_same_to_everybody_however_wrong_somebodys_clock_is(skew_ms: int) -> None:
    async def main(address: str) -> None:
        odd, straight = await open_store(address, clock=SkewedClock(skew_ms)), await open_store(address)
        for run, holder, looker in (("one", odd, straight), ("two", straight, odd)):
            lease = await holder.leases.take(run, elsewhere(), LEASE_MS, new=True)
            await Writer(holder, lease, SystemClock()).append(said("Hi."))
            for store in (holder, looker):
                assert (await hold_of(store, run))[0] == "held"
                with pytest.raises(Held):
                    await store.leases.take(run, elsewhere(), LEASE_MS)
            await holder.leases.give_back(lease)
            await holder.leases.take(run, elsewhere(), 1)
            while (await hold_of(holder, run))[0] == "held":
                await SystemClock().sleep_ms(1)
            assert (await hold_of(looker, run))[0] == "expired"
            assert (await looker.leases.take(run, elsewhere(), LEASE_MS)).epoch > lease.epoch
        await odd.close()
        await straight.close()

    with fresh_database() as address:
        asyncio.run(main(address))


@pytest.mark.parametrize("place", BOTH)
def test_runs_are_listed_with_the_agent_that_they_have_now(place: Place, tmp_path: Path) -> None:
    async def main(store: Any, clock: SimulatedClock) -> None:
        async with await start(store, agent(), "Hi", clock=clock, run="one") as run:
            await run.finish()
        moved = agent("other.py:shop", "Be quick.")
        async with await resume(store, "one", moved, "Again", clock=clock) as run:
            await run.finish()
        (row,) = await store.catalogue.runs()
        (line,) = await runs_view(store)
        assert (row.agent, line["agent"]) == ("other.py:shop", "other.py:shop")
        await store.catalogue.rebuild()
        assert await store.catalogue.runs() == [row]

    on_store(place, tmp_path, main)


def test_the_program_tells_who_has_a_run(tmp_path: Path) -> None:
    async def fill() -> None:
        async with opening("file in-loop", tmp_path) as open_again:
            store = await open_again(SimulatedClock(3))
            async with await start(store, agent(), "Hi", clock=SimulatedClock(3), run="one"):
                pass
            await store.leases.take("one", replace(this_process(), started="1"), LEASE_MS)
            await store.close()

    asyncio.run(fill())
    gone = hold_told("expired", f"{this_process().host}:{this_process().pid}")
    assert gone in program(tmp_path, "runs", "--db", "book.db").out
    (row,) = program(tmp_path, "runs", "--db", "book.db", "--json").json
    assert (row["state"], row["hold"]) == ("running", "expired")
    assert (
        f"Run one is running, and {gone} has it." in program(tmp_path, "show", "one", "--db", "book.db").err
    )


def test_a_run_that_waits_for_a_worker_is_told_so(tmp_path: Path) -> None:
    with fresh_database() as address:

        async def main() -> None:
            async with queue_at(address) as queue:
                for run in ("waits", "later", "taken"):
                    await entered(queue, shop(), run)
                assert await queued(queue.store, ["waits", "nobody"]) == {"waits"}
                while fetched(address) is not None:
                    pass
                await queue.put_off("later", 3_600_000, "later")
                assert await queued(queue.store, ["waits", "later", "taken"]) == {"later"}

        asyncio.run(main())
        rows = program(tmp_path, "runs", "--db", address, "--json").json
        assert {row["run"]: row["hold"] for row in rows} == {
            "waits": "free",
            "later": "queued",
            "taken": "free",
        }
        assert "nobody (waits for a worker)" in program(tmp_path, "runs", "--db", address).out
