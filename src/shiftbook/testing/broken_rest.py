"""Stores that break the promises Inbox, Blobs, Catalogue or Cache, or do not end, each in one way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from shiftbook.clock import Clock
from shiftbook.errors import (
    BadInput,
    Conflict,
    Damaged,
    Fenced,
    Held,
    InboxWaiting,
    Refused,
    RunExists,
)
from shiftbook.journal.promises import Store
from shiftbook.testing.breaking import Changed, breaks, breaks_opening, changed
from shiftbook.testing.ground import OpenStore


@breaks("j4_items_wait_in_order")
def loses_an_item(store: Store) -> Store:
    """Every third item is acknowledged and not written."""
    count = 0

    async def put(run: str, item: Any) -> bool:
        nonlocal count
        count += 1
        return True if count % 3 == 0 else await store.inbox.put(run, item)

    return changed(store, "inbox", put=put)


@breaks("j4_an_id_comes_in_once")
def duplicates_an_item(store: Store) -> Store:
    """An item put in again is another item."""

    async def put(run: str, item: Any) -> bool:
        return await store.inbox.put(run, item) or await store.inbox.put(
            run, replace(item, id=item.id + " again")
        )

    return changed(store, "inbox", put=put)


@breaks("j4_a_moved_item_is_moved_once")
def moves_an_item_twice(store: Store) -> Store:
    """Whether an item still waits is not checked with the move."""

    async def append(commit: Any) -> None:
        try:
            await store.entries.append(commit)
        except (Conflict, Fenced, InboxWaiting):
            raise
        except Refused:
            await store.entries.append(replace(commit, taken={}))

    return changed(store, "entries", append=append)


@breaks("j4_a_move_is_part_of_its_commit")
def moves_before_it_commits(store: Store) -> Store:
    """An item leaves the inbox although the commit that takes it is refused."""
    gone: set[str] = set()

    async def append(commit: Any) -> None:
        gone.update(commit.taken)
        await store.entries.append(commit)

    async def waiting(*args: Any) -> Any:
        return [item for item in await store.inbox.waiting(*args) if item.id not in gone]

    return changed(changed(store, "inbox", waiting=waiting), "entries", append=append)


@breaks("j4_outsiders_need_no_lease")
def fences_outsiders(store: Store) -> Store:
    """Only the holder may write, so nobody can speak to a run."""

    async def put(run: str, item: Any) -> bool:
        seen = await store.leases.look(run)
        if seen.holder is not None:
            raise Held(run, str(seen.holder), 0)
        return await store.inbox.put(run, item)

    return changed(store, "inbox", put=put)


@breaks("j4_the_inbox_refuses_what_nobody_can_take")
def takes_any_mail(store: Store) -> Store:
    """Mail for nobody is accepted and lost."""

    async def put(run: str, item: Any) -> bool:
        try:
            return await store.inbox.put(run, item)
        except BadInput:
            return True

    return changed(store, "inbox", put=put)


@breaks("j3_blobs_come_back_as_written", "j3_large_payloads_are_blobs")
def cuts_blobs(store: Store) -> Store:
    """A column that holds 64 kB."""

    async def get(run: str, name: str) -> bytes:
        return (await store.blobs.get(run, name))[:65_535]

    return changed(store, "blobs", get=get)


@breaks_opening("j3_blobs_belong_to_one_run")
def shares_blobs(open_store: OpenStore) -> OpenStore:
    """One pool for all runs: erasing a run would leave its bytes to another."""
    pool: dict[str, bytes] = {}

    async def open_broken(clock: Clock) -> Store:
        store = await open_store(clock)

        async def append(commit: Any) -> None:
            pool.update(commit.blobs)
            await store.entries.append(commit)

        async def get(run: str, name: str) -> bytes:
            try:
                return await store.blobs.get(run, name)
            except Damaged:
                return pool[name]

        return changed(changed(store, "blobs", get=get), "entries", append=append)

    return open_broken


@breaks("j3_a_blob_is_part_of_its_commit", "j1_a_commit_is_whole_or_nothing")
def writes_blobs_first(store: Store) -> Store:
    """Blobs go to another place before the commit that names them, and stay when it is refused."""
    strays: dict[str, list[str]] = {}

    async def append(commit: Any) -> None:
        try:
            await store.entries.append(commit)
        except (Refused, BadInput):
            strays.setdefault(commit.run, []).extend(commit.blobs)
            raise

    async def names(run: str, *args: Any) -> Any:
        return sorted([*await store.blobs.names(run, *args), *strays.get(run, ())])

    return changed(changed(store, "blobs", names=names), "entries", append=append)


@breaks("j1_the_catalogue_follows_each_commit")
def serves_a_stale_catalogue(store: Store) -> Store:
    """What was asked once is answered the same for ever."""
    pages: dict[str, Any] = {}

    async def runs(**asked: Any) -> Any:
        key = repr(sorted(asked.items()))
        if key not in pages:
            pages[key] = await store.catalogue.runs(**asked)
        return pages[key]

    return changed(store, "catalogue", runs=runs)


@breaks_opening("j1_the_catalogue_can_be_rebuilt")
def rebuilds_from_nothing(open_store: OpenStore) -> OpenStore:
    """After a rebuild every run is said to be running."""
    rebuilt: list[bool] = []

    async def open_broken(clock: Clock) -> Store:
        store = await open_store(clock)

        async def rebuild() -> None:
            rebuilt.append(True)

        async def runs(**asked: Any) -> Any:
            lines = await store.catalogue.runs(**asked)
            return [replace(line, state="running") for line in lines] if rebuilt else lines

        return changed(store, "catalogue", rebuild=rebuild, runs=runs)

    return open_broken


@breaks("j1_the_catalogue_is_asked_by_state_and_tag")
def forgets_one_filter(store: Store) -> Store:
    """Asked by state and by tag, it looks at the tag."""

    async def runs(*, state: Any = None, tag: Any = None, **rest: Any) -> Any:
        return await store.catalogue.runs(tag=tag, state=None if tag else state, **rest)

    return changed(store, "catalogue", runs=runs)


@breaks("j1_a_prefix_finds_one_run")
def guesses_a_run(store: Store) -> Store:
    """Of several runs, the newest is surely meant."""

    async def find(prefix: str) -> str:
        try:
            return await store.catalogue.find(prefix)
        except RunExists:
            return (await store.catalogue.runs())[0].run

    return changed(store, "catalogue", find=find)


@breaks("j1_a_snapshot_comes_back_as_kept")
def ignores_the_version(store: Store) -> Store:
    """A snapshot is a snapshot."""

    async def load(run: str, name: str, version: int) -> Any:
        for any_version in (version, *range(9)):
            found = await store.cache.load(run, name, any_version)
            if found is not None:
                return found
        return None

    return changed(store, "cache", load=load)


@breaks("j1_a_snapshot_may_be_dropped")
def drops_nothing(store: Store) -> Store:
    """A cache that cannot be emptied."""

    async def drop(run: str | None = None) -> None:
        return

    return changed(store, "cache", drop=drop)


@breaks("j1_a_closed_store_says_so")
def goes_on_after_the_end(store: Store) -> Store:
    """Closing closes nothing."""

    async def close() -> None:
        return

    return cast(Store, Changed(store, close=close))
