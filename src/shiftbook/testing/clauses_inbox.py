"""Clauses of the promise Inbox: in at the end by anybody, out into the journal once and in order."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from shiftbook.errors import BadInput, Conflict, Refused, UnknownRun
from shiftbook.journal.promises import InboxItem
from shiftbook.testing.ground import (
    Ground,
    Writer,
    message,
    require,
    require_equal,
    require_raises,
    said,
)


async def _take(writer: Writer, *ids: str) -> None:
    first = writer.position + 1
    taken = {name: first + place for place, name in enumerate(ids)}
    await writer.append(*(said("taken", name) for name in ids), taken=taken)


async def _ids(writer: Writer) -> list[str]:
    return [item.id for item in await writer.store.inbox.waiting(writer.run)]


async def j4_items_wait_in_order(ground: Ground) -> None:
    """Fails a store that loses, changes or reorders an item, also after reopening."""
    store = await ground.open()
    writer = await ground.begin(store)
    # Ids and stamps run against the order in which the items come.
    items = [InboxItem(f"m{9 - n}", "PersonSaid", 100 - n, f'{{"content":"{n}"}}') for n in range(6)]
    for item in items:
        require(await store.inbox.put(writer.run, item), "a new item was said to be known")
    store = await ground.reopen(store)
    require_equal(await store.inbox.waiting(writer.run), items, "items that wait")
    require_equal(await store.inbox.waiting(writer.run, 2), items[:2], "the first two that wait")
    require_equal(await store.inbox.items(writer.run), items, "all items")
    require_equal(await store.inbox.items(writer.run, items[1].id, 3), items[2:5], "a page of three items")


async def j4_an_id_comes_in_once(ground: Ground) -> None:
    """Fails a store that duplicates an item that is put in again, before or after it was moved."""
    store = await ground.open()
    writer = await ground.begin(store)
    await store.inbox.put(writer.run, message("m1", "first"))
    require(
        not await store.inbox.put(writer.run, message("m1", "second")), "put in twice, and told new twice"
    )
    require_equal(await store.inbox.waiting(writer.run), [message("m1", "first")], "items that wait")
    await _take(writer, "m1")
    require(not await store.inbox.put(writer.run, message("m1", "third")), "put in again after it was moved")
    require_equal(await _ids(writer), [], "items that wait after the move")
    other = await ground.begin(store)
    require(await store.inbox.put(other.run, message("m1")), "the id of an item is the run's own")


async def j4_a_moved_item_is_moved_once(ground: Ground) -> None:
    """Fails a store that moves an item twice, loses where it went, or keeps its payload."""
    store = await ground.open()
    writer = await ground.begin(store)
    for name in ("m1", "m2", "m3"):
        await store.inbox.put(writer.run, message(name))
    await _take(writer, "m1", "m2")
    require_equal(await _ids(writer), ["m3"], "items that wait after two were moved")
    store = await ground.reopen(store)
    writer.store = store
    seen = [(item.id, item.moved_to, bool(item.payload)) for item in await store.inbox.items(writer.run)]
    require_equal(seen, [("m1", 2, False), ("m2", 3, False), ("m3", None, True)], "items after the move")
    await require_raises(Refused, _take(writer, "m1"), "an item that was moved")
    await require_raises(Refused, _take(writer, "m3", "m2"), "one that waits, one that was moved")
    require_equal(await _ids(writer), ["m3"], "items that wait after refused moves")
    require_equal((await store.entries.head(writer.run)).position, 3, "the run after refused moves")
    commit = await writer.commit(said("x", "m3"), taken={"m3": 9})
    await require_raises(BadInput, writer.send(commit), "a move into an entry of another commit")


async def j4_a_move_is_part_of_its_commit(ground: Ground) -> None:
    """Fails a store that moves an item although the commit was refused."""
    store = await ground.open()
    writer = await ground.begin(store)
    await store.inbox.put(writer.run, message("m1"))
    stale = await writer.commit(said("taken", "m1"), expected=0, taken={"m1": 1})
    await require_raises(Conflict, store.entries.append(stale), "a stale commit")
    require_equal(await _ids(writer), ["m1"], "items that wait after a refused commit")


async def j4_outsiders_need_no_lease(ground: Ground) -> None:
    """Fails a store that refuses, fences or mixes up outsiders while a holder appends."""
    store, other = await ground.open(), await ground.open()
    writer = await ground.begin(store)

    async def outsider(name: str) -> None:
        for number in range(5):
            await other.inbox.put(writer.run, message(f"{name}-{number}"))

    async def holder() -> None:
        for number in range(5):
            await writer.append(said(f"{number}"))

    await asyncio.gather(outsider("a"), holder(), outsider("b"))
    ids = await _ids(writer)
    for name in ("a", "b"):
        own = [each for each in ids if each.startswith(name)]
        require_equal(own, [f"{name}-{number}" for number in range(5)], "an outsider's items, in its order")
    await _take(writer, *ids)
    require_equal(await _ids(writer), [], "items that wait after all were taken")


async def j4_the_inbox_refuses_what_nobody_can_take(ground: Ground) -> None:
    """Fails a store that keeps mail for a run that does not exist, or items that are no entries."""
    store = await ground.open()
    writer = await ground.begin(store)
    unknown = ground.clock.new_run_id()
    await require_raises(UnknownRun, store.inbox.put(unknown, message("m1")), "mail for an unknown run")
    await require_raises(UnknownRun, store.inbox.waiting(unknown), "the inbox of an unknown run")
    for bad in (
        replace(message("m1"), kind="Nonsense"),
        message(""),
        message("a\x00b"),
        message("\ud800"),
        message("x" * 1000),
    ):
        await require_raises(BadInput, store.inbox.put(writer.run, bad), f"an item like {bad!r:.60}")
    require_equal(await _ids(writer), [], "items that wait after refused ones")


CLAUSES = (
    j4_items_wait_in_order,
    j4_an_id_comes_in_once,
    j4_a_moved_item_is_moved_once,
    j4_a_move_is_part_of_its_commit,
    j4_outsiders_need_no_lease,
    j4_the_inbox_refuses_what_nobody_can_take,
)
