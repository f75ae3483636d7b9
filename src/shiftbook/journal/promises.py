"""What a store promises, in six small parts; `shiftbook.testing` has a suite for each.

1. Entries    - append a commit or nothing, read in order, follow what comes.
2. Leases     - one holder at a time, a greater epoch at each taking.
3. Inbox      - outsiders put items in; the holder moves each into the journal once, in order.
4. Blobs      - bytes by their hash, within one run.
5. Catalogue  - which runs there are, by state and tag, a page at a time.
6. Cache      - snapshots that may be dropped at any time.

Truth is the rows, the blobs, the inbox and the lease epochs. The catalogue and the cache are derived from
them and can be dropped. A store keeps rows; it does not know what they mean beyond what the catalogue
needs. Any other question is a projection or a view, never a method here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from shiftbook.clock import Holder
from shiftbook.codec import Row
from shiftbook.entries import State

PAGE_ROWS = 500
"""Rows that one read hands out at the most, unless the caller names another number."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A projection's value at a position, as canonical text, under a name and that projection's version."""

    name: str
    version: int
    position: int
    text: str


@dataclass(frozen=True, slots=True)
class Commit:
    """Everything that is written together, or not at all.

    `expected` is the run's position before it, `epoch` the lease epoch that the writer holds; both are
    checked inside the transaction. `blobs` come in with the rows that name them, `taken` maps each inbox
    item that the rows hold now to the position that holds it. With `if_no_mail` the commit is refused when an
    item waits that it does not take.
    """

    run: str
    expected: int
    epoch: int
    rows: Sequence[Row]
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    taken: Mapping[str, int] = field(default_factory=dict)
    if_no_mail: bool = False
    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """Where a run stands: its last position (0: no entry yet) and the chain's head there."""

    position: int
    head: bytes


class Entries(Protocol):
    """Rows of runs, append-only."""

    async def append(self, commit: Commit) -> None:
        """Write the commit whole and durably.

        Raises `Conflict` when the run is not at `expected`, `Fenced` when `epoch` is not the lease's,
        `InboxWaiting` as asked for, `UnknownRun` when no lease was ever taken: then nothing was written.
        Raises `StoreError` when the database refused: then nothing was written either, or the caller cannot
        know and must read again (the positions tell).
        """
        ...

    async def read(self, run: str, after: int = 0, limit: int = PAGE_ROWS) -> list[Row]:
        """The rows after position `after`, in order, at most `limit`. `UnknownRun` if there is none."""
        ...

    async def head(self, run: str) -> Head:
        """The run's position and chain head. `UnknownRun` if there is no such run."""
        ...

    def follow(self, run: str, after: int = 0) -> AsyncIterator[list[Row]]:
        """Pages of rows after `after`, for ever, as they are committed by whatever process."""
        ...


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to append to a run. `until_ms` is by the database's time."""

    run: str
    epoch: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """What a store knows of a run's lease; `holder` is None when it was given back.

    `left_ms` is how long it still held by the database's time when it was looked at, less than 0 when it had
    run out; None where nobody looked.
    """

    run: str
    epoch: int
    holder: Holder | None
    until_ms: int
    left_ms: int | None = field(default=None, compare=False)


class Leases(Protocol):
    """One holder a run; the epoch only grows."""

    async def take(
        self, run: str, holder: Holder, lease_ms: int, *, new: bool = False, above: int = 0
    ) -> Lease:
        """Take the lease with an epoch greater than every one before and than `above`.

        A lease that ran out, was given back, or whose holder is known to be dead on this host is replaced;
        else `Held`. With `new` the run must not exist yet (`RunExists`), without it must (`UnknownRun`).
        """
        ...

    async def renew(self, lease: Lease, lease_ms: int) -> Lease:
        """Hold on for `lease_ms` from now. `Fenced` when somebody else took it since."""
        ...

    async def give_back(self, lease: Lease) -> None:
        """End the lease now; nothing happens when it was taken over since."""
        ...

    async def look(self, run: str) -> LeaseRow:
        """Who holds the run. `UnknownRun` if there is no such run."""
        ...


@dataclass(frozen=True, slots=True)
class InboxItem:
    """Something from outside, on its way into the journal: a kind of entry and its canonical payload.

    `moved_to` is the position that holds it now, None while it waits. A moved item keeps its id, so that it
    cannot be put in a second time, and no payload.
    """

    id: str
    kind: str
    at_ms: int
    payload: str
    moved_to: int | None = None


class Inbox(Protocol):
    """The way in for everybody who does not hold the lease."""

    async def put(self, run: str, item: InboxItem) -> bool:
        """Put an item at the end. False, and nothing written, when an item of that id was put in before."""
        ...

    async def waiting(self, run: str, limit: int = PAGE_ROWS) -> list[InboxItem]:
        """The items not moved yet, in the order in which they came."""
        ...

    async def items(self, run: str, after: str | None = None, limit: int = PAGE_ROWS) -> list[InboxItem]:
        """All items, moved ones too, in order; for `verify` and `export`."""
        ...


class Blobs(Protocol):
    """Bytes by their hash, within one run. They are written by the commit that names them."""

    async def get(self, run: str, name: str) -> bytes:
        """The bytes of a blob. `Damaged` when it is not there or its bytes do not hash to its name."""
        ...

    async def names(self, run: str, after: str = "", limit: int = PAGE_ROWS) -> list[str]:
        """The names of the run's blobs in ascending order, after `after`."""
        ...


@dataclass(frozen=True, slots=True)
class RunRow:
    """A line of the catalogue. `position` is the run's last entry; stamps are the writers' clocks."""

    run: str
    agent: str
    state: State
    tags: tuple[str, ...]
    position: int
    opened_ms: int
    changed_ms: int


class Catalogue(Protocol):
    """Which runs there are; derived from the rows, kept with each commit that changes a state."""

    async def runs(
        self, *, state: State | None = None, tag: str | None = None, after: str | None = None, limit: int = 50
    ) -> list[RunRow]:
        """A page of runs, newest first; `after` is the last run of the page before."""
        ...

    async def find(self, prefix: str) -> str:
        """The one run whose id starts with `prefix`; `UnknownRun` for none, `RunExists` for several."""
        ...

    async def rebuild(self) -> None:
        """Drop the catalogue and derive it anew from the rows."""
        ...


class Cache(Protocol):
    """Snapshots: the newest one a name and run. Losing them costs time, never truth."""

    async def save(self, run: str, snapshot: Snapshot) -> None:
        """Keep it in place of the one before. (A commit can carry one, which costs no write of its own.)"""
        ...

    async def load(self, run: str, name: str, version: int) -> Snapshot | None:
        """The snapshot of that name and version, None when there is none."""
        ...

    async def drop(self, run: str | None = None) -> None:
        """Forget the snapshots of a run, or all."""
        ...


class Store(Protocol):
    """The six promises of one database, and its end."""

    @property
    def name(self) -> str:
        """What to call it towards people: a path, or an address without its password."""
        ...

    @property
    def entries(self) -> Entries: ...

    @property
    def leases(self) -> Leases: ...

    @property
    def inbox(self) -> Inbox: ...

    @property
    def blobs(self) -> Blobs: ...

    @property
    def catalogue(self) -> Catalogue: ...

    @property
    def cache(self) -> Cache: ...

    async def reopen(self) -> Store:
        """The same database once more, for the loop of another thread; it has its own end."""
        ...

    async def close(self) -> None:
        """Finish what was begun and let go of the database."""
        ...
