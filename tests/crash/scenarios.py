"""Runs that have everything in them that a crash can meet, as scripts that say the same after every death.

The model answers by turn number, the tools by their arguments, the person by what happened in the journal; so
an uncrashed run and a crashed one that lost nothing come out the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from shiftbook.clock import Clock
from shiftbook.entries import ActionStarted, Entry, ModelAsked
from shiftbook.errors import UnknownRun
from shiftbook.journal.promises import Store
from shiftbook.messages import Json, Request, Text, TextDelta
from shiftbook.providers.scripted import Scripted, Step, call, calls, cut, fails, hangs, say
from shiftbook.run.agent import Agent
from shiftbook.run.desk import NoWatcher
from shiftbook.run.limits import Limits
from shiftbook.run.loop import Run, resume, start
from shiftbook.run.summary import Summary
from shiftbook.testing.crash import Seams
from shiftbook.tools.contract import (
    Context,
    Output,
    Tool,
    TryAgain,
)
from tests.crash.tools import TOOLS, big, look, mail, pay, ring, send, wait, write
from tests.crash.world import RUN, World

LEASE_MS = 30_000
Script = Mapping[int, Step]


# --- scenarios --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """`stops` and `cancels` say at which call's start, or during which turn's reply, the person steps in."""

    name: str
    script: Script
    policy: str = "window"
    cap: int = 9_000
    mark: int | None = None
    report: str = "mechanical"
    stops: frozenset[str] = frozenset()
    cancels: frozenset[str] = frozenset()
    last: str = "All done."
    tools: tuple[Any, ...] = TOOLS
    limits: Limits = field(default_factory=lambda: Limits(parallel=2, snapshot_every=9))

    def answer(self, request: Request) -> Step:
        """What the model says in a turn, or for a report."""
        if request.purpose == "report":
            return report_on(request)
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
                mark=self.mark,
                report=self.report,
                limits=self.limits,
            )
        )
        wrapped = seams.agent(agent)
        return change_tools(wrapped, lambda each: cast(Tool, Told(each, world)))


def report_on(request: Request) -> Step:
    """A report of one line on the first answers that are named; the provider is overloaded at first."""
    words = "\n".join(part.text for part in request.blocks[-1].parts if isinstance(part, Text))
    first, *_ = re.findall(r"^(\d+): done ", words, re.MULTILINE)
    return fails(status=529, then=say(f'[{{"text": "Reports were read.", "cites": [{first}]}}]'))


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

REPORTED = Scenario(
    "reported",
    {
        1: calls(call("look", {"place": "A"}), call("pay", {"amount": 5})),
        **{turn: calls(call("big", {"number": turn, "lines": 60})) for turn in range(2, 7)},
        7: calls(call("mail", {"to": "Ann"}), call("ring", {"text": "Please hurry."})),
        8: calls(call("pay", {"amount": 7})),
    },
    policy="journal",
    cap=5_600,
    mark=2_800,
    report="model",
    tools=(look, pay, big, mail, ring),
    limits=Limits(parallel=2, snapshot_every=5),
)

RECALLING = Scenario(
    "recalling",
    {
        1: calls(call("big", {"number": 1, "lines": 140}), call("look", {"place": "A"})),
        2: calls(call("big", {"number": 2, "lines": 140}), call("pay", {"amount": 5})),
        3: calls(call("big", {"number": 3, "lines": 140})),
        4: calls(call("big", {"number": 4, "lines": 20}), call("ring", {"text": "What did report 1 say?"})),
        5: calls(call("pay", {"amount": 7})),
    },
    policy="journal",
    cap=6_000,
    tools=(look, pay, big, ring),
    limits=Limits(parallel=2, snapshot_every=7),
)
"""An epoch ends, older entries come back for it, and again for a message that a person writes meanwhile."""

SCENARIOS = {scenario.name: scenario for scenario in (LONG, SHORT, CANCELLED, TINY, REPORTED, RECALLING)}


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
