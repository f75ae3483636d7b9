"""An agent: a model, instructions and tools, and how its prompt is made.

An agent is a value. Starting a run writes down what it is (`AgentDeclared`), so that the record can be read
and checked without it; only `run` and `resume` need the agent itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shiftbook import canonical
from shiftbook.codec import Redact, blob_hash
from shiftbook.entries import AgentDeclared
from shiftbook.errors import AgentMistake
from shiftbook.messages import Json
from shiftbook.observers.promise import Observer
from shiftbook.policies import policy_named
from shiftbook.projections.keys import key_fault
from shiftbook.prompt.epoch import RecallRoom
from shiftbook.prompt.recall_question import CONVERSING, WORKING
from shiftbook.prompt.report import MECHANICAL
from shiftbook.providers.promise import Provider
from shiftbook.run.answer import Shape, shape_of
from shiftbook.run.booktools import BookTool, book_tools_named
from shiftbook.run.limits import Limits, check_number
from shiftbook.tools.contract import Tool, contract_digest, stable_schema
from shiftbook.tools.toolbox import Toolbox
from shiftbook.vectors.promise import Vectors

CAP_DEFAULT = 100_000
"""Tokens. Below the windows of the models of 2026, and far enough from them for the answer."""

MARK_SHARE = 0.4
"""The low-water mark of a rebuild as a share of the cap, unless the agent names another."""

BY_MODEL = "model"
"""As an agent's `report`: the run's own model writes reports, through the prompt that its provider holds."""

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """What to run.

    `policy` names how the prompt is made; `cap` is its hard limit and `mark` the low water of a rebuild, in
    tokens by the meter; `fixed` are tokens that are counted into every prompt for what is not shown here.
    A `conversational` agent waits for a person after a reply without a call; any other has finished then.
    `parameters` go to the provider as they are. `redact` takes secrets out before anything is written.
    `fallback` are models that take over, one after the other, when the one in use cannot be had.
    `toolboxes` hold tools that may change while a run goes on; they are opened and closed with it. `output`
    is what the reply that ends a task has to be: a pydantic model or another type, or a JSON schema.
    `book_tools` are tools with which the model keeps the run's book (True: all, or their names); where they
    are left out, the policy "journal" has them all and others none. `report` says who writes the account of
    what leaves the prompt: "mechanical" (a rule, which costs nothing), "model" (the model in use), or another
    provider, whose requests take at most `report_window` tokens, the answer included. `observers` are code
    that turns results into statements, a plan and tallies. `rules` are standing instructions by key; a change
    is written down.
    `recall_point` and `recall_set` are the tokens that the policy "journal" may bring back of older entries
    for a message, where it asks for a point and where for many things (an order, a summary); 0 for nothing.
    By default 20,000 and 32,000 where the agent is conversational, else 600 and 1,200. With `vectors`
    (`shiftbook.static_vectors(FOLDER)`) recall ranks by likeness as well as by words.
    With `saving` the policy "journal" rebuilds before the cap is near, where by the model's prices what is
    read again has come to cost as much as a rebuild; where its prices are not known it changes nothing.
    """

    name: str
    model: Provider
    instructions: str = ""
    fallback: Sequence[Provider] = ()
    tools: Sequence[Tool] = ()
    toolboxes: Sequence[Toolbox] = ()
    output: Any = None
    book_tools: bool | Sequence[str] | None = None
    observers: Sequence[Observer] = ()
    rules: Mapping[str, str] = field(default_factory=dict)
    policy: str = "transcript"
    report: str | Provider = MECHANICAL
    report_window: int = CAP_DEFAULT
    cap: int = CAP_DEFAULT
    mark: int | None = None
    fixed: int = 0
    saving: bool = False
    recall_point: int | None = None
    recall_set: int | None = None
    vectors: Vectors | None = None
    parameters: Mapping[str, Json] = field(default_factory=dict)
    limits: Limits = Limits()
    conversational: bool = False
    redact: Redact | None = None
    reference: str = ""
    """How a later process finds this agent: "agent.py:shop" or "package.module:shop"."""
    shape: Shape | None = field(init=False, default=None, repr=False, compare=False)
    """The check that `output` stands for."""
    own_book: tuple[BookTool, ...] = field(init=False, default=(), repr=False, compare=False)
    """The book tools that `book_tools` and the policy come to."""

    def __post_init__(self) -> None:
        self._check_shapes()
        if not callable(getattr(self.model, "reply", None)):
            raise AgentMistake(
                f"The model of agent {self.name!r} is {self.model!r:.60}: give a provider, such as "
                "shiftbook.Scripted([...])."
            )
        for tool in self.tools:
            if not hasattr(tool, "repeat"):
                called = getattr(tool, "__name__", repr(tool))
                raise AgentMistake(
                    f"{called!r:.60} is no tool: write @shiftbook.tool(repeat=...) over the function, which "
                    "says what may be done after a cut."
                )
        names = [tool.name for tool in self.tools]
        for name in names:
            if not _TOOL_NAME.fullmatch(name):
                raise AgentMistake(
                    f"The tool name {name!r} cannot be sent to a model: use 1 to 64 letters, digits, _ and -."
                )
            if names.count(name) > 1:
                raise AgentMistake(f"Two tools are called {name!r}: give one of them another name.")
        self._check_book(names)
        models = [model.name for model in (self.model, *self.fallback)]
        for name in models:
            if models.count(name) > 1:
                raise AgentMistake(
                    f"The model {name!r} stands twice in this agent: leave it out of the fallback."
                )
        check_number("The cap, in tokens,", self.cap, least=1)
        check_number("The fixed part, in tokens,", self.fixed, least=0)
        if self.mark is not None:
            check_number("The mark, in tokens,", self.mark, least=1)
        if self.mark is not None and self.mark > self.cap:
            raise AgentMistake(
                f"The mark of {self.mark} tokens has to lie between 1 and the cap of {self.cap}."
            )
        for tokens in (self.recall_room.point, self.recall_room.whole_set):
            check_number("What recall may bring back, in tokens,", tokens, least=0)
        if self.vectors is not None and not (
            callable(getattr(self.vectors, "of", None))
            and isinstance(getattr(self.vectors, "name", None), str)
        ):
            raise AgentMistake(
                f"The vectors of agent {self.name!r} are {self.vectors!r:.60}: give "
                "shiftbook.static_vectors(FOLDER), or leave them out."
            )
        policy_named(self.policy)
        self._check_report()
        if self.output is not None:
            if self.conversational:
                raise AgentMistake(
                    "A conversational agent has no reply that ends its task, so it can have no typed output: "
                    "leave out one of the two."
                )
            object.__setattr__(self, "shape", shape_of(self.output))

    def _check_shapes(self) -> None:
        """Each part is of the shape that its type says: hints are not checked at run time."""
        for told, shape, wanted in _SHAPES:
            value = getattr(self, told)
            if not isinstance(value, shape) or (isinstance(value, str | bytes) and shape is Sequence):
                raise AgentMistake(f"The {told} of an agent is {value!r:.60}: give {wanted}.")
        for each in self.fallback:
            if not callable(getattr(each, "reply", None)):
                raise AgentMistake(f"The fallback holds {each!r:.60}: give providers, as for the model.")
        if not all(isinstance(word, str) for rule in self.rules.items() for word in rule):
            raise AgentMistake("The rules of an agent are texts by keys that are texts.")
        if not isinstance(self.book_tools, bool | Sequence | None):
            raise AgentMistake(
                f"The book_tools of an agent are {self.book_tools!r:.60}: give True, False or a list."
            )
        if self.redact is not None and not callable(self.redact):
            raise AgentMistake(f"The redact of an agent is {self.redact!r:.60}: give a function.")

    def _check_report(self) -> None:
        if self.report not in (MECHANICAL, BY_MODEL) and not callable(getattr(self.report, "reply", None)):
            raise AgentMistake(
                f"Reports cannot be written by {self.report!r:.60}: say {MECHANICAL!r}, {BY_MODEL!r}, or "
                "give another provider."
            )
        check_number("The window for reports, in tokens,", self.report_window, least=1)

    @property
    def writer(self) -> Provider | None:
        """The model that writes reports; None where a rule does."""
        if isinstance(self.report, str):
            return self.model if self.report == BY_MODEL else None
        return self.report

    def _check_book(self, names: Sequence[str]) -> None:
        object.__setattr__(self, "own_book", book_tools_named(self.book_tools, self.policy))
        for tool in self.own_book:
            if tool.name in names:
                raise AgentMistake(
                    f"A tool is called {tool.name!r}, and so is a book tool: give it another name, or name "
                    "the book tools that you want."
                )
        for key, text in self.rules.items():
            fault = key_fault(key, f"the key {key!r:.60}")
            if fault is None and not text.strip():
                fault = f"the rule {key!r} has no text"
            if fault is not None:
                raise AgentMistake(f"A rule cannot be set: {fault}.")

    @property
    def told(self) -> str:
        """The instructions as the model gets them: with the schema of a typed output behind them."""
        return self.instructions if self.shape is None else self.shape.told(self.instructions)

    @property
    def all_tools(self) -> tuple[Tool, ...]:
        """The agent's own tools and those that its open toolboxes hold now; of two by one name the first."""
        found: dict[str, Tool] = {}
        for tool in (*self.tools, *self.own_book, *(tool for box in self.toolboxes for tool in box.tools)):
            found.setdefault(tool.name, tool)
        return tuple(found[name] for name in sorted(found))

    @property
    def recall_room(self) -> RecallRoom:
        """What the policy may bring back for a message, in tokens."""
        usual = CONVERSING if self.conversational else WORKING
        point = usual.point if self.recall_point is None else self.recall_point
        return RecallRoom(point, usual.whole_set if self.recall_set is None else self.recall_set)

    @property
    def recalls(self) -> bool:
        """Whether older entries are looked for, by the policy or by the model."""
        room = self.recall_room
        by_policy = self.policy == "journal" and max(room.point, room.whole_set) > 0
        return by_policy or any(tool.name == "recall" for tool in self.own_book)

    @property
    def low_water(self) -> int:
        """The mark in force, in tokens."""
        return self.mark if self.mark is not None else int(self.cap * MARK_SHARE)


