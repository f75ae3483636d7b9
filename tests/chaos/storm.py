"""The storm: queued runs with keyed actions, workers that are hurt in every way, and an audit at the end.

What happens when goes by progress, not by time: a fault strikes when the service has acted so often. Which
fault, and which worker, is drawn from the seed. A frozen worker is woken only when its leases are gone, so
that it comes back as a zombie; a partition ends then too. From the moment of each death it is measured how
long it takes until another worker has taken each run that the dead one held.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psycopg

from shiftbook.clock import SystemClock
from shiftbook.entries import PersonSaid
from shiftbook.journal.open import open_store
from shiftbook.journal.postgres import PostgresStore
from shiftbook.run.mail import content_of, inbox_item
from shiftbook.run.reference import load_agent
from shiftbook.workers import Queue, open_queue
from shiftbook.workers.entering import enter
from tests.chaos.audit import Verdict, audit, set_auditor
from tests.chaos.ground import Crew, Hand, held_by
from tests.chaos.lulls import Lulls
from tests.crash.receiver import Receiver
from tests.postgres import Server

REFERENCE = "tests.chaos.desk:agent"
LOOK_MS = 50
"""How often the storm looks how things stand."""

AT_REST = """
SELECT (SELECT count(*) FROM shiftbook.runs WHERE state <> 'finished'),
    (SELECT count(*) FROM shiftbook.inbox WHERE moved_to IS NULL),
    (SELECT count(*) FROM shiftbook_queue.queued_runs WHERE due IS NOT NULL),
    (SELECT count(*) FROM shiftbook_queue.procrastinate_jobs WHERE lock IS NOT NULL)
