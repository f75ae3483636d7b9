"""Clauses of the promise Leases: one holder at a time, by the database's time, under a growing epoch."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise

from shiftbook.clock import Holder, this_process
from shiftbook.errors import Fenced, Held, RunExists, UnknownRun
from shiftbook.journal.promises import Lease
from shiftbook.testing.ground import (
    LEASE_MS,
    Ground,
    Writer,
    elsewhere,
    require,
    require_equal,
    require_raises,
    said,
)


async def w1_one_holder_at_a_time(ground: Ground) -> None:
    """Fails a store that gives a held run away, or does not say how long to wait."""
    stores = [await ground.open() for _ in range(2)]
    writer = await ground.begin(stores[0])
    ground.clock.advance(10_000)
    for store in stores:
        error = await require_raises(Held, store.leases.take(writer.run, elsewhere("b"), LEASE_MS), "held")
        require(isinstance(error, Held) and error.wait_ms == LEASE_MS - 10_000, f"the wait told: {error}")
    seen = await stores[1].leases.look(writer.run)
    require_equal(
        (seen.holder, seen.epoch, seen.until_ms),
        (elsewhere(), writer.lease.epoch, writer.lease.until_ms),
        "the lease as another sees it",
    )


async def w1_a_lease_ends_by_the_clock(ground: Ground) -> None:
    """Fails a store that never lets go, lets go early, or uses another clock than its own."""
    store = await ground.open()
    writer = await ground.begin(store)
    ground.clock.advance(LEASE_MS - 1)
    await require_raises(Held, store.leases.take(writer.run, elsewhere("b"), LEASE_MS), "one ms early")
    ground.clock.advance(1)
    lease = await store.leases.take(writer.run, elsewhere("b"), LEASE_MS)
    require_equal(lease.until_ms, ground.clock.now_ms() + LEASE_MS, "the end of the new lease")
    await require_raises(Fenced, writer.append(said("late")), "an append of the sleeper that woke")
    await require_raises(Fenced, store.leases.renew(writer.lease, LEASE_MS), "a renewal by the sleeper")


async def w1_renewal_holds_on(ground: Ground) -> None:
    """Fails a store whose renewal does not last, changes the epoch or the holder."""
    store = await ground.open()
    writer = await ground.begin(store)
    lease = writer.lease
    for _ in range(4):
        ground.clock.advance(LEASE_MS - 1)
        lease = await store.leases.renew(lease, LEASE_MS)
        require_equal(
            lease, Lease(writer.run, writer.lease.epoch, ground.clock.now_ms() + LEASE_MS), "renewed"
        )
    await require_raises(Held, store.leases.take(writer.run, elsewhere("b"), LEASE_MS), "renewed and held")
    require_equal((await store.leases.look(writer.run)).holder, elsewhere(), "the holder after renewals")
    await writer.append(said("still mine"))


async def w1_epochs_only_grow(ground: Ground) -> None:
    """Fails a store whose epoch is reused, also after reopening, or not above what was asked for."""
    store = await ground.open()
    writer = await ground.begin(store)
    epochs = [writer.lease.epoch]
    lease = writer.lease
    for turn in range(5):
        if turn % 2:
            await store.leases.give_back(lease)
        else:
            ground.clock.advance(LEASE_MS)
        store = await ground.reopen(store)
        lease = await store.leases.take(writer.run, elsewhere(), LEASE_MS)
        epochs.append(lease.epoch)
    await store.leases.give_back(lease)
    lease = await store.leases.take(writer.run, elsewhere(), LEASE_MS, above=1000)
    epochs.append(lease.epoch)
    require(all(a < b for a, b in pairwise(epochs)), f"epochs grew as {epochs}")
    require(epochs[-1] > 1000, f"an epoch above 1000 was asked for, {epochs[-1]} given")
    fresh = await store.leases.take(ground.clock.new_run_id(), elsewhere(), LEASE_MS, new=True, above=41)
    require(fresh.epoch > 41, f"an epoch above 41 was asked for on a new run, {fresh.epoch} given")


async def w1_what_was_given_back_is_free(ground: Ground) -> None:
    """Fails a store where a run given back is still held, or a late giving back frees the successor's."""
    store = await ground.open()
    writer = await ground.begin(store)
    await store.leases.give_back(writer.lease)
    require((await store.leases.look(writer.run)).holder is None, "a holder after giving back")
    await require_raises(Fenced, store.leases.renew(writer.lease, LEASE_MS), "a heartbeat after giving back")
    lease = await store.leases.take(writer.run, elsewhere("b"), LEASE_MS)
    await store.leases.give_back(writer.lease)
    seen = await store.leases.look(writer.run)
    require_equal((seen.holder, seen.epoch), (elsewhere("b"), lease.epoch), "the successor's lease")


