"""A worker: takes runs from the queue, resumes each as any process would, lets go of it when it rests.

The lease is the fence, the queue only a way to be called. A run that somebody else holds is put off until
that lease ends; a run whose lease was lost is cut off at once; an agent that cannot be had is left to others.
Each run is a task of the worker's own: when the database is away, procrastinate's loop ends and is made anew,
and the runs go on as far as they can without it.

Told to stop, a worker takes nothing more and hands its runs over at their next safe boundary: nothing of it
is written into a journal, and another worker goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from shiftbook.clock import Clock, SystemClock, this_process
from shiftbook.ending import end
from shiftbook.entries import Entry
from shiftbook.errors import AgentUnusable, BadInput, Fenced, Held, ShiftbookError
from shiftbook.messages import ReplyEvent
from shiftbook.run.agent import Agent
from shiftbook.run.loop import LEASE_MS, Run, resume
from shiftbook.run.reference import load_agent
from shiftbook.views import standing_of
from shiftbook.workers.connector import told
from shiftbook.workers.counts import Counts
from shiftbook.workers.jobs import Beat, forsaken, loop_of, register, upkeep
from shiftbook.workers.queue import Queue, Wake, queue_of
from shiftbook.workers.roster import sign_off, sign_on
from shiftbook.workers.shares import Gate, ShareFull, Shares

if TYPE_CHECKING:
    from procrastinate.worker import Worker as Loop

log = logging.getLogger("shiftbook")

PAUSE_MS_MIN = 500
PAUSE_MS_MAX = 60_000
"""Bounds of the wait before something is tried again; it doubles with each try."""

PARKED_MS = 60_000
"""A run that waits for a share and that nobody woke is looked at again after this time, about; milliseconds.

