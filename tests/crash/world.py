"""What is outside of a process and outlives it: a receiver of effects, a model's bill, people's wishes.

The world looks into the journal at the moment when something reaches it, and notes on the spot what must not
happen then: a tool that begins without an announced attempt, a model that is asked for what was answered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shiftbook.entries import (
    ActionFinished,
    ActionStarted,
    Entry,
    ModelAnswered,
    ModelFailed,
    ModelInterrupted,
    ReportAnswered,
    ReportAsked,
    ReportFailed,
)
from shiftbook.errors import UnknownRun
from shiftbook.journal.promises import Store
from shiftbook.messages import Request
from shiftbook.run.book import read_entries
from shiftbook.testing.validator import request_faults
from shiftbook.tools.contract import Context
from tests.crash.virtual import at_once

RUN = "sweep"


@dataclass(frozen=True)
class Violation:
    """An invariant, by its name, and how it was broken."""

    invariant: str
    how: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.how}"


@dataclass(frozen=True)
class Effect:
    """Once that a tool reached its receiver."""

    tool: str
    call: str
    key: str
    attempt: int


@dataclass
class World:
    """`peek` is a store of its own on the same database, for looking only.

    `log` keeps what happened in a file where the world has to outlive a process that is really killed.
    """

    effects: list[Effect] = field(default_factory=list)
    begun: list[Effect] = field(default_factory=list)
    """Each time that a tool's code began."""
    asked: list[tuple[int, int]] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    """Calls whose tool was asked whether they happened."""
    requests: dict[int, Request] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    wish: str = "go"
    posted: list[str] = field(default_factory=list)
    told: set[str] = field(default_factory=set)
    """Calls whose result the engine has been given since its process began."""
    known: list[Entry] = field(default_factory=list)
    peek: Store | None = None
    log: Path | None = None

    def copy(self) -> World:
        """The world as it is now; what happens in the one does not happen in the other."""
        return World(
            list(self.effects),
            list(self.begun),
            list(self.asked),
            list(self.questions),
            dict(self.requests),
            list(self.violations),
            self.wish,
            list(self.posted),
            set(),
            list(self.known),
        )

    # --- looking into the journal -----------------------------------------------------------------

    def journal(self) -> list[Entry]:
        """All entries so far."""
        if self.peek is not None:
            after = self.known[-1].position if self.known else 0
            try:
                self.known.extend(at_once(read_entries(self.peek, RUN, after)))
            except UnknownRun:
                return []
        return self.known

    def blame(self, invariant: str, how: str) -> None:
        """Note that an invariant was broken."""
        self.violations.append(Violation(invariant, how))

    # --- what reaches the world -------------------------------------------------------------------

    def begin(self, context: Context) -> None:
        """A tool's code begins."""
        once = Effect(context.tool, context.call, context.key, context.attempt)
        if self.log is None:
            finished = starts = None
            for entry in self.journal():
                if isinstance(entry.what, ActionFinished) and entry.what.call == context.call:
                    finished = entry
                if isinstance(entry.what, ActionStarted) and entry.what.call == context.call:
                    starts = entry.what
            if finished is not None:
                self.blame(
                    "finished_once", f"call {context.call} is run again after entry {finished.position}"
                )
            if starts is None or starts.attempt != context.attempt or starts.key != context.key:
                self.blame("intent_first", f"{once} begins, but the journal has {starts}")
        self.begun.append(once)
        self._write("begun", once)

    def act(self, context: Context) -> None:
        """A tool reaches its receiver."""
        once = Effect(context.tool, context.call, context.key, context.attempt)
        self.effects.append(once)
        self._write("effect", once)

    def happened(self, key: str) -> bool:
        """What the receiver knows about a key."""
        return any(effect.key == key for effect in self.effects)

    def ask(self, call: str) -> None:
        """A tool is asked whether a call happened."""
        self.questions.append(call)
        self._write("question", call)

    def answer(self, request: Request) -> None:
        """The model is asked, and this costs money."""
        for fault in request_faults(request):
            self.blame("request_valid", f"turn {request.turn}: {fault}")
        if request.purpose == "report":
            self._report(request)
        elif self.log is None:
            for entry in self.journal():
                match entry.what:
                    case ModelAnswered(turn=turn) | ModelInterrupted(turn=turn):
                        is_known = turn >= request.turn
                    case ModelFailed(turn=turn, attempt=attempt):
                        is_known = turn == request.turn and attempt >= request.attempt
                    case _:
                        is_known = False
                if is_known:
                    how = f"turn {request.turn} is asked again after entry {entry.position}"
                    self.blame("answer_once", how)
        self.asked.append((request.turn, request.attempt))
        if request.purpose == "report":
            self._write("asked", [request.turn, request.attempt])
            return
        # The prompt goes on growing; what was sent is what it was then.
        self.requests[request.turn] = replace(request, blocks=tuple(request.blocks))
        self._write("asked", [request.turn, request.attempt])

    def _report(self, request: Request) -> None:
        """A report is asked for, and this costs money too."""
        if self.log is not None:
            return
        last = [e for e in self.journal() if isinstance(e.what, ReportAsked | ReportAnswered | ReportFailed)][
            -1
        ]
        is_known = isinstance(last.what, ReportAnswered) or (
            isinstance(last.what, ReportFailed) and last.what.attempt >= request.attempt
        )
        if is_known:
            self.blame("answer_once", f"a report is asked for again after entry {last.position}")

    def idle(self) -> None:
        """The process waits: whatever it knows has to be in the database by now."""
        finished = {entry.what.call for entry in self.journal() if isinstance(entry.what, ActionFinished)}
        for call in sorted(self.told - finished):
            self.blame("recorded_at_once", f"call {call} is done and the process waits without recording it")

    # --- a world that outlives a killed process ---------------------------------------------------

    def _write(self, name: str, value: Any) -> None:
        if self.log is not None:
            plain = vars(value) if isinstance(value, Effect) else value
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, plain]) + "\n")

    @classmethod
    def load(cls, log: Path) -> World:
        """The world as the log has it."""
        world = cls(log=log)
        take: Mapping[str, Callable[[Any], None]] = {
            "begun": lambda plain: world.begun.append(Effect(**plain)),
            "effect": lambda plain: world.effects.append(Effect(**plain)),
            "question": lambda plain: world.questions.append(plain),
            "asked": lambda plain: world.asked.append((plain[0], plain[1])),
        }
        if log.exists():
            for line in log.read_text(encoding="utf-8").splitlines():
                name, plain = json.loads(line)
                take[name](plain)
        return world


WORLD: ContextVar[World] = ContextVar("WORLD")
