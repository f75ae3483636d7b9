"""What the tests of the search index stand on: a book with one run, on either kind of store."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any, Literal

from hypothesis import strategies as st

from shiftbook.clock import this_process
from shiftbook.codec import draft, genesis, seal
from shiftbook.entries import ActionFinished, ModelAnswered, PersonSaid, RuleSet, What
from shiftbook.journal.index import Covered, Index, fill
from shiftbook.journal.open import open_index, open_store
from shiftbook.journal.promises import Commit, Store
from shiftbook.messages import Text
from shiftbook.prompt.recall_question import question
from shiftbook.prompt.recall_rank import WIDE, rank
from tests.journal.places import fresh_database

Kind = Literal["sqlite", "postgres"]
KINDS: tuple[Kind, ...] = ("sqlite", "postgres")

WORDS = [
    "lease",
    "journal",
    "src/app.py",
    "42",
    "the",
    "café",
    "鍵管理",
    "OR",
    "s1",
    "d1*",
    '"NEAR(',
    "{a,NULL}",
    "Thanks",
]
texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
whats = st.one_of(
    texts.map(lambda text: PersonSaid((Text(text),))),
    texts.map(lambda text: ModelAnswered(1, (Text(text),), "end")),
    texts.map(lambda text: ActionFinished("c", "done", (Text(text),))),
    texts.map(lambda text: RuleSet("k", text, "author")),
)


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test in a loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **given: Any) -> None:
        asyncio.run(test(*args, **given))  # type: ignore[arg-type]

    return run


def said(text: str) -> What:
    """A person's words."""
    return PersonSaid((Text(text),))


def replied(text: str) -> What:
    """A model's words."""
    return ModelAnswered(1, (Text(text),), "end")


@asynccontextmanager
async def book(kind: Kind, *things: What, run: str = "run", path: str = ":memory:") -> AsyncIterator[Store]:
    """A store with one run of these entries, in a database of its own; `path` is where SQLite's is."""
    with fresh_database() if kind == "postgres" else nullcontext(path) as address:
        store = await open_store(address)
        try:
            await append(store, run, things)
            yield store
        finally:
            await store.close()


async def append(store: Store, run: str, things: Sequence[What]) -> None:
    """A run of these entries."""
    lease = await store.leases.take(run, this_process(), 60_000, new=True)
    sealed = seal(
        [draft(each) for each in things],
        after=0,
        head=genesis(run),
        at_ms=[1_000] * len(things),
        epoch=lease.epoch,
        token=bytes,
    )
    if things:
        await store.entries.append(Commit(run, 0, lease.epoch, sealed.rows, sealed.blobs))


def index_of(store: Store) -> Index:
    """The store's index, opened once more."""
    index = open_index(store)
    assert index is not None
    return index


async def filled(index: Index, store: Store, limit: int = 500, run: str = "run") -> Covered:
    """Bring an index to the end of a run."""
    while await fill(index, store, run, limit):
        pass
    return await index.covered(run)


async def useful(index: Index, query: str, run: str = "run") -> dict[int, float]:
    """The units that a query finds and how useful each is."""
    asked = question(query)
    found = await index.candidates(run, list(asked.terms), reach=len(WIDE))
    return dict(rank(asked, found.statistics, found.words, found.matching).useful)
