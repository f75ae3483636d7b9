"""`shiftbook worker`: take runs from the queue and see each to its rest, until told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from types import FrameType
from typing import Annotated

import typer

from shiftbook.cli.drive import INTERRUPTED
from shiftbook.cli.options import Db, Verbose
from shiftbook.cli.output import note
from shiftbook.cli.places import journal, server
from shiftbook.cli.words import count
from shiftbook.errors import BadInput
from shiftbook.run.reference import load_agent
from shiftbook.workers import Settings, Worker, open_queue
from shiftbook.workers.queue import check_packages
from shiftbook.workers.serving import parse_listen, serving
from shiftbook.workers.shares import Shares

OTHERS = ("procrastinate", "psycopg.pool")
"""Loggers of the packages underneath, which are kept still."""


def command(
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            metavar="REF",
            show_default=False,
            help="Take runs of this agent only; may be repeated. Else of every agent that is found here.",
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", metavar="N", help="Runs at work at the same time.")
    ] = 4,
    per_agent: Annotated[
        int | None,
        typer.Option(
            "--per-agent",
            metavar="N",
            show_default=False,
            help="At most so many runs of one agent at work, over all workers that are told the same.",
        ),
    ] = None,
    per_tenant: Annotated[
        int | None,
        typer.Option(
            "--per-tenant",
            metavar="N",
            show_default=False,
            help="At most so many runs with the same tag `tenant:...` at work, counted the same way.",
        ),
    ] = None,
    grace: Annotated[
        int,
        typer.Option(
            "--grace", metavar="SECONDS", help="When told to stop, wait so long for runs to be handed over."
        ),
    ] = 60,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="[HOST:]PORT",
            show_default=False,
            help="Serve /health and /metrics there; the host is the loopback unless named.",
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="End when nothing waits in the queue any more.")
    ] = False,
    db: Db = None,
    verbose: Verbose = False,
) -> None:
    """Take runs from the queue of a PostgreSQL journal and see each to its rest, until told to stop.

    SIGTERM or Ctrl-C: nothing more is taken, and each run is handed over at its next safe boundary; a second
    one cuts off at once. Any number of workers on any number of hosts may work on one queue.
    """
    limits = {"--concurrency": concurrency, "--per-agent": per_agent, "--per-tenant": per_tenant}
    for name, value in limits.items():
        if value is not None and value < 1:
            raise BadInput(f"{name} {value} lets no run be taken: give at least 1.")
    settings = Settings(
        concurrency=concurrency,
        agents=tuple(str(load_agent(each).reference) for each in agent or ()),
        shares=Shares(per_agent=per_agent, per_tenant=per_tenant),
        grace_ms=max(0, grace) * 1000,
    )
    for name in OTHERS:
        # They tell with a traceback, for each connection, what our log tells in one sentence.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    asyncio.run(_work(settings, None if listen is None else parse_listen(listen), once, db))


async def _work(settings: Settings, listen: tuple[str, int] | None, once: bool, db: str | None) -> None:
    check_packages()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(journal(server(db), create=True))
        queue = await open_queue(store, create=True)
        assert queue is not None
        worker = Worker(queue, settings)
        if listen is not None:
            port = await stack.enter_async_context(serving(worker, queue.store, *listen))
            note(f"Health and metrics on http://{listen[0]}:{port}/health and /metrics.")
        note(f"Worker {worker.name} takes up to {count(settings.concurrency, 'run')} of {store.name}.")
        with _hands_on(worker):
            await worker.work(once=once)
    told = worker.counts
    note(
        f"{count(told.taken, 'run')} taken: {told.rested:,} at rest, {told.handed_over:,} handed over, "
        f"{told.fenced:,} cut off, {told.faults:,} put off by a fault."
    )


@contextmanager
def _hands_on(worker: Worker) -> Iterator[None]:
    """Listen to SIGTERM and Ctrl-C with the interpreter's handlers: a tool may hold the loop's thread."""
    loop = asyncio.get_running_loop()
    times = 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal times
        times += 1
        if times == 1:
            note("Taking nothing more; runs are handed over. Once more cuts them off at once.")
            loop.call_soon_threadsafe(worker.stop)
        elif times == 2:
            loop.call_soon_threadsafe(worker.cut_off)
        else:
            os._exit(INTERRUPTED)

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