async def w1_a_name_taken_twice_is_two_holders(ground: Ground) -> None:
    """Fails a store that knows a holder by its name: a zombie of the same name extends its successor."""
    store = await ground.open()
    writer = await ground.begin(store)
    ground.clock.advance(LEASE_MS)
    lease = await store.leases.take(writer.run, elsewhere(), LEASE_MS)
    await require_raises(Fenced, store.leases.renew(writer.lease, 10 * LEASE_MS), "the zombie's heartbeat")
    await store.leases.give_back(writer.lease)
    await require_raises(Fenced, writer.append(said("the zombie's last word")), "the zombie's append")
    require_equal((await store.leases.look(writer.run)).until_ms, lease.until_ms, "the successor's end")
    successor = Writer(store, lease, ground.clock, writer.position, writer.head)
    await successor.append(said("mine"))


async def w1_the_dead_are_replaced_at_once(ground: Ground) -> None:
    """Fails a store that waits for a process of this host that is gone, or replaces one that lives."""
    store = await ground.open()
    here = this_process()
    gone = Holder(here.host, here.pid, "a process of this number that ended long ago")
    for holder, is_free in ((gone, True), (here, False)):
        run = ground.clock.new_run_id()
        lease = await store.leases.take(run, holder, LEASE_MS, new=True)
        await Writer(store, lease, ground.clock).append(said("one"))
        if is_free:
            await store.leases.take(run, elsewhere("b"), LEASE_MS)
        else:
            await require_raises(Held, store.leases.take(run, elsewhere("b"), LEASE_MS), "a living holder")


async def w1_new_means_new(ground: Ground) -> None:
    """Fails a store that gives a used run id out again, or loses an id to a death before the first entry."""
    store = await ground.open()
    writer = await ground.begin(store)
    await store.leases.give_back(writer.lease)
    await require_raises(
        RunExists, store.leases.take(writer.run, elsewhere(), LEASE_MS, new=True), "an id in use"
    )
    unknown = ground.clock.new_run_id()
    await require_raises(UnknownRun, store.leases.take(unknown, elsewhere(), LEASE_MS), "an unknown id")
    await require_raises(UnknownRun, store.leases.look(unknown), "a look at an unknown id")
    empty = await ground.begin(store, opened=False)
    again = store.leases.take(empty.run, elsewhere("b"), LEASE_MS, new=True)
    await require_raises(Held, again, "an id that is being opened")
    ground.clock.advance(LEASE_MS)
    await require_raises(
        UnknownRun, store.leases.take(empty.run, elsewhere("b"), LEASE_MS), "a run that has no entry yet"
    )
    lease = await store.leases.take(empty.run, elsewhere("b"), LEASE_MS, new=True)
    require(lease.epoch > empty.lease.epoch, "the epoch of an id that was opened anew")
    await require_raises(Fenced, empty.append(said("late")), "the first entry of the one before")
    await Writer(store, lease, ground.clock).append(said("clean"))


async def w1_racing_takers_win_once(ground: Ground) -> None:
    """Fails a store where two of several takers both hold a free run."""
    stores = [await ground.open() for _ in range(2)]
    writer = await ground.begin(stores[0])
    fresh = ground.clock.new_run_id()
    for run, new in ((writer.run, False), (fresh, True)):
        if not new:
            await stores[0].leases.give_back(writer.lease)
        ends = await asyncio.gather(
            *(
                stores[racer % 2].leases.take(run, elsewhere(f"racer{racer}"), LEASE_MS, new=new)
                for racer in range(8)
            ),
            return_exceptions=True,
        )
        losers = [end for end in ends if isinstance(end, BaseException)]
        require_equal(len(ends) - len(losers), 1, "takers that won")
        require(all(isinstance(end, Held) for end in losers), f"the losers were told {losers!r:.300}")


async def w1_time_is_the_databases(ground: Ground) -> None:
    """Fails a store that mixes clocks: a lease's end must be told in the time that it is measured by."""
    store = await ground.open()
    writer = await ground.begin(store)
    require_equal(writer.lease.until_ms, ground.clock.now_ms() + LEASE_MS, "the end of a lease")
    # Stamps of entries are the writer's business and move no lease.
    await replace(writer, clock=ground.clock.skewed(10 * LEASE_MS)).append(said("from the future"))
    await require_raises(Held, store.leases.take(writer.run, elsewhere("b"), LEASE_MS), "held")


CLAUSES = (
    w1_one_holder_at_a_time,
    w1_a_lease_ends_by_the_clock,
    w1_renewal_holds_on,
    w1_epochs_only_grow,
    w1_what_was_given_back_is_free,
    w1_a_name_taken_twice_is_two_holders,
    w1_the_dead_are_replaced_at_once,
    w1_new_means_new,
    w1_racing_takers_win_once,
    w1_time_is_the_databases,
)
