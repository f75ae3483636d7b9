"""Runs that have everything in them that a crash can meet, as scripts that say the same after every death.

The model answers by turn number, the tools by their arguments, the person by what happened in the journal; so
an uncrashed run and a crashed one that lost nothing come out the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from shiftbook.clock import Clock
from shiftbook.entries import ActionStarted, Entry, ModelAsked, PersonSaid
from shiftbook.errors import UnknownRun
from shiftbook.journal.promises import Store
from shiftbook.messages import Json, Request, Text, TextDelta
from shiftbook.providers.scripted import Scripted, Step, call, calls, cut, fails, hangs, say
from shiftbook.run.agent import Agent
from shiftbook.run.desk import NoWatcher
from shiftbook.run.limits import Limits
from shiftbook.run.loop import Run, resume, start
from shiftbook.run.mail import inbox_item
from shiftbook.run.summary import Summary
from shiftbook.testing.crash import Seams
from shiftbook.tools.contract import (
    Context,
    DidNotHappen,
    Happened,
    Output,
    Reconciled,
    Tool,
    TryAgain,
)
from shiftbook.tools.function import tool
from tests.crash.virtual import at_once
from tests.crash.world import RUN, WORLD, World

LEASE_MS = 30_000
Script = Mapping[int, Step]


async def pause() -> None:
    """Let others run: a place inside a tool where the process can die."""
    await asyncio.sleep(0)


async def for_ever() -> None:
    """Wait for what never comes."""
    await asyncio.get_running_loop().create_future()


# --- tools, at least two of each repeat policy -----------------------------------------------------


@tool(repeat="safe")
async def look(place: str, context: Context) -> str:
    """Look at a place."""
    world = WORLD.get()
    world.begin(context)
    await pause()
    world.act(context)
    await pause()
    return f"{place}: 12 crates"


@tool(repeat="keyed")
async def pay(amount: int, context: Context) -> str:
    """Pay. The receiver honours the key."""
    world = WORLD.get()
    world.begin(context)
    await pause()
    if not world.happened(context.key):
        world.act(context)
    await pause()
    return f"paid {amount}"


def was_sent(to: str, context: Context) -> Reconciled:
    WORLD.get().ask(context.call)
    return Happened(f"sent to {to}") if WORLD.get().happened(context.key) else DidNotHappen()


async def send_asked(to: str, context: Context) -> Reconciled:
    await pause()
    return was_sent(to, context)


@tool(repeat="reconcile", reconcile=send_asked)
async def send(to: str, context: Context) -> str:
    """Send something; the receiver can tell whether it came."""
    world = WORLD.get()
    world.begin(context)
    await pause()
    world.act(context)
    await pause()
    return f"sent to {to}"


@tool(repeat="reconcile", reconcile=send_asked, timeout_s=60)
async def ship(to: str, context: Context) -> str:
    """Send something slowly: the first attempt hangs before anything happened."""
    world = WORLD.get()
    world.begin(context)
    if context.attempt == 1:
        await for_ever()
    world.act(context)
    await pause()
    return f"sent to {to}"


@tool(repeat="ask")
async def mail(to: str, context: Context) -> str:
    """Write to somebody: never done a second time."""
    world = WORLD.get()
    world.begin(context)
    await pause()
    world.act(context)
    await pause()
    return f"mailed {to}"


@tool(repeat="safe", attempts=3)
async def flaky(context: Context) -> str:
    """Fail once before anything happened."""
    WORLD.get().begin(context)
    await pause()
    if context.attempt == 1:
        raise TryAgain("busy")
    WORLD.get().act(context)
    return "done at last"


@tool(repeat="keyed", attempts=3, timeout_s=30)
async def slow(context: Context) -> str:
    """Hang once, after the receiver was reached."""
    world = WORLD.get()
    world.begin(context)
    if not world.happened(context.key):
        world.act(context)
    if context.attempt == 1:
        await for_ever()
    await pause()
    return "slow but done"


@tool(repeat="safe")
async def wait(minutes: int, context: Context) -> str:
    """Take a long time."""
    WORLD.get().begin(context)
    await asyncio.wait_for(asyncio.shield(_after(minutes)), None)
    WORLD.get().act(context)
    await pause()
    return f"waited {minutes}"


def _after(minutes: int) -> asyncio.Future[None]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def over() -> None:
        if not future.done():
            future.set_result(None)

    loop.call_later(minutes * 60, over)
    return future


@tool(repeat="safe")
async def big(number: int, lines: int, context: Context) -> str:
    """Return a long text; 2,200 lines are more than a row holds."""
    WORLD.get().begin(context)
    await pause()
    WORLD.get().act(context)
    return "\n".join(f"line {line} of report {number}: {line * 7919 % 1000}" for line in range(lines))


@tool(repeat="safe")
async def break_down(context: Context) -> str:
    """Raise."""
    WORLD.get().begin(context)
    await pause()
    raise ValueError("the drawer is stuck")


@tool(repeat="safe")
async def ring(text: str, context: Context) -> str:
    """Meanwhile a person writes."""
    WORLD.get().begin(context)
    await pause()
    write(WORLD.get(), f"ring-{context.call}", text)
    WORLD.get().act(context)
    return "rang"


TOOLS = (look, pay, send, ship, mail, flaky, slow, wait, big, break_down, ring)


def write(world: World, item: str, text: str) -> None:
    """A person's message, put into the inbox by another process, once."""
    assert world.peek is not None
    try:
        at_once(world.peek.inbox.put(RUN, inbox_item(item, PersonSaid((Text(text),)), 1)))
    except UnknownRun:
        return  # There is no run yet, and whoever writes is told so.
    if item not in world.posted:
        world.posted.append(item)


