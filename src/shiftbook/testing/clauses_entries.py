"""Clauses of the promise Entries: append-only, whole commits, guarded by position and lease epoch."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from shiftbook.codec import blob_hash, genesis, link
from shiftbook.entries import RunRested, TallyChanged, Warned
from shiftbook.errors import BadInput, Conflict, Fenced, InboxWaiting, Refused, UnknownRun
from shiftbook.journal.promises import PAGE_ROWS, Snapshot
from shiftbook.testing.ground import (
    LEASE_MS,
    Broken,
    Ground,
    Writer,
    elsewhere,
    message,
    read_all,
    require,
    require_equal,
    require_raises,
    said,
)

ODD_TEXTS = (
    "",
    "a\x00b\x1f",
    "\u00e9\u2028\U0001f600",
    "\udc88 alone",
    "\\u0000",
    "'; DROP TABLE entries; --",
)
RACERS = 8


async def j1_rows_come_back_as_written(ground: Ground) -> None:
    """Fails a store that forgets, reorders, or changes a byte once the database is opened again."""
    store = await ground.open()
    writer = await ground.begin(store)
    written = [*await read_all(store, writer.run)]
    written += await writer.append(said("one"), said("two"), Warned("three", "3"))
    written += await writer.append(*(said(text) for text in ODD_TEXTS))
    written += await writer.append(TallyChanged("zebra", "add", {"zebra": 1, "alpha": 2}, "tool"))
    require_equal(await read_all(store, writer.run), written, "read back at once")
    store = await ground.reopen(store)
    require_equal(await read_all(store, writer.run), written, "read back after reopening")


async def j1_positions_are_gapless(ground: Ground) -> None:
    """Fails a store that numbers across runs or leaves holes."""
    store = await ground.open()
    left, right = await ground.begin(store), await ground.begin(store)
    for turn in range(5):
        await left.append(said(f"left {turn}"))
        await right.append(said(f"right {turn}"), said("more"))
    for writer, count in ((left, 6), (right, 11)):
        positions = [row.position for row in await read_all(store, writer.run)]
        require_equal(positions, list(range(1, count + 1)), "positions of a run")


async def j1_pages_follow_each_other(ground: Ground) -> None:
    """Fails a store whose pages overlap, leave something out or pass their limit."""
    store = await ground.open()
    writer = await ground.begin(store)
    await writer.append(*(said(f"{number}") for number in range(PAGE_ROWS + 20)))
    require_equal(len(await store.entries.read(writer.run)), PAGE_ROWS, "rows of a page that names no limit")
    page = await store.entries.read(writer.run, 7, 5)
    require_equal([row.position for row in page], [8, 9, 10, 11, 12], "a page of five after 7")
    require_equal(await store.entries.read(writer.run, writer.position), [], "the page after the last")
    require_equal(len(await read_all(store, writer.run)), writer.position, "all pages together")


async def j1_order_is_position_not_time(ground: Ground) -> None:
    """Fails a store that sorts by stamp: two holders whose clocks are a minute apart take turns."""
    store = await ground.open()
    writer = await ground.begin(store)
    ahead, behind = ground.clock.skewed(60_000), ground.clock.skewed(-60_000)
    for turn in range(6):
        writer.clock = (ahead, behind)[turn % 2]
        await writer.append(said(f"turn {turn}"))
    rows = await read_all(store, writer.run)
    require_equal([row.position for row in rows], list(range(1, 8)), "order under skewed clocks")
    require(rows[1].at_ms > rows[2].at_ms, "stamps were kept as the writers gave them")


async def j1_a_commit_is_whole_or_nothing(ground: Ground) -> None:
    """Fails a store that splits a commit: part of it is there after it was refused."""
    store = await ground.open()
    writer = await ground.begin(store)
    before = await read_all(store, writer.run)
    await store.inbox.put(writer.run, message("m1"))
    content = b"never"
    commit = await writer.commit(
        said("one"),
        said("two"),
        RunRested("waiting"),
        blobs={blob_hash(content): content},
        if_no_mail=True,
        snapshot=Snapshot("view", 1, 2, "{}"),
    )
    await require_raises(InboxWaiting, writer.send(commit), "mail waits")
    unknown = replace(commit, if_no_mail=False, taken={"m1": 2, "never put in": 3})
    await require_raises(Refused, writer.send(unknown), "an item that was never put in")
    require_equal(await read_all(store, writer.run), before, "rows after refused commits")
    require_equal(await store.blobs.names(writer.run), [], "blobs after refused commits")
    require(await store.cache.load(writer.run, "view", 1) is None, "a refused commit left its snapshot")
    require_equal(len(await store.inbox.waiting(writer.run)), 1, "inbox items after refused commits")
    require_equal((await store.catalogue.runs())[0].state, "running", "state after refused commits")


async def j1_a_follower_sees_commits_whole(ground: Ground) -> None:
    """Fails a store that splits a commit: a reader between its parts sees a half."""
    store = await ground.open()
    writer = await ground.begin(store)
    heads = {1}
    for turn in range(4):
        commit = asyncio.create_task(writer.append(said("a"), said("b"), said(f"c{turn}")))
        while not commit.done():
            heads.add((await store.entries.head(writer.run)).position)
            await asyncio.sleep(0)
        await commit
    require(heads <= {1, 4, 7, 10, 13}, f"positions between the rows of a commit were seen: {sorted(heads)}")


async def j1_rows_that_do_not_follow_are_refused(ground: Ground) -> None:
    """Fails a store that takes a commit with a gap, a future lease epoch or no chain head."""
    store = await ground.open()
    writer = await ground.begin(store)
    commit = await writer.commit(said("one"), said("two"))
    first, last = commit.rows
    for rows in (
        (first, replace(last, position=9)),
        (replace(first, epoch=first.epoch + 7), last),
        (first, replace(last, head=None)),
        (),
    ):
        await require_raises(
            BadInput, store.entries.append(replace(commit, rows=rows)), "an ill-formed commit"
        )
    require_equal(len(await read_all(store, writer.run)), 1, "rows after ill-formed commits")


async def j3_the_head_is_the_last_commits(ground: Ground) -> None:
    """Fails a store that loses the chain: the head must be what the rows hash to."""
    store = await ground.open()
    writer = await ground.begin(store, opened=False)
    start = await store.entries.head(writer.run)
    require_equal((start.position, start.head), (0, genesis(writer.run)), "the head before the first entry")
    await writer.append(said("one"), said("two"))
    await writer.append(said("three"))
    head = genesis(writer.run)
    for row in await read_all(store, writer.run):
        head = link(head, row)
    got = await store.entries.head(writer.run)
    require_equal((got.position, got.head), (3, head), "the head after three entries")


async def j4_a_stale_position_is_refused(ground: Ground) -> None:
    """Fails a store that overwrites a position, or writes beyond the end."""
    store = await ground.open()
    writer = await ground.begin(store)
    await writer.append(said("one"), said("two"))
    before = await read_all(store, writer.run)
    for expected in (0, 1, 2, 4, 9):
        commit = await writer.commit(said("late"), expected=expected)
        error = await require_raises(Conflict, store.entries.append(commit), f"expected {expected} of 3")
        require(isinstance(error, Conflict) and (error.expected, error.found) == (expected, 3), str(error))
    with_blob = await writer.commit(said("late"), expected=1, blobs={blob_hash(b"x"): b"x"})
    await require_raises(Conflict, store.entries.append(with_blob), "a stale commit with a blob")
    require_equal(await read_all(store, writer.run), before, "rows after stale commits")


async def j4_a_fenced_writer_is_refused(ground: Ground) -> None:
    """Fails a store that accepts a stale lease epoch, or one that nobody was given."""
    store = await ground.open()
    writer = await ground.begin(store)
    ground.clock.advance(LEASE_MS + 1)
    lease = await store.leases.take(writer.run, elsewhere("b"), LEASE_MS)
    for whats in ((said("late"),), (said("late"), RunRested("finished"))):
        error = await require_raises(Fenced, writer.append(*whats), "an append under the old lease")
        require(
            isinstance(error, Fenced) and (error.epoch, error.current) == (writer.lease.epoch, lease.epoch),
            str(error),
        )
    future = await writer.commit(said("early"), epoch=lease.epoch + 1)
    await require_raises(Fenced, store.entries.append(future), "an epoch that nobody was given")
    require_equal(len(await read_all(store, writer.run)), 1, "rows after fenced appends")
    successor = Writer(store, lease, ground.clock, writer.position, writer.head)
    await successor.append(said("mine"))


async def j4_mail_holds_a_commit_up_when_asked(ground: Ground) -> None:
    """Fails a store that ignores `if_no_mail`, or holds up a commit that takes the mail in."""
    store = await ground.open()
    writer = await ground.begin(store)
    await writer.send(await writer.commit(said("no mail"), if_no_mail=True))
    await store.inbox.put(writer.run, message("m1"))
    await require_raises(
        InboxWaiting, writer.send(await writer.commit(said("x"), if_no_mail=True)), "mail waits"
    )
    await writer.send(await writer.commit(said("without asking")))
    taking = await writer.commit(said("hello", "m1"), taken={"m1": writer.position + 1}, if_no_mail=True)
    await writer.send(taking)
    await writer.send(await writer.commit(said("again no mail"), if_no_mail=True))


async def j4_racing_writers_win_each_position_once(ground: Ground) -> None:
    """Fails a store that checks outside the transaction: two writers of one epoch both win a position."""
    stores = [await ground.open() for _ in range(2)]
    writer = await ground.begin(stores[0])
    for turn in range(6):
        commits = [await writer.commit(said(f"{turn} {racer}")) for racer in range(RACERS)]
        ends = await asyncio.gather(
            *(stores[racer % 2].entries.append(commit) for racer, commit in enumerate(commits)),
            return_exceptions=True,
        )
        won = [commit for commit, end in zip(commits, ends, strict=True) if end is None]
        losers = [end for end in ends if end is not None]
        require_equal(len(won), 1, f"winners of position {writer.position + 1}")
        require(all(isinstance(end, Conflict) for end in losers), f"the losers were told {losers!r:.300}")
        require_equal(
            (await stores[1].entries.read(writer.run, writer.position)), [*won[0].rows], "the winner's row"
        )
        writer.position, writer.head = won[0].rows[-1].position, won[0].rows[-1].head


async def j1_follow_misses_nothing(ground: Ground) -> None:
    """Fails a follower that skips, repeats, or does not see what another opening of the database wrote."""
    store, other = await ground.open(), await ground.open()
    writer = await ground.begin(store)
    await writer.append(*(said(f"{number}") for number in range(PAGE_ROWS + 5)))
    all_rows, late_rows = (
        ground.watch(store.entries.follow(writer.run)),
        ground.watch(store.entries.follow(writer.run, writer.position)),
    )
    start = writer.position
    await ground.until(lambda: len(all_rows) == start, "a follower did not get what was there")
    for turn in range(6):
        writer.store = (store, other)[turn % 2]
        await writer.append(said(f"turn {turn}"), said("more"))
        await ground.until(lambda: len(all_rows) >= writer.position, "a follower missed a commit")
    written = await read_all(store, writer.run)
    require_equal(all_rows, written, "what a follower from the start saw")
    await ground.until(lambda: len(late_rows) >= 12, "a follower from the end missed a commit")
    require_equal(late_rows, written[start:], "what a follower from the end saw")


async def j4_an_unknown_run_is_told(ground: Ground) -> None:
    """Fails a store that invents a run, or raises its driver's error."""
    store = await ground.open()
    writer = await ground.begin(store)
    unknown = replace(await writer.commit(said("x")), run=ground.clock.new_run_id())
    await require_raises(UnknownRun, store.entries.append(unknown), "an append to an unknown run")
    await require_raises(UnknownRun, store.entries.read(unknown.run), "a read of an unknown run")
    await require_raises(UnknownRun, store.entries.head(unknown.run), "the head of an unknown run")
    try:
        async for _ in store.entries.follow(unknown.run):
            break
    except UnknownRun:
        return
    raise Broken("following an unknown run raised nothing")


CLAUSES = (
    j1_rows_come_back_as_written,
    j1_positions_are_gapless,
    j1_pages_follow_each_other,
    j1_order_is_position_not_time,
    j1_a_commit_is_whole_or_nothing,
    j1_a_follower_sees_commits_whole,
    j1_rows_that_do_not_follow_are_refused,
    j3_the_head_is_the_last_commits,
    j4_a_stale_position_is_refused,
    j4_a_fenced_writer_is_refused,
    j4_mail_holds_a_commit_up_when_asked,
    j4_racing_writers_win_each_position_once,
    j1_follow_misses_nothing,
    j4_an_unknown_run_is_told,
)