"""


@dataclass(frozen=True)
class Plan:
    """How hard the storm is. `waits_s` bounds the whole: a storm that hangs is a failure that says so."""

    runs: int = 200
    messages: int = 40
    seed: int = 1
    lease_ms: int = 5_000
    waits_s: int = 900
    kills: int = 8
    freezes: int = 6
    restarts: Sequence[str] = ("fast", "immediate")
    cuts: int = 5
    partitions: int = 2
    fenceless: bool = False
    first_at: int = 20
    """Effects before the first fault."""
    every: int = 60
    """Effects between two faults."""


@dataclass
class Report:
    """What the storm did, and what came of it."""

    faults: list[str] = field(default_factory=list)
    takeovers_ms: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0
    lull_ms: float = 0
    """The longest that the service was asked for nothing while there was something to do."""
    verdict: Verdict = field(default_factory=Verdict)


class Storm:
    """One storm over one crew."""

    def __init__(self, plan: Plan, server: Server, crew: Crew, receiver: Receiver) -> None:
        self.plan, self.server, self.crew, self.receiver = plan, server, crew, receiver
        self.chance = random.Random(plan.seed)
        self.clock = SystemClock()
        self.report = Report()
        self.runs: list[str] = []
        self.late = ""
        self._one_at_a_time = asyncio.Lock()
        self._began_ms = self.clock.steady_ms()

    async def go(self) -> Report:
        """Do it all."""
        store = await open_store(self.crew.address)
        assert isinstance(store, PostgresStore)
        queue = await open_queue(store, create=True)
        assert queue is not None
        try:
            set_auditor(self.crew.address)
            if self.plan.fenceless:
                take_fence_away(self.server, self.crew.address)
            for hand in self.crew.hands:
                self.crew.start(hand)
            try:
                async with asyncio.timeout(self.plan.waits_s), asyncio.TaskGroup() as beside:
                    watch = beside.create_task(self._watch())
                    await self._blow(queue)
                    await self._until(self._is_at_rest, 200)
                    watch.cancel()
            except TimeoutError:
                self.late = f"the storm did not end within {self.plan.waits_s} s"
        finally:
            await store.close()
        self.report.seconds = (self.clock.steady_ms() - self._began_ms) / 1000
        for hand in self.crew.hands:
            self.crew.signal(hand, signal.SIGCONT)
        self.report.verdict = await audit(self.crew.address, self.receiver, self.runs)
        if self.late:
            self.report.verdict.faults.append(self.late)
        return self.report

    async def _watch(self) -> None:
        """Tell how things stand when nothing goes on for longer than two leases."""
        lulls = Lulls(self.crew.address, self.plan.lease_ms, 2.0 * self.plan.lease_ms)
        while True:
            if told := await lulls.see(self.receiver.acted, self.clock.steady_ms()):
                self._note(f"{told}; {len(self._left())} are up and left alone")
            self.report.lull_ms = lulls.longest_ms
            await self.clock.sleep_ms(LOOK_MS)

    async def _blow(self, queue: Queue) -> None:
        """Put runs into the queue, which are at work from the first on, then mail while faults strike."""
        async with asyncio.TaskGroup() as tasks:
            agent = load_agent(REFERENCE)
            for number in range(self.plan.runs):
                run = f"run{number:04}"
                await enter(queue, agent, "Charge.", run=run, priority=number % 3)
                self.runs.append(run)
            tasks.create_task(self._strike())
            for number in range(self.plan.messages):
                # Mail for runs at rest, at work, and waiting, as it comes.
                await self._until(partial(self._acted, self._goal(number, self.plan.messages)))
                item = inbox_item(f"mail-{number}", PersonSaid(content_of("Again.")), self.clock.now_ms())
                await queue.send(self.chance.choice(self.runs), item)

    def _goal(self, number: int, of: int) -> int:
        """So many effects before the `number`-th message: all of them come within the first two thirds."""
        return (number + 1) * self.plan.runs * 6 // (of + 1)

    async def _acted(self, times: int) -> bool:
        return self.receiver.acted >= times

    async def _is_at_rest(self) -> bool:
        """Whether every run is finished and nothing waits or is due."""

        def ask() -> bool:
            with psycopg.connect(self.crew.address, autocommit=True) as connection:
                return connection.execute(AT_REST).fetchone() == (0, 0, 0, 0)

        try:
            return await asyncio.to_thread(ask)
        except psycopg.OperationalError:
            return False

    async def _until(self, holds: Callable[[], Awaitable[bool]], look_ms: float = LOOK_MS) -> None:
        while not await holds():
            await self.clock.sleep_ms(look_ms)

    # --- what is done to the workers and the database --------------------------------------------------

    def _drawn(self) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        """The faults in their order: partitions need a worker that stands in a namespace."""
        plan = self.plan
        faults: list[Callable[[], Coroutine[Any, Any, None]]] = [self._kill] * plan.kills + [
            self._freeze
        ] * plan.freezes
        faults += [partial(self._restart, how) for how in plan.restarts] + [self._cut] * plan.cuts
        if any(hand.space is not None for hand in self.crew.hands):
            faults += [self._partition] * plan.partitions
        self.chance.shuffle(faults)
        return faults

    async def _strike(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number, fault in enumerate(self._drawn()):
                await self._until(partial(self._acted, self.plan.first_at + number * self.plan.every))
                tasks.create_task(fault())

    async def _victim(self, *, apart: bool = False) -> tuple[Hand, dict[str, int]] | None:
        """A worker that nothing is done to now, and the runs that it holds; None when all work is done."""
        hands = self.crew.hands
        while True:
            if len(self.runs) == self.plan.runs and await self._is_at_rest():
                self._note("nobody holds a run any more: a fault less")
                return None
            left = self._left()
            free = [hand for hand in left if (hand.space is not None) == apart]
            if len(left) <= max(1, len(hands) // 2):
                free = []  # Somebody has to be left to take over.
            for hand in self.chance.sample(free, len(free)):
                lives = hand.lives
                held = await self._held(hand)
                if held and not hand.busy and hand.lives == lives:
                    hand.busy = True
                    return hand, held
            await self.clock.sleep_ms(LOOK_MS)

    def _left(self) -> list[Hand]:
        """The workers that are up and that nothing is done to."""
        return [hand for hand in self.crew.hands if not hand.busy and self.crew.is_up(hand)]

    async def _held(self, hand: Hand) -> dict[str, int]:
        try:
            return await asyncio.to_thread(held_by, self.crew.address, hand.host)
        except psycopg.OperationalError:
            return {}

    def _note(self, told: str) -> None:
        at_s = (self.clock.steady_ms() - self._began_ms) / 1000
        self.report.faults.append(f"{at_s:7.1f} s  {told}")

    async def _kill(self) -> None:
        victim = await self._victim()
        if victim is None:
            return
        hand, held = victim
        self.crew.signal(hand, signal.SIGKILL)
        assert hand.process is not None
        await asyncio.to_thread(hand.process.wait)
        self._note(f"SIGKILL of {hand.host}, which held {len(held)} runs")
        self.crew.start(hand)
        hand.busy = False
        await self._taken_over("SIGKILL", held)

    async def _freeze(self) -> None:
        victim = await self._victim()
        if victim is None:
            return
        hand, held = victim
        self.crew.signal(hand, signal.SIGSTOP)
        self._note(f"SIGSTOP of {hand.host}, which held {len(held)} runs")
        await self._taken_over("SIGSTOP", held)
        self.crew.signal(hand, signal.SIGCONT)
        self._note(f"SIGCONT of {hand.host}, its leases gone")
        hand.busy = False

    async def _partition(self) -> None:
        victim = await self._victim(apart=True)
        if victim is None:
            return
        hand, held = victim
        assert hand.space is not None
        hand.space.plug("down")
        self._note(f"{hand.host} is cut from the network; it held {len(held)} runs")
        await self._taken_over("partition", held)
        hand.space.plug("up")
        self._note(f"{hand.host} is back on the network")
        hand.busy = False

    async def _restart(self, how: str) -> None:
        async with self._one_at_a_time:
            self._note(f"PostgreSQL is stopped ({how}) and started")
            await asyncio.to_thread(self.server.stop, how)
            await asyncio.to_thread(self.server.start)

    async def _cut(self) -> None:
        ask = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE application_name LIKE 'shiftbook%' AND pid <> pg_backend_pid()"
        )

        def cut() -> int:
            with psycopg.connect(self.server.address, autocommit=True) as connection:
                found = connection.execute(ask).fetchone()
                return 0 if found is None else int(found[0])

        try:
            self._note(f"{await asyncio.to_thread(cut)} connections are terminated by the server")
        except psycopg.OperationalError:
            self._note("there was no server to terminate connections")

    async def _taken_over(self, death: str, held: dict[str, int]) -> None:
        """Wait until nobody holds any of the runs by its old lease epoch; note how long each took.

        A run may have come to rest in the moment of the death: then its lease was given back.
        """
        began_ms = self.clock.steady_ms()
        left = dict(held)
        while left:
            for run, epoch, free in await self._leases(list(left)):
                if epoch > left[run]:
                    took_ms = self.clock.steady_ms() - began_ms
                    self.report.takeovers_ms.setdefault(death, []).append(took_ms)
                if epoch > left[run] or free:
                    del left[run]
            await self.clock.sleep_ms(LOOK_MS)

    async def _leases(self, runs: list[str]) -> list[tuple[str, int, bool]]:
        def ask() -> list[tuple[str, int, bool]]:
            with psycopg.connect(self.crew.address, autocommit=True) as connection:
                return connection.execute(
                    "SELECT run, epoch, host IS NULL FROM shiftbook.leases WHERE run = ANY (%s)", (runs,)
                ).fetchall()

        try:
            return await asyncio.to_thread(ask)
        except psycopg.OperationalError:
            return []


EPOCH_CHECK, NEVER = "<> in_epoch", "< 0"


def take_fence_away(server: Server, address: str) -> None:
    """Break the store: an append is checked for everything but the lease epoch."""
    ((made,),) = server.sql(
        address,
        "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = 'admit' AND pronamespace = "
        "'shiftbook'::regnamespace",
    )
    text = str(made)
    assert text.count(EPOCH_CHECK) == 1, "the store checks the lease epoch in another place now"
    server.sql(address, text.replace(EPOCH_CHECK, NEVER))


def hands(workers: int, skew_ms: int, space: object = None) -> list[Hand]:
    """The crew's places: the second and third have clocks that are off, the last stands in the namespace."""
    made = [Hand(number) for number in range(1, workers + 1)]
    for hand, skew in zip(made[1:], (skew_ms, -skew_ms), strict=False):
        hand.skew_ms = skew
    if space is not None:
        made[-1].space = space  # type: ignore[assignment]
    return made