# --- scenarios --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """`stops` and `cancels` say at which call's start, or during which turn's reply, the person steps in."""

    name: str
    script: Script
    policy: str = "window"
    cap: int = 9_000
    stops: frozenset[str] = frozenset()
    cancels: frozenset[str] = frozenset()
    last: str = "All done."
    tools: tuple[Any, ...] = TOOLS
    limits: Limits = field(default_factory=lambda: Limits(parallel=2, snapshot_every=9))

    def answer(self, request: Request) -> Step:
        """What the model says in a turn."""
        return self.script.get(request.turn, say(self.last))

    def agent(
        self, world: World, seams: Seams, change: Callable[[Agent], Agent] = lambda agent: agent
    ) -> Agent:
        """The agent as one process has it."""

        def answered(request: Request) -> Step:
            world.answer(request)
            return self.answer(request)

        agent = change(
            Agent(
                name=self.name,
                model=Scripted(answered),
                instructions="Keep the store in order.",
                tools=cast("tuple[Tool, ...]", self.tools),
                policy=self.policy,
                cap=self.cap,
                limits=self.limits,
            )
        )
        wrapped = seams.agent(agent)
        return change_tools(wrapped, lambda each: cast(Tool, Told(each, world)))


def change_tools(agent: Agent, change: Callable[[Tool], Tool]) -> Agent:
    """The agent with each tool changed."""
    return replace(agent, tools=tuple(change(each) for each in agent.tools))


class Told:
    """Notes when the engine has been given a call's result."""

    def __init__(self, inner: Tool, world: World) -> None:
        self._inner, self._world = inner, world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def run(self, arguments: Mapping[str, Json], context: Context) -> Output:
        try:
            output = await self._inner.run(arguments, context)
        except TryAgain:
            raise
        except Exception:
            self._world.told.add(context.call)
            raise
        self._world.told.add(context.call)
        return output


LONG = Scenario(
    "long",
    {
        1: calls(
            call("look", {"place": "A"}),
            call("pay", {"amount": 5}),
            call("mail", {"to": "Ann"}),
            call("send", {"to": "Bob"}),
            call("look", {"plaice": "A"}),
            call("juggle", {"balls": 3}),
            call("pay", {"amount": 5}),
            text="I begin.",
        ),
        2: fails(
            status=529,
            times=2,
            retry_after_ms=2_500,
            then=calls(call("flaky"), call("slow"), call("wait", {"minutes": 2})),
        ),
        3: cut(after="I was about to say that the stock is", times=None),
        4: calls(call("big", {"number": 1, "lines": 2_200}), call("ring", {"text": "Please hurry."})),
        5: cut(after="", then=calls(call("ship", {"to": "Cid"}), call("break_down"))),
        6: calls(call("pay", {"amount": 5}), call("look", raw='{"place": '), call("mail", {"to": "Dora"})),
        7: calls(call("wait", {"minutes": 3}), call("look", {"place": "B"}), call("send", {"to": "Eve"})),
        8: calls(call("big", {"number": 2, "lines": 180})),
        9: hangs(times=None, part="Let me think about this for a while, since it is"),
        10: calls(call("big", {"number": 3, "lines": 180}), call("pay", {"amount": 7})),
        11: calls(call("big", {"number": 4, "lines": 60}), call("look", {"place": "C"})),
    },
    stops=frozenset({"7.1", "turn 9"}),
)

