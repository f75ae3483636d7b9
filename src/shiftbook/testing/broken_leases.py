"""Stores that break the promise Leases, each in one way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

from shiftbook.clock import Clock
from shiftbook.errors import (
    Fenced,
    Held,
    RunExists,
    UnknownRun,
)
from shiftbook.journal.promises import Lease, Store
from shiftbook.testing.breaking import breaks, breaks_opening, changed
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.ground import OpenStore


@breaks("w1_one_holder_at_a_time")
def gives_held_runs_away(store: Store) -> Store:
    """Whoever asks, gets."""

    async def take(run: str, holder: Any, lease_ms: int, **rest: Any) -> Any:
        try:
            return await store.leases.take(run, holder, lease_ms, **rest)
        except Held:
            return Lease(run, (await store.leases.look(run)).epoch + 1, 0)

    return changed(store, "leases", take=take)


@breaks("w1_a_lease_ends_by_the_clock", "w1_the_dead_are_replaced_at_once")
def never_lets_go(store: Store) -> Store:
    """A lock, not a lease."""

    async def take(run: str, holder: Any, lease_ms: int, **rest: Any) -> Any:
        try:
            seen = await store.leases.look(run)
        except UnknownRun:
            seen = None
        if seen is not None and seen.holder is not None:
            raise Held(run, str(seen.holder), lease_ms)
        return await store.leases.take(run, holder, lease_ms, **rest)

    return changed(store, "leases", take=take)


@breaks("w1_the_dead_are_replaced_at_once")
def asks_nobody_whether_they_live(store: Store) -> Store:
    """Every holder is waited for."""

    async def take(run: str, holder: Any, lease_ms: int, **rest: Any) -> Any:
        return await store.leases.take(run, replace(holder, host=f"not-{holder.host}"), lease_ms, **rest)

    return changed(store, "leases", take=take)


@breaks("w1_epochs_only_grow")
def keeps_the_epoch(store: Store) -> Store:
    """The same number for each holder."""

    async def take(run: str, holder: Any, lease_ms: int, **rest: Any) -> Any:
        return replace(await store.leases.take(run, holder, lease_ms, **rest), epoch=1)

    return changed(store, "leases", take=take)


@breaks("w1_renewal_holds_on")
def forgets_renewals(store: Store) -> Store:
    """A heartbeat that is acknowledged and not written."""

    async def renew(lease: Any, lease_ms: int) -> Any:
        return replace(lease, until_ms=lease.until_ms + lease_ms - 1)

    return changed(store, "leases", renew=renew)


@breaks("w1_a_name_taken_twice_is_two_holders")
def knows_holders_by_name(store: Store) -> Store:
    """A zombie's heartbeat extends the lease of the successor of the same name."""

    async def renew(lease: Any, lease_ms: int) -> Any:
        try:
            return await store.leases.renew(lease, lease_ms)
        except Fenced:
            now = await store.leases.look(lease.run)
            return await store.leases.renew(Lease(lease.run, now.epoch, 0), lease_ms)

    return changed(store, "leases", renew=renew)


@breaks("w1_what_was_given_back_is_free")
def gives_back_what_is_not_its_own(store: Store) -> Store:
    """A late giving back frees the successor's run."""

    async def give_back(lease: Any) -> None:
        seen = await store.leases.look(lease.run)
        await store.leases.give_back(replace(lease, epoch=seen.epoch))

    return changed(store, "leases", give_back=give_back)


@breaks("w1_new_means_new")
def opens_a_run_twice(store: Store) -> Store:
    """A used id is handed out again, with the old run under it."""

    async def take(run: str, holder: Any, lease_ms: int, **rest: Any) -> Any:
        try:
            return await store.leases.take(run, holder, lease_ms, **rest)
        except RunExists:
            return await store.leases.take(run, holder, lease_ms, **{**rest, "new": False})

    return changed(store, "leases", take=take)


@breaks("w1_racing_takers_win_once")
def looks_before_it_takes(store: Store) -> Store:
    """Who saw the run free is told that it is theirs."""

    async def take(run: str, holder: Any, lease_ms: int, **rest: Any) -> Any:
        try:
            is_free = (await store.leases.look(run)).holder is None
        except UnknownRun:
            is_free = True
        await asyncio.sleep(0)
        try:
            return await store.leases.take(run, holder, lease_ms, **rest)
        except Held:
            if not is_free:
                raise
            return Lease(run, (await store.leases.look(run)).epoch, 0)

    return changed(store, "leases", take=take)


@breaks_opening("w1_time_is_the_databases")
def keeps_another_time(open_store: OpenStore) -> OpenStore:
    """Leases run by a clock that is a minute off the one it was given."""

    async def open_broken(clock: Clock) -> Store:
        return await open_store(cast(SimulatedClock, clock).skewed(60_000))

    return open_broken
