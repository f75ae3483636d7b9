"""What a desk is set with: an agent as it is now, declared and measured; and another look at its toolboxes.

An agent that cannot be run is refused here, before anything is written. Tools that a toolbox has changed are
taken at the boundary of a turn or a dispatch and nowhere else.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from shiftbook.clock import Clock
from shiftbook.entries import ModelInterrupted, ReportFailed, Warned
from shiftbook.errors import AgentMistake, CapTooSmall
from shiftbook.journal.promises import Lease, Store
from shiftbook.policies import policy_named
from shiftbook.projections.view import RunView
from shiftbook.prompt.epoch import EpochPrompt
from shiftbook.prompt.grow import first_prompt
from shiftbook.prompt.measure import Gauge
from shiftbook.providers.promise import Provider
from shiftbook.run.agent import Agent, declare
from shiftbook.run.book import Book
from shiftbook.run.desk import Desk, Watcher, facts_of
from shiftbook.run.indexing import RunIndex
from shiftbook.run.noting import set_rules


class Setting:
    """What a desk is set with before the run itself is known; refuses an agent that cannot be run."""

    def __init__(self, store: Store, agent: Agent, clock: Clock, watcher: Watcher) -> None:
        self.store, self.agent, self.clock, self.watcher = store, agent, clock, watcher
        _refuse_clashes(agent)
        self.models = (agent.model, *agent.fallback)
        self.declaration = declare(agent)
        self.tools = {tool.name: tool for tool in agent.all_tools}
        self.schemas = tuple(tool.schema for tool in self.tools.values())
        self.gauge = Gauge(agent.told, self.schemas, filler=agent.fixed)
        self.gauge.check(agent.cap)
        own_writer = [] if isinstance(agent.report, str) else [agent.report]
        for model in (*self.models, *own_writer):
            ready = getattr(model, "check", None)
            if ready is not None:
                ready()

    def go_on(self, view: RunView) -> None:
        """Take the model that the run was with, unless it rests because none of them could be had."""
        for model in self.models[1:]:
            if model.name == view.model and view.state != "failed":
                self.agent = _with(self.agent, self.models, model)
                self.declaration = declare(self.agent)

    def desk(self, book: Book, view: RunView, prompt: EpochPrompt) -> Desk:
        """The desk for that run."""
        book.on_entry = self.watcher.entry
        index = RunIndex(
            self.store,
            book.run,
            lambda what, why: desk.note(Warned(what, why)),
            is_wanted=self.agent.recalls,
            vectors=self.agent.vectors,
        )
        desk = Desk(
            book=book,
            view=view,
            prompt=prompt,
            agent=self.agent,
            models=self.models,
            declaration=self.declaration,
            policy=policy_named(self.agent.policy),
            gauge=self.gauge,
            watcher=self.watcher,
            tools=self.tools,
            facts=facts_of(self.tools),
            schemas=self.schemas,
            index=index,
        )
        return desk


def take_model(desk: Desk, model: Provider) -> None:
    """Go on with another of the agent's models; it is declared with the next thing that the run does."""
    desk.agent = _with(desk.agent, desk.models, model)
    desk.declaration = declare(desk.agent)


def _with(agent: Agent, models: tuple[Provider, ...], model: Provider) -> Agent:
    """The agent with that one of its models in use."""
    return replace(agent, model=model, fallback=tuple(each for each in models if each is not model))


def fall_back(desk: Desk) -> None:
    """Go on with the model after the one in use, and say so."""
    model = desk.models[desk.models.index(desk.agent.model) + 1]
    gone = desk.agent.model.name
    desk.note(Warned("model changed", f"The model {gone} cannot be had; the run goes on with {model.name}."))
    take_model(desk, model)


async def open_toolboxes(agent: Agent) -> None:
    """Open what the agent's tools come from. Raises `AgentUnusable`, and then none is open."""
    async with AsyncExitStack() as opened:
        for box in agent.toolboxes:
            await box.open()
            opened.push_async_callback(box.close)
        opened.pop_all()


async def close_toolboxes(agent: Agent) -> None:
    """Close what `open_toolboxes` has opened: all of it, whatever comes of one."""
    async with AsyncExitStack() as opened:
        for box in agent.toolboxes:
            opened.push_async_callback(box.close)


async def let_go(store: Store, agent: Agent, lease: Lease | None) -> None:
    """Give the lease back and close the toolboxes, whatever comes of the first."""
    try:
        if lease is not None:
            await store.leases.give_back(lease)
    finally:
        await close_toolboxes(agent)


def declare_changes(desk: Desk) -> bool:
    """Stage what has changed of the agent since it was last declared; whether anything has.

    Its author's rules as well; what is fresh after that comes with the next request.
    """
    declaration, view = desk.declaration.entry, desk.view
    if (view.declaration, view.model, view.policy, view.cap, view.contracts) == (
        declaration.declaration,
        declaration.model,
        declaration.policy,
        declaration.cap,
        declaration.contracts,
    ):
        return set_rules(desk)
    desk.note(declaration, blobs={declaration.declaration: desk.declaration.blob})
    if view.prompt_epoch == 0:
        desk.prompt = first_prompt(view.declaration, desk.gauge)
    if view.ask is not None:
        desk.note(ModelInterrupted(view.ask.turn, (), "the agent was changed before the reply came"))
    if view.report is not None and view.report.asked:
        why = "the agent was changed before the report came"
        desk.note(ReportFailed(view.report.failures + 1, why))
    set_rules(desk)
    return True


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look at the toolboxes found; `too_big` are the tokens of a fixed part that passes the cap."""

    changed: bool = False
    too_big: int | None = None


async def look_again(desk: Desk) -> Looked:
    """Take the tools as they are now. What is staged is committed before a server is asked."""
    boxes = desk.agent.toolboxes
    if any(box.stale for box in boxes):
        await desk.book.commit()
        for box in boxes:
            if box.stale:
                await box.refresh()
    tools = desk.agent.all_tools
    if tools == tuple(desk.tools.values()):
        return Looked()
    schemas = tuple(tool.schema for tool in tools)
    gauge = Gauge(desk.agent.told, schemas, filler=desk.agent.fixed)
    try:
        gauge.check(desk.agent.cap)
    except CapTooSmall as fault:
        return Looked(too_big=fault.fixed)
    gauge.use(desk.gauge.meter_in_use)
    for name in sorted(_clashes(desk.agent)):
        desk.note(Warned("tool left out", f"A toolbox has a tool {name!r}, and so has another before it."))
    desk.tools = {tool.name: tool for tool in tools}
    desk.facts, desk.schemas, desk.gauge = facts_of(desk.tools), schemas, gauge
    desk.declaration = declare(desk.agent)
    return Looked(changed=True)


def _clashes(agent: Agent) -> set[str]:
    names = [tool.name for tool in (*agent.tools, *agent.own_book)]
    names += [tool.name for box in agent.toolboxes for tool in box.tools]
    return {name for name in names if names.count(name) > 1}


def _refuse_clashes(agent: Agent) -> None:
    for name in sorted(_clashes(agent)):
        raise AgentMistake(
            f"Two tools are called {name!r}, one of them from a toolbox: give the agent's own another name, "
            "or tell the toolbox which names are taken."
        )