SHORT = Scenario(
    "short",
    {
        1: calls(call("look", {"place": "A"}), call("mail", {"to": "Ann"}), call("wait", {"minutes": 1})),
        2: fails(then=calls(call("pay", {"amount": 5}), call("send", {"to": "Bob"}))),
        3: calls(call("ring", {"text": "One more thing."}), call("pay", {"amount": 5})),
    },
    tools=(look, mail, wait, pay, send, ring),
    limits=Limits(parallel=2, snapshot_every=5),
)

CANCELLED = Scenario(
    "cancelled",
    {
        1: calls(call("pay", {"amount": 1}), call("wait", {"minutes": 9}), call("look", {"place": "A"})),
        2: hangs(times=None, part="I will now"),
        3: calls(call("send", {"to": "Bob"})),
    },
    policy="transcript",
    cap=100_000,
    cancels=frozenset({"1.2", "turn 2"}),
)

TINY = Scenario(
    "tiny",
    {1: calls(call("pay", {"amount": 5}), call("mail", {"to": "Ann"}), call("send", {"to": "Bob"}))},
    policy="transcript",
    cap=100_000,
    tools=(pay, mail, send),
    limits=Limits(parallel=2, snapshot_every=3),
)

SCENARIOS = {scenario.name: scenario for scenario in (LONG, SHORT, CANCELLED, TINY)}


# --- the person at the controls, and one process ------------------------------------------------------


class Person(NoWatcher):
    """Looks on, stops or cancels where the scenario says so, and repeats a wish that died with a process."""

    def __init__(self, scenario: Scenario, world: World) -> None:
        self.scenario, self.world = scenario, world
        self.run: Run | None = None

    def entry(self, entry: Entry) -> None:
        if isinstance(entry.what, ActionStarted):
            self._want(entry.what.call)

    def delta(self, turn: int, attempt: int, event: object) -> None:
        if isinstance(event, TextDelta):
            self._want(f"turn {turn}")

    def _want(self, where: str) -> None:
        if self.run is not None and where in self.scenario.stops:
            self.wish("stop")
        if self.run is not None and where in self.scenario.cancels:
            self.wish("cancel")

    def wish(self, wish: str) -> None:
        """Say it to the run."""
        assert self.run is not None
        self.world.wish = wish
        if wish == "stop":
            self.run.stop()
        elif wish == "cancel":
            self.run.cancel()


async def take_up(
    scenario: Scenario,
    world: World,
    store: Store,
    clock: Clock,
    seams: Seams,
    change: Any = lambda agent: agent,
) -> tuple[Run, Person]:
    """Resume the run, or start it where no process came as far as that."""
    agent = scenario.agent(world, seams, change)
    person = Person(scenario, world)
    try:
        run = await resume(store, RUN, agent, clock=clock, watcher=person, lease_ms=LEASE_MS)
    except UnknownRun:
        run = await start(
            store, agent, "Count the crates.", run=RUN, clock=clock, watcher=person, lease_ms=LEASE_MS
        )
    person.run = run
    return run, person


async def work(run: Run, person: Person) -> Summary:
    """Go on until the run is finished and stays so."""
    world = person.world
    if world.wish != "go":
        person.wish(world.wish)
    summary = await run.finish()
    while True:
        if summary.state == "cancelled":
            turn = max(entry.what.turn for entry in world.journal() if isinstance(entry.what, ModelAsked))
            write(world, f"go-on-{turn}", "Go on all the same.")
        elif summary.state not in ("paused", "finished"):
            return summary
        world.wish = "go"
        before, summary = len(world.journal()), await run.finish()
        if len(world.journal()) == before:
            return summary


async def shift(
    scenario: Scenario,
    world: World,
    store: Store,
    clock: Clock,
    seams: Seams,
    change: Any = lambda agent: agent,
) -> Summary:
    """What one process does, from its start to the end of the run or of itself."""
    run, person = await take_up(scenario, world, store, clock, seams, change)
    async with run:
        return await work(run, person)
