"""The ground that a store is tried on: its database opened as often as a clause likes, under one clock.

A clause is an async function of a `Ground` whose name begins with the promise that it holds a store to and
whose docstring names the failing case. It raises `Broken`; any other exception of a store counts as broken
too. Clauses share a database and never a run, so they can be run in any order, also on one that is in use.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from shiftbook.clock import Clock, Holder
from shiftbook.codec import Row, draft, seal
from shiftbook.ending import end
from shiftbook.entries import PersonSaid, RunOpened, What
from shiftbook.errors import ShiftbookError
from shiftbook.journal.promises import PAGE_ROWS, Commit, InboxItem, Lease, Snapshot, Store
from shiftbook.messages import Text
from shiftbook.testing.clock import SimulatedClock

LEASE_MS = 30_000
ROUNDS_MAX = 2_000
"""Turns of the event loop that a clause gives a follower before it is said to have missed something."""


class Broken(AssertionError):
    """A store broke a promise: `clause` is the name of what it was held to."""

    def __init__(self, what: str, clause: str = "") -> None:
        super().__init__(f"{clause}: {what}" if clause else what)
        self.what = what
        self.clause = clause


class OpenStore(Protocol):
    """Opens the same database each time, its time being the clock's."""

    def __call__(self, clock: Clock, /) -> Awaitable[Store]: ...


Clause = Callable[["Ground"], Awaitable[None]]


async def hold(clauses: Sequence[Clause], open_store: OpenStore, seed: int) -> None:
    """Hold a store to clauses, one after the other."""
    for place, clause in enumerate(clauses):
        name = getattr(clause, "__name__", repr(clause))
        ground = Ground(open_store, SimulatedClock(seed * 1000 + place))
        try:
            await clause(ground)
        except Broken as broken:
            raise Broken(broken.what, name) from broken
        except Exception as error:
            raise Broken(f"raised {type(error).__name__}: {error}", name) from error
        finally:
            await ground.close()


def require(holds: bool, what: str) -> None:
    """Say what is broken unless it holds."""
    if not holds:
        raise Broken(what)


def require_equal(got: object, wanted: object, what: str) -> None:
    """Say what is broken, with both values cut short, unless they are equal."""
    if got != wanted:
        raise Broken(f"{what}: got {got!r:.300}, not {wanted!r:.300}")


async def require_raises(kind: type[ShiftbookError], doing: Awaitable[object], what: str) -> ShiftbookError:
    """The error that a store must raise here; another one, or none, is broken."""
    try:
        await doing
    except kind as error:
        return error
    except ShiftbookError as error:
        raise Broken(f"{what}: raised {type(error).__name__} ({error}), not {kind.__name__}") from error
    raise Broken(f"{what}: nothing was raised, {kind.__name__} was promised")


class Ground:
    """What a clause stands on."""

    def __init__(self, open_store: OpenStore, clock: SimulatedClock) -> None:
        self._open_store = open_store
        self._opened: list[Store] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.clock = clock

    async def open(self, clock: Clock | None = None) -> Store:
        """Open the database once more."""
        store = await self._open_store(clock or self.clock)
        self._opened.append(store)
        return store

    async def reopen(self, store: Store) -> Store:
        """Close a store and open its database again."""
        again = await self.open()
        self._opened.remove(store)
        await store.close()
        return again

    async def begin(self, store: Store, *, opened: bool = True, tags: tuple[str, ...] = ()) -> Writer:
        """A fresh run in the hands of a writer, its first entry written if `opened`."""
        run = self.clock.new_run_id()
        writer = Writer(store, await store.leases.take(run, elsewhere(), LEASE_MS, new=True), self.clock)
        if opened:
            await writer.append(RunOpened(run, "clause.py:agent", "0", tags))
        return writer

    def watch(self, pages: AsyncIterator[list[Row]]) -> list[Row]:
        """A list that grows by the rows of a follower, which is ended with the ground."""
        seen: list[Row] = []

        async def gather() -> None:
            async for page in pages:
                seen.extend(page)

        self._tasks.append(asyncio.create_task(gather()))
        return seen

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        """Let everybody else go on until something holds; broken if it never does."""
        for _ in range(ROUNDS_MAX):
            if holds():
                return
            await self.clock.sleep_ms(1)
        raise Broken(what)

    async def close(self) -> None:
        """End what was begun."""
        for task in self._tasks:
            await end(task)
        for store in self._opened:
            await store.close()


def elsewhere(name: str = "a") -> Holder:
    """A holder on another host, so that nobody can ask whether it is alive."""
    return Holder(f"{name}.example", 1, "")


def said(text: str, item: str | None = None) -> PersonSaid:
    """The plainest entry."""
    return PersonSaid((Text(text),), "person", item)


def message(id: str, text: str = "hello") -> InboxItem:  # noqa: A002 - the item's own word
    """A message for the inbox."""
    return InboxItem(id, "PersonSaid", 1, f'{{"content":"{text}"}}')


@dataclass
class Writer:
    """A holder that makes well-formed commits, and ill-formed ones when told so."""

    store: Store
    lease: Lease
    clock: Clock
    position: int = 0
    head: bytes | None = None

    @property
    def run(self) -> str:
        """The run's id."""
        return self.lease.run

    async def commit(
        self,
        *whats: What,
        expected: int | None = None,
        epoch: int | None = None,
        blobs: Mapping[str, bytes] | None = None,
        taken: Mapping[str, int] | None = None,
        if_no_mail: bool = False,
        snapshot: Snapshot | None = None,
    ) -> Commit:
        """A commit that was not sent yet."""
        after = self.position if expected is None else expected
        head = self.head or (await self.store.entries.head(self.run)).head
        sealed = seal(
            [draft(what) for what in whats],
            after=after,
            head=head,
            at_ms=[self.clock.now_ms()] * len(whats),
            epoch=self.lease.epoch if epoch is None else epoch,
            token=self.clock.token,
        )
        return Commit(
            run=self.run,
            expected=after,
            epoch=self.lease.epoch if epoch is None else epoch,
            rows=sealed.rows,
            blobs={**(blobs or {}), **sealed.blobs},
            taken=taken or {},
            if_no_mail=if_no_mail,
            snapshot=snapshot,
        )

    async def send(self, commit: Commit) -> Sequence[Row]:
        """Append a commit of this writer; returns its rows."""
        await self.store.entries.append(commit)
        self.position, self.head = commit.rows[-1].position, commit.rows[-1].head
        return commit.rows

    async def append(
        self,
        *whats: What,
        blobs: Mapping[str, bytes] | None = None,
        taken: Mapping[str, int] | None = None,
        snapshot: Snapshot | None = None,
    ) -> Sequence[Row]:
        """Make a commit and append it."""
        return await self.send(await self.commit(*whats, blobs=blobs, taken=taken, snapshot=snapshot))


async def read_all(store: Store, run: str) -> list[Row]:
    """Every row of a run."""
    rows: list[Row] = []
    while page := await store.entries.read(run, rows[-1].position if rows else 0, PAGE_ROWS):
        rows.extend(page)
    return rows