_SHAPES: tuple[tuple[str, type, str], ...] = (
    ("name", str, "a text"),
    ("instructions", str, "a text"),
    ("policy", str, "the name of one"),
    ("reference", str, "a text"),
    ("fallback", Sequence, "a list of providers"),
    ("tools", Sequence, "a list of tools"),
    ("toolboxes", Sequence, "a list of toolboxes"),
    ("observers", Sequence, "a list of observers"),
    ("rules", Mapping, "a dictionary of texts by key"),
    ("parameters", Mapping, "a dictionary"),
    ("limits", Limits, "shiftbook.Limits(...)"),
)


@dataclass(frozen=True, slots=True)
class Declaration:
    """An agent as it is written down: the entry, and the bytes of its blob."""

    entry: AgentDeclared
    blob: bytes


def declare(agent: Agent) -> Declaration:
    """What `AgentDeclared` says of this agent. The order of tools is by name, so that it never drifts.

    A provider that has `settings`, which go out with every request beside the prompt, has them written down
    too: a change of them is a change of the agent.
    """
    tools = agent.all_tools
    settings = getattr(agent.model, "settings", None)
    blob = canonical.encode(
        {
            "name": agent.name,
            "model": agent.model.name,
            "instructions": agent.told,
            "tools": [
                {
                    "name": tool.schema.name,
                    "description": tool.schema.description,
                    "parameters": stable_schema(tool.schema.parameters),
                }
                for tool in tools
            ],
            "parameters": dict(agent.parameters),
            **({} if settings is None else {"provider": dict(settings)}),
            **({"fallback": [model.name for model in agent.fallback]} if agent.fallback else {}),
            **_reports(agent),
            **({} if agent.shape is None else {"output": agent.shape.schema}),
            "policy": agent.policy,
            "fixed": agent.fixed,
            "mark": agent.low_water,
            **_recall_set(agent),
        }
    ).encode("utf-8")
    entry = AgentDeclared(
        agent=agent.reference or agent.name,
        declaration=blob_hash(blob),
        model=agent.model.name,
        policy=agent.policy,
        cap=agent.cap,
        contracts={tool.name: contract_digest(tool) for tool in tools},
    )
    return Declaration(entry, blob)


def _reports(agent: Agent) -> dict[str, Json]:
    if isinstance(agent.report, str):
        return {} if agent.report == MECHANICAL else {"report": agent.report}
    settings = getattr(agent.report, "settings", None)
    return {
        "report": {
            "model": agent.report.name,
            "window": agent.report_window,
            **({} if settings is None else {"provider": dict(settings)}),
        }
    }


def _recall_set(agent: Agent) -> dict[str, Json]:
    """What the agent says of its recall; nothing where it leaves that to the defaults."""
    told: dict[str, Json] = {} if agent.vectors is None else {"vectors": agent.vectors.name}
    if agent.recall_point is not None or agent.recall_set is not None:
        told["recall"] = [agent.recall_room.point, agent.recall_room.whole_set]
    return told
