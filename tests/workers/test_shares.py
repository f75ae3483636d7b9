"""Limits per agent and tenant: counted where a run is claimed, over all workers, and never passed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from shiftbook.clock import this_process
from shiftbook.entries import RunRested
from shiftbook.workers import Queue
from shiftbook.workers.shares import Gate, Shares
from tests.workers.ground import (
    PATIENCE_S,
    REFERENCE,
    check,
    entered,
    queue_at,
    raw,
    shop,
    state_of,
    whats,
)
from tests.workers.test_worker import RUN, Middle, on_postgres, worker


def test_a_share_that_is_used_up_puts_a_run_off_and_frees_itself() -> None:
    async def main(address: str) -> None:
        middle = Middle()
        async with queue_at(address) as queue, queue_at(address) as second:
            for run, tags in (("one", ["tenant:a"]), ("two", ["tenant:a"]), ("three", ["tenant:b"])):
                await entered(queue, middle.agent, run, tags=tags)
            shares = Shares(per_tenant=1)
            busy = worker(queue, middle.agent, shares=shares)
            wake = asyncio.create_task(busy.wake("one"))
            await middle.reached()
            other = worker(second, middle.agent, shares=shares)
            await other.wake("two")
            assert state_of(address, "two")["why"] == "the tenant tenant:a has 1 at work, of 1 allowed"
            assert 0 < state_of(address, "two")["wait_s"] < 10
            middle.go.set()
            await other.wake("three")
            await asyncio.wait_for(wake, PATIENCE_S)
            await other.wake("two")
            assert (other.counts.full, other.counts.rested) == (1, 2)
            await busy._gate.close()
            await other._gate.close()

    on_postgres(main)


def test_a_claim_whose_connection_dies_in_the_end_leaves_no_lease_that_nobody_works_under() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as queue:
            await entered(queue, shop(), RUN)
            busy = worker(queue, shares=Shares(per_agent=1))
            claim = busy._gate.claim

            @asynccontextmanager
            async def cut(agent: str, tags: Sequence[str]) -> AsyncIterator[str | None]:
                async with claim(agent, tags) as full:
                    yield full  # Within, the lease is taken; then the server ends the connection.
                    assert busy._gate._database is not None
                    pid = busy._gate._database.connection.info.backend_pid
                    with raw(address) as connection:
                        connection.execute("SELECT pg_terminate_backend(%s, 60000)", (pid,))

            busy._gate.claim = cut  # type: ignore[method-assign]
            await busy.wake(RUN)
            assert (await queue.store.leases.look(RUN)).holder is None
            busy._gate.claim = claim  # type: ignore[method-assign]
            await busy.wake(RUN)
            await check(queue, RUN)
            assert [rest.state for rest in await whats(queue, RUN, RunRested)] == ["finished"]
            await busy._gate.close()

    on_postgres(main)


def test_two_workers_that_claim_in_the_same_moment_do_not_pass_a_limit() -> None:
    async def main(address: str) -> None:
        async with queue_at(address) as first, queue_at(address) as second:
            for run in ("one", "two"):
                await entered(first, shop(), run)
            gates = [Gate(each.store, Shares(per_agent=1)) for each in (first, second)]
            let_in: list[str] = []

            async def claim(queue: Queue, gate: Gate, run: str) -> None:
                async with gate.claim(f"{REFERENCE}?cap=9000", ()) as full:
                    if full is None:
                        await queue.store.leases.take(run, this_process(), 30_000)
                        let_in.append(run)

            await asyncio.gather(claim(first, gates[0], "one"), claim(second, gates[1], "two"))
            assert len(let_in) == 1
            for gate in gates:
                await gate.close()

    on_postgres(main)
