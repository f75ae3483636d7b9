"""An agent: a model, instructions and tools, and how its prompt is made.

An agent is a value. Starting a run writes down what it is (`AgentDeclared`), so that the record can be read
and checked without it; only `run` and `resume` need the agent itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shiftbook import canonical
from shiftbook.codec import Redact, blob_hash
from shiftbook.entries import AgentDeclared
from shiftbook.errors import AgentMistake
from shiftbook.messages import Json
from shiftbook.policies import policy_named
from shiftbook.providers.promise import Provider
from shiftbook.run.limits import Limits
from shiftbook.tools.contract import Tool, contract_digest, stable_schema

CAP_DEFAULT = 100_000
"""Tokens. Below the windows of the models of 2026, and far enough from them for the answer."""

MARK_SHARE = 0.4
"""The low-water mark of a rebuild as a share of the cap, unless the agent names another."""

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """What to run.

    `policy` names how the prompt is made; `cap` is its hard limit and `mark` the low water of a rebuild, in
    tokens by the meter; `fixed` are tokens that are counted into every prompt for what is not shown here.
    A `conversational` agent waits for a person after a reply without a call; any other has finished then.
    `parameters` go to the provider as they are. `redact` takes secrets out before anything is written.
    """

    name: str
    model: Provider
    instructions: str = ""
    tools: Sequence[Tool] = ()
    policy: str = "transcript"
    cap: int = CAP_DEFAULT
    mark: int | None = None
    fixed: int = 0
    parameters: Mapping[str, Json] = field(default_factory=dict)
    limits: Limits = Limits()
    conversational: bool = False
    redact: Redact | None = None
    reference: str = ""
    """How a later process finds this agent: "agent.py:shop" or "package.module:shop"."""

    def __post_init__(self) -> None:
        names = [tool.name for tool in self.tools]
        for name in names:
            if not _TOOL_NAME.fullmatch(name):
                raise AgentMistake(
                    f"The tool name {name!r} cannot be sent to a model: use 1 to 64 letters, digits, _ and -."
                )
            if names.count(name) > 1:
                raise AgentMistake(f"Two tools are called {name!r}: give one of them another name.")
        if self.cap < 1:
            raise AgentMistake(f"The cap is {self.cap} tokens: it has to be at least 1.")
        if self.mark is not None and not 0 < self.mark <= self.cap:
            raise AgentMistake(
                f"The mark of {self.mark} tokens has to lie between 1 and the cap of {self.cap}."
            )
        policy_named(self.policy)

    @property
    def low_water(self) -> int:
        """The mark in force, in tokens."""
        return self.mark if self.mark is not None else int(self.cap * MARK_SHARE)


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
    tools = sorted(agent.tools, key=lambda tool: tool.name)
    settings = getattr(agent.model, "settings", None)
    blob = canonical.encode(
        {
            "name": agent.name,
            "model": agent.model.name,
            "instructions": agent.instructions,
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
            "fixed": agent.fixed,
            "mark": agent.low_water,
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
