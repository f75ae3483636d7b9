"""Stores that break the promise Entries, each in one way."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

from shiftbook.clock import Clock
from shiftbook.codec import genesis, link
from shiftbook.errors import (
    BadInput,
    Conflict,
    UnknownRun,
)
from shiftbook.journal.promises import PAGE_ROWS, Store
from shiftbook.testing.breaking import breaks, breaks_opening, changed
from shiftbook.testing.ground import OpenStore


@breaks_opening("j1_rows_come_back_as_written")
def forgets_on_reopen(open_store: OpenStore) -> OpenStore:
    """The last commit of a run was in a buffer that died with its process."""
    flushed: dict[str, int] = {}

    async def open_broken(clock: Clock) -> Store:
        store, lost = await open_store(clock), dict(flushed)

        async def append(commit: Any) -> None:
            await store.entries.append(commit)
            flushed[commit.run] = commit.expected

        async def read(run: str, after: int = 0, limit: int = PAGE_ROWS) -> Any:
            rows = await store.entries.read(run, after, limit)
            return [row for row in rows if row.position <= lost.get(run, row.position)]

        return changed(store, "entries", append=append, read=read)

    return open_broken


@breaks("j1_rows_come_back_as_written")
def sorts_keys(store: Store) -> Store:
    """A JSON column that gives objects back with their keys in another order."""

    async def read(*args: Any) -> Any:
        rows = await store.entries.read(*args)
        return [
            replace(row, payload=json.dumps(json.loads(row.payload), sort_keys=True, separators=(",", ":")))
            for row in rows
        ]

    return changed(store, "entries", read=read)


@breaks("j1_a_commit_is_whole_or_nothing", "j1_a_follower_sees_commits_whole")
def splits_a_commit(store: Store) -> Store:
    """Every row in a transaction of its own; the rest of the commit with the last."""

    async def append(commit: Any) -> None:
        head = (await store.entries.head(commit.run)).head
        for row in commit.rows[:-1]:
            head = link(head, row)
            part = replace(commit, expected=row.position - 1, rows=(replace(row, head=head),), blobs={})
            await store.entries.append(replace(part, taken={}, if_no_mail=False, snapshot=None))
            await asyncio.sleep(0)
        rest = replace(commit, expected=commit.rows[-1].position - 1, rows=commit.rows[-1:])
        last = rest.rows[0].position
        await store.entries.append(replace(rest, taken=dict.fromkeys(commit.taken, last)))

    return changed(store, "entries", append=append)


@breaks("j1_order_is_position_not_time")
def orders_by_stamp(store: Store) -> Store:
    """`ORDER BY at_ms`."""

    async def read(*args: Any) -> Any:
        return sorted(await store.entries.read(*args), key=lambda row: row.at_ms)

    return changed(store, "entries", read=read)


@breaks("j1_positions_are_gapless")
def numbers_across_runs(store: Store) -> Store:
    """One counter for all runs: a run's positions have holes where others wrote."""

    async def read(*args: Any) -> Any:
        return [replace(row, position=row.position * 2) for row in await store.entries.read(*args)]

    return changed(store, "entries", read=read)


@breaks("j1_pages_follow_each_other")
def ignores_limits(store: Store) -> Store:
    """A page is everything."""

    async def read(run: str, after: int = 0, limit: int = PAGE_ROWS) -> Any:
        return await store.entries.read(run, after, 1_000_000)

    return changed(store, "entries", read=read)


@breaks("j1_rows_that_do_not_follow_are_refused")
def takes_ill_formed_commits(store: Store) -> Store:
    """Nobody looks at what comes in."""

    async def append(commit: Any) -> None:
        try:
            await store.entries.append(commit)
        except BadInput:
            return

    return changed(store, "entries", append=append)


@breaks("j3_the_head_is_the_last_commits")
def loses_the_chain(store: Store) -> Store:
    """The head is always the run's first."""

    async def head(run: str) -> Any:
        return replace(await store.entries.head(run), head=genesis(run))

    return changed(store, "entries", head=head)


@breaks("j4_a_stale_position_is_refused")
def overwrites_a_position(store: Store) -> Store:
    """`INSERT OR REPLACE`."""
    over: dict[tuple[str, int], Any] = {}

    async def append(commit: Any) -> None:
        try:
            await store.entries.append(commit)
        except Conflict:
            over.update({(commit.run, row.position): row for row in commit.rows})

    async def read(run: str, after: int = 0, limit: int = PAGE_ROWS) -> Any:
        rows = await store.entries.read(run, after, limit)
        return [over.get((run, row.position), row) for row in rows]

    return changed(store, "entries", append=append, read=read)


@breaks("j4_a_fenced_writer_is_refused", "w1_a_lease_ends_by_the_clock")
def accepts_a_stale_epoch(store: Store) -> Store:
    """The position is checked, the lease epoch is not."""

    async def append(commit: Any) -> None:
        epoch = (await store.leases.look(commit.run)).epoch
        await store.entries.append(replace(commit, epoch=epoch))

    return changed(store, "entries", append=append)


@breaks("j4_mail_holds_a_commit_up_when_asked")
def ignores_mail(store: Store) -> Store:
    """`if_no_mail` is not looked at."""

    async def append(commit: Any) -> None:
        await store.entries.append(replace(commit, if_no_mail=False))

    return changed(store, "entries", append=append)


@breaks("j4_racing_writers_win_each_position_once")
def checks_before_it_writes(store: Store) -> Store:
    """Looks at the head first, then writes: who was told "go" is told "done"."""

    async def append(commit: Any) -> None:
        is_free = (await store.entries.head(commit.run)).position == commit.expected
        await asyncio.sleep(0)
        try:
            await store.entries.append(commit)
        except Conflict:
            if not is_free:
                raise

    return changed(store, "entries", append=append)


@breaks("j1_follow_misses_nothing")
def follows_from_now(store: Store) -> Store:
    """What came before the follower did is not told."""

    async def follow(run: str, after: int = 0) -> Any:
        start = (await store.entries.head(run)).position
        async for page in store.entries.follow(run, max(start, after)):
            yield page

    return changed(store, "entries", follow=follow)


@breaks("j4_an_unknown_run_is_told")
def invents_runs(store: Store) -> Store:
    """A run that nobody opened is an empty one."""

    async def read(*args: Any) -> Any:
        try:
            return await store.entries.read(*args)
        except UnknownRun:
            return []

    return changed(store, "entries", read=read)
