"""What the tests of workers stand on: a queue in its own database, agents by reference, raw looks at it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg

from shiftbook.clock import SystemClock
from shiftbook.entries import Entry, PersonSaid
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import InboxItem
from shiftbook.providers.scripted import Scripted, call, say
from shiftbook.run.agent import Agent
from shiftbook.run.book import read_entries
from shiftbook.run.mail import content_of, inbox_item
from shiftbook.testing.clock import SimulatedClock, Time
from shiftbook.tools.function import tool
from shiftbook.verify import verify
from shiftbook.workers import Queue, open_queue
from shiftbook.workers.entering import enter
from tests.journal.places import fresh_database

REFERENCE = "shop.py:shop"
PATIENCE_S = 60
__all__ = ["PATIENCE_S", "REFERENCE", "fresh_database"]


@tool(repeat="safe")
async def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: 12 crates"


def shop(script: Any = None, *, tools: Sequence[Any] = (look,), reference: str = REFERENCE) -> Agent:
    """An agent that a worker finds by its reference: with `load={...}.__getitem__`."""
    steps = script or [call("look", {"place": "A"}), say("done"), say("done again"), say("and again")]
    return Agent(name="shop", model=Scripted(steps), tools=tuple(tools), reference=reference)


@asynccontextmanager
async def queue_at(address: str) -> AsyncIterator[Queue]:
    """A queue over a store of its own."""
    store = await open_store(address)
    try:
        queue = await open_queue(store, create=True)
        assert queue is not None
        yield queue
    finally:
        await store.close()


async def entered(queue: Queue, agent: Agent, run: str, **more: Any) -> str:
    """A run in the queue."""
    return await enter(queue, agent, "Begin.", run=run, **more)


def item(name: str, text: str = "And this.") -> InboxItem:
    """A message on its way."""
    return inbox_item(name, PersonSaid(content_of(text)), SystemClock().now_ms())


def an_hour_on() -> SimulatedClock:
    """A clock by which every lease of now has run out: whoever opens the database with it takes over."""
    return SimulatedClock(time=Time(SystemClock().now_ms() + 3_600_000))


@contextmanager
def raw(address: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection behind Shiftbook's back, with the queue's tables in sight."""
    options = "-c search_path=shiftbook_queue"
    with psycopg.connect(address, autocommit=True, options=options) as connection:
        yield connection


def fetched(address: str) -> str | None:
    """The run whose wake a worker would get now; the wake is taken by this."""
    with raw(address) as connection:
        found = connection.execute("SELECT lock FROM procrastinate_fetch_job_v2(NULL, NULL)").fetchone()
    return None if found is None else found[0]


def jobs(address: str) -> list[tuple[str, str]]:
    """The wakes that are there, as (run, status), in the order of their making."""
    with raw(address) as connection:
        asked = "SELECT lock, status::text FROM procrastinate_jobs WHERE lock IS NOT NULL ORDER BY id"
        return connection.execute(asked).fetchall()


def state_of(address: str, run: str) -> Mapping[str, Any]:
    """What the queue knows of a run: `wait_s` until it is due, None when it is not, `tries`, `why`."""
    with raw(address) as connection:
        found = connection.execute(
            "SELECT extract(epoch FROM due - clock_timestamp())::float, tries, why FROM queued_runs "
            "WHERE run = %s",
            (run,),
        ).fetchone()
    assert found is not None
    return dict(zip(("wait_s", "tries", "why"), found, strict=True))


async def entries(queue: Queue, run: str) -> list[Entry]:
    """The run's entries."""
    return await read_entries(queue.store, run)


async def whats(queue: Queue, run: str, kind: type) -> list[Any]:
    """What the entries of one kind say."""
    return [entry.what for entry in await entries(queue, run) if isinstance(entry.what, kind)]


async def check(queue: Queue, run: str) -> None:
    """The record holds."""
    assert (await verify(queue.store, run)).faults == ()