The upkeep wakes it much earlier: this is for a share that no worker knows of any more."""

SIGN_OFF_S = 5.0
"""How long a worker that ends tries to take itself off the list of workers, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a worker works. `agents` are references: with any, only their runs are taken."""

    concurrency: int = 4
    agents: Sequence[str] = ()
    shares: Shares = Shares()
    lease_ms: int = LEASE_MS
    grace_ms: int = 60_000
    """How long a run may take to its next safe boundary once the worker is to stop; then it is cut off."""
    beat: Beat = field(default_factory=Beat)


class Worker:
    """One worker of one queue. `work` goes on until `stop` is called and everything is handed over."""

    def __init__(
        self,
        queue: Queue,
        settings: Settings = Settings(),
        *,
        clock: Clock | None = None,
        load: Callable[[str], Agent] = load_agent,
    ) -> None:
        holder = this_process()
        self.clock = clock or SystemClock()
        self.name = f"{holder.host}:{holder.pid}"
        self.counts = Counts()
        self.settings = settings
        self._queue = queue
        self._load = load
        self._gate = Gate(queue.store, settings.shares)
        self._signed_on = False
        self._suspects: set[int | None] = set()
        self._runs: dict[str, asyncio.Task[None]] = {}
        self._handles: dict[str, Run] = {}
        self._loop: Loop | None = None
        self._listens = asyncio.Event()
        self._listened = False
        """Whether the loop that ended last had come as far as to take jobs."""
        self._astray = 0
        """Looks in a row that came to nothing and could not be put off."""
        self._in_hand: set[int | None] = set()
        self._stopping = asyncio.Event()

    @property
    def at_work(self) -> int:
        """How many runs the worker has in hand."""
        return len(self._runs)

    @property
    def is_ready(self) -> bool:
        """Whether the worker takes runs: it is not stopping, and the queue can be reached."""
        return self._loop is not None and not self._stopping.is_set()

    async def work(self, *, once: bool = False) -> None:
        """Take runs until told to stop; with `once` until nothing waits any more."""
        register(self._queue, self.wake, self._upkeep, self._in_hand)
        tries, wait_ms = 0, 0.0
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._gate.close)
            stack.push_async_callback(self._sign_off)
            beat = self.settings.beat
            for look, pause_ms in (
                (self._queue.due, beat.poll_ms),
                (self._beat, beat.heartbeat_ms),
                (self._upkeep, beat.upkeep_ms),
            ):
                stack.push_async_callback(end, asyncio.create_task(self._keep_up(look, pause_ms)))
            while not self._stopping.is_set():
                began_ms = self.clock.steady_ms()
                fault = await self._listen(once)
                if self._stopping.is_set() or (once and fault is None):
                    break
                # Who listened for longer than he had waited for it was well: the next outage is a new one.
                was_well = self._listened and self.clock.steady_ms() - began_ms > wait_ms
                tries = 0 if was_well else tries + 1
                wait_ms = self._pause_ms(tries)
                log.warning("%s; again in %.1f s", fault, wait_ms / 1000)
                self.counts.outages += 1
                await self._rest_ms(wait_ms)
            await self._hand_over()

    async def _listen(self, once: bool) -> str | None:
        """Run procrastinate's loop until it ends; what ended it in words, None if that was meant."""
        from procrastinate.exceptions import ConnectorException
        from psycopg import Error

        settings = self.settings
        queues = [queue_of(each) for each in settings.agents] or None
        app, name = self._queue.app, self._queue.store.name
        self._listened = False
        try:
            await app.open_async()
            loop = loop_of(self._queue, queues, settings.concurrency, settings.beat, once=once)
            if once:
                loop.shutdown_graceful_timeout = None
            self._loop = loop
            self._listens.set()
            if not self._stopping.is_set():
                await loop.run()  # type: ignore[no-untyped-call]  # procrastinate's own
            return None if once or self._stopping.is_set() else f"{name}: the queue's connection was lost"
        except (ConnectorException, Error, OSError) as fault:
            return told(fault, name)
        finally:
            self._listened = self._loop is not None and self._loop.run_task is not None
            self._loop = None
            self._listens.clear()
            with suppress(ConnectorException, Error, OSError):
                await app.close_async()

    async def _upkeep(self) -> None:
        """Free what dead workers left, when it is this worker's turn."""
        await self._listens.wait()  # Procrastinate can be asked as long as its loop is there.
        if await self._queue.has_turn(self.settings.beat.upkeep_ms):
            await upkeep(self._queue, self.settings.beat)
            await self._gate.wake_all_parked(self._queue)

    async def _keep_up(self, look: Callable[[], Awaitable[object]], pause_ms: int) -> None:
        """Do something again and again; what goes wrong with it is told, and it is done again."""
        while True:
            try:
                await look()
            except Exception as fault:  # noqa: BLE001 - a worker that no longer beats or looks is a dead one
                said = told(fault, self._queue.store.name)
                log.warning("%s, tried again in %.1f s: %s", look.__name__, pause_ms / 1000, said)
            await self.clock.sleep_ms(pause_ms)

    async def _beat(self) -> None:
        """Be seen by `workers`, and see to it that the queue's idea of what is in hand here is right."""
        from procrastinate.exceptions import ConnectorException
        from psycopg import Error

        holder, settings = this_process(), self.settings
        if self._loop is not None and self._loop.worker_id is not None:
            with suppress(ConnectorException, Error):
                self._suspects = await forsaken(
                    self._queue, self._loop.worker_id, self._in_hand, self._suspects
                )
        began = not self._signed_on
        with suppress(ShiftbookError):
            await sign_on(
                self._queue.store,
                self.name,
                holder.host,
                holder.pid,
                settings.concurrency,
                settings.agents,
                began=began,
            )
            self._signed_on = True

    async def _sign_off(self) -> None:
        # A worker that ends while the database is away is not held up by what a day takes away by itself.
        with suppress(ShiftbookError, TimeoutError):
            async with asyncio.timeout(SIGN_OFF_S):
                await sign_off(self._queue.store, self.name)

    def stop(self) -> None:
        """Take nothing more; every run is handed over at its next safe boundary."""
        self._stopping.set()
        if self._loop is not None:
            # The jobs end by themselves as soon as their runs are handed over.
            self._loop.shutdown_graceful_timeout = self.settings.grace_ms / 1000
            self._loop.stop()  # type: ignore[no-untyped-call]  # procrastinate's own
        for handle in self._handles.values():
            handle.hand_over()

    def cut_off(self) -> None:
        """Stop at once, as a crash would: what is open is resumed elsewhere."""
        self.stop()
        for task in self._runs.values():
            task.cancel()

    async def _hand_over(self) -> None:
        """Wait for what is at work to come to its boundary; what does not is cut off."""
        if self._runs:
            await asyncio.wait(self._runs.values(), timeout=self.settings.grace_ms / 1000)
        await asyncio.gather(*(end(task) for task in self._runs.values()))

    async def wake(self, run: str) -> None:
        """Look at a run: what a wake asks for. Returns when it rests, or is put off or handed over."""
        # A task that goes on since before the database was away may have rested already when a message came.
        # One that has just ended is there until its callback has run: waiting for that would have no end.
        while (at_work := self._runs.get(run)) is not None and not at_work.done():
            await asyncio.shield(at_work)
        task = self._runs[run] = asyncio.create_task(self._look_at(run), name=f"run {run}")
        task.add_done_callback(partial(self._forget, run))
        try:
            await asyncio.shield(task)
        except Exception:
            # It could not even be put off, and its job is tried again as soon as this returns.
            self._astray += 1
            await self._rest_ms(self._pause_ms(self._astray))
            raise
        self._astray = 0

    def _forget(self, run: str, task: asyncio.Task[None]) -> None:
        if self._runs.get(run) is task:
            del self._runs[run]
        # Its job may have been given up with procrastinate's loop: then nobody else asks what came of it.
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.warning("run %s was left as it is, and is woken by the upkeep: %s", run, fault)

    async def _look_at(self, run: str) -> None:
        if self._stopping.is_set():
            await self._queue.put_off(run, 0, "the worker is stopping", failed=False)
            return
        wake: Wake | None = None
        try:
            wake = await self._queue.take(run, self.name)
            if wake is not None:
                await self._resume(wake)
        except ShareFull as full:
            self.counts.full += 1
            await self._queue.park(run, full.key, str(full), PARKED_MS + self._jitter_ms(PARKED_MS))
        except Held as held:
            self.counts.held += 1
            wait_ms = max(0, held.wait_ms) + self._jitter_ms(PAUSE_MS_MIN)
            await self._queue.put_off(run, wait_ms, f"held by {held.holder}", failed=False)
        except Fenced as fenced:
            # Its job may be another worker's by now, and ends with this one: so a wake is left behind it.
            self.counts.fenced += 1
            log.warning("run %s was cut off here: %s", run, fenced)
            await self._queue.put_off(run, self.settings.lease_ms, str(fenced), failed=False)
        except asyncio.CancelledError:
            await self._queue.put_off(run, 0, "the worker was stopped", failed=False)
            raise
        except Exception as fault:  # noqa: BLE001 - an author may raise anything, and no run is lost
            self.counts.faults += 1
            wait_ms = self._pause_ms(1 if wake is None else wake.tries + 1)
            said = str(fault) or type(fault).__name__
            log.warning("run %s is tried again in %.1f s: %s", run, wait_ms / 1000, said)
            await self._queue.put_off(run, wait_ms, said[:500])

    async def _resume(self, wake: Wake) -> None:
        if not wake.agent:  # A list of runs that was made by an older release.
            wake = replace(wake, agent=(await standing_of(self._queue.store, wake.run)).agent)
        run, agent = wake.run, self._agent(wake.agent)
        if agent.toolboxes:
            await self._gate.look(wake)  # They are opened for the claim, which may be dear.
        async with AsyncExitStack() as stack:
            handle = await resume(
                self._queue.store,
                run,
                agent,
                clock=self.clock,
                watcher=self,
                lease_ms=self.settings.lease_ms,
                claim=self._gate.claim(wake),
            )
            stack.push_async_callback(self._wake_next, wake)  # once the lease is given back
            await stack.enter_async_context(handle)
            self._handles[run] = handle
            stack.callback(self._handles.pop, run)
            self.counts.taken += 1
            if self._stopping.is_set():
                handle.hand_over()
            state = (await handle.finish()).state
        if state == "running":
            self.counts.handed_over += 1
            await self._queue.put_off(run, 0, "handed over", failed=False)
        else:
            self.counts.rested += 1
            await self._queue.settle(run)

    async def _wake_next(self, wake: Wake) -> None:
        # Where it fails, the upkeep wakes them.
        with suppress(ShiftbookError):
            await self._gate.wake_parked(self._queue, wake)

    def _agent(self, reference: str) -> Agent:
        try:
            return self._load(reference)
        except (AgentUnusable, BadInput) as fault:
            raise AgentUnusable(f"{fault} Nothing was written; the run is left to other workers.") from fault

    def _pause_ms(self, tries: int) -> float:
        most_ms = min(float(PAUSE_MS_MAX), PAUSE_MS_MIN * 2.0 ** min(tries, 16))
        return most_ms / 2 + self._jitter_ms(most_ms / 2)

    def _jitter_ms(self, most_ms: float) -> float:
        return most_ms * int.from_bytes(self.clock.token(4), "big") / 2**32

    async def _rest_ms(self, wait_ms: float) -> None:
        """Wait, or until told to stop."""
        wait = asyncio.create_task(self.clock.sleep_ms(wait_ms))
        stopped = asyncio.create_task(self._stopping.wait())
        await asyncio.wait((wait, stopped), return_when=asyncio.FIRST_COMPLETED)
        await end(wait)
        await end(stopped)

    # A worker looks on at its runs, to count.
    def entry(self, entry: Entry) -> None:
        """An entry was committed."""
        self.counts.entries += 1

    def delta(self, turn: int, attempt: int, event: ReplyEvent) -> None:
        """A piece of a reply came."""

    def progress(self, call: str, message: str) -> None:
        """A tool tells how far it is."""
