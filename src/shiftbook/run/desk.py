"""What the holder of a run has before it: the book, the view, the prompt, the agent's tools.

One desk a taking of the lease. It is plain state: `loop` asks `step` what is next and hands the desk to the
function that does it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from shiftbook.clock import Clock
from shiftbook.entries import MODEL_VISIBLE, Entry, ModelAnswered, ModelAsked, ReportAsked, What
from shiftbook.messages import ReplyEvent, ToolSchema
from shiftbook.policies.promise import Policy
from shiftbook.projections.knowledge import Knowledge, learn
from shiftbook.projections.view import RunView, fold
from shiftbook.prompt.epoch import EpochPrompt
from shiftbook.prompt.measure import Gauge
from shiftbook.providers.promise import Provider
from shiftbook.run.agent import Agent, Declaration
from shiftbook.run.answer import Unfit
from shiftbook.run.book import Book
from shiftbook.run.booktools import BookTool
from shiftbook.run.indexing import RunIndex
from shiftbook.run.step import Situation, ToolFacts
from shiftbook.tools.contract import Tool, contract_digest


class Watcher(Protocol):
    """Somebody who looks on. Exceptions of a watcher end the run like any other fault of the process."""

    def entry(self, entry: Entry) -> None:
        """An entry was committed."""
        ...

    def delta(self, turn: int, attempt: int, event: ReplyEvent) -> None:
        """A piece of a reply came; what came under an older attempt at the turn is superseded."""
        ...

    def progress(self, call: str, message: str) -> None:
        """A tool tells how far it is. Called on the loop's thread."""
        ...


class NoWatcher:
    """Nobody looks on."""

    def entry(self, entry: Entry) -> None: ...

    def delta(self, turn: int, attempt: int, event: ReplyEvent) -> None: ...

    def progress(self, call: str, message: str) -> None: ...


@dataclass(slots=True)
class Desk:
    """The state of one shift. Only `loop` and the functions that it calls write to it."""

    book: Book
    view: RunView
    prompt: EpochPrompt
    agent: Agent
    models: tuple[Provider, ...]
    """The agent's model and those that take over from it, in their order; `agent.model` is the one in use."""
    declaration: Declaration
    policy: Policy
    gauge: Gauge
    watcher: Watcher
    tools: Mapping[str, Tool]
    facts: Mapping[str, ToolFacts]
    schemas: tuple[ToolSchema, ...]
    index: RunIndex
    """What older entries are found by."""
    knowledge: Knowledge = field(default_factory=Knowledge)
    """What the run knows: rules, statements, plan, tallies, working set."""
    fresh: list[Entry] = field(default_factory=list)
    """Model-visible entries that no prompt of this epoch holds yet."""
    brought: dict[int, Entry] = field(default_factory=dict)
    """The older entries that a recall among the fresh ones names."""
    asked_ms: int | None = None
    """The stamp of the last request, None before the first."""
    spreads: dict[str, float | None] = field(default_factory=dict)
    """Of each model in use, what writing a token costs beyond reading it, in reads; None: not known."""
    media: dict[str, bytes] = field(default_factory=dict)
    """The bytes of the prompt's images and files, read once an epoch."""
    mail: bool = False
    wish: Literal["go", "stop", "cancel"] = "go"
    why: str = ""
    leaving: bool = False
    """Somebody else is to go on with the run: no further act is begun."""
    pausing: asyncio.Task[object] | None = None
    """The model request that waits before its next attempt, and may be given up for a hand-over."""
    announced: bool = False
    """The open request was committed just now, so the lease was ours a moment ago."""
    in_flight: set[asyncio.Task[object]] = field(default_factory=set)
    """Tasks that a wish may cut short: the model request, and the actions on "cancel"."""
    reply: ModelAnswered | None = None
    """The last whole reply, once there was one in this handle or the agent declares what it has to be."""
    _judged: tuple[ModelAnswered, str | None] | None = None
    cancellations: set[threading.Event] = field(default_factory=set)
    """`Context.cancelled` of every attempt that runs: set on "cancel", and when the attempt's time is up."""

    @property
    def clock(self) -> Clock:
        """The run's clock."""
        return self.book.clock

    def leave(self) -> None:
        """Begin no further act; a wait before the next attempt at a request is given up."""
        self.leaving = True
        if self.pausing is not None:
            self.pausing.cancel()

    @property
    def gap_ms(self) -> int | None:
        """The time since the run's prompt was last read by its provider; None before the first request."""
        return None if self.asked_ms is None else max(self.clock.now_ms() - self.asked_ms, 0)

    def situation(self) -> Situation:
        """What `step` needs to know beside the view."""
        return Situation(
            epoch=self.book.lease.epoch,
            tools=self.facts,
            mail=self.mail,
            wish=self.wish,
            why=self.why,
            conversational=self.agent.conversational,
            turns=getattr(self.agent.model, "turns", None),
            others=len(self.models) - 1 - self.models.index(self.agent.model),
            is_paused=self.prompt.is_paused,
            unfit=self._unfit(),
        )

    def _unfit(self) -> str | None:
        """Why the reply that would end the task is not the declared output; judged once for each reply."""
        view, reply, shape = self.view, self.reply, self.agent.shape
        if shape is None or reply is None or view.calls or view.owed or view.ask is not None:
            return None
        if self._judged is None or self._judged[0] is not reply:
            try:
                shape.read(reply)
            except Unfit as fault:
                self._judged = (reply, str(fault))
            else:
                self._judged = (reply, None)
        return self._judged[1]

    def note(
        self, what: What, *, blobs: Mapping[str, bytes] | None = None, taken: str | None = None
    ) -> Entry:
        """Stage an entry and fold it: from here on it has happened, and the next commit writes it."""
        entry = self.book.stage(what, blobs=blobs, taken=taken)
        self.take(entry)
        return entry

    def take(self, entry: Entry) -> None:
        """Fold an entry that is in the journal or staged for it."""
        fold(self.view, entry)
        learn(self.knowledge, entry)
        if isinstance(entry.what, ModelAnswered):
            self.reply = entry.what
        elif reads_prompt(entry.what):
            self.asked_ms = entry.at_ms
        if type(entry.what) in MODEL_VISIBLE:
            self.fresh.append(entry)


def reads_prompt(what: What) -> bool:
    """Whether it is a request that a provider reads the run's prompt for, so that its cache is warm again."""
    return type(what) is ModelAsked or (type(what) is ReportAsked and what.extends)


def facts_of(tools: Mapping[str, Tool]) -> Mapping[str, ToolFacts]:
    """What `step` knows of each tool."""
    return {
        name: ToolFacts(tool.repeat, contract_digest(tool), isinstance(tool, BookTool))
        for name, tool in tools.items()
    }
