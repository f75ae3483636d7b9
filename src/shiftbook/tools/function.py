"""A plain function becomes a tool that a model may call, with its author's word on what may follow a cut.

    @tool(repeat="keyed")
    def deliver(order: str, quantity: int, context: Context) -> str: ...

A sync function runs on a thread of its own, an async one on the event loop; either may take hours. The
function is called with exactly the arguments that the model gave, checked; a parameter annotated `Context`
gets the call's context and is not shown to the model. The decorated object can still be called directly.

There is no default repeat policy, and time-outs and retries are kept by the loop, not here.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import math
import re
import types
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, cast, get_args, overload

from shiftbook.ending import tellings
from shiftbook.errors import AgentMistake
from shiftbook.messages import Json, ToolSchema
from shiftbook.tools.arguments import Arguments
from shiftbook.tools.contract import (
    CannotTell,
    Context,
    DidNotHappen,
    Happened,
    Output,
    Reconciled,
    Repeat,
)
from shiftbook.tools.docstrings import Described, describe
from shiftbook.tools.results import to_output
from shiftbook.tools.signature import Parameters, bare, check_shape, read_parameters
from shiftbook.tools.threads import in_thread, no_signal

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Reconcile = Callable[..., Reconciled | Awaitable[Reconciled]]

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What Anthropic's and OpenAI's interfaces both take as a tool's name."""

_CHOICES = (
    'repeat="safe" (run it again: a second time changes nothing), "keyed" (run it again with the same key, '
    'which the receiver honours), "reconcile" (a function of yours tells whether it happened) or "ask" '
    "(a person decides)"
)


class FunctionTool(Generic[P, R_co]):
    """A function as a tool. `tool` makes it; calling it calls the function."""

    def __init__(
        self,
        function: Callable[P, R_co],
        *,
        repeat: Repeat,
        name: str | None = None,
        description: str | None = None,
        timeout_ms: int | None = None,
        attempts: int = 1,
        reconcile: Reconcile | None = None,
    ) -> None:
        functools.update_wrapper(cast("Any", self), function)
        self._function = function
        self._reconcile = reconcile
        self._description = description
        self._is_async = _is_async(function)
        self.ends_when_cancelled = self._is_async
        self.name = _checked_name(function, name)
        self.repeat: Repeat = repeat
        self.timeout_ms = timeout_ms
        self.attempts = attempts
        check_shape(function, self.name)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise AgentMistake(f"Tool {self.name!r} yields its result piece by piece: return it whole.")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function itself: nothing is checked or recorded."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}, repeat={self.repeat!r}>"

    @functools.cached_property
    def _parameters(self) -> Parameters:
        return read_parameters(self._function, self.name)

    @functools.cached_property
    def _arguments(self) -> Arguments:
        return Arguments(self.name, self._parameters, self._words.parameters)

    @functools.cached_property
    def _words(self) -> Described:
        return describe(bare(self._function).__doc__)

    @property
    def schema(self) -> ToolSchema:
        """The tool as the model sees it; raises `AgentMistake` where the signature cannot be shown."""
        return self._schema

    @functools.cached_property
    def _schema(self) -> ToolSchema:
        if self._reconcile is not None:
            _ = self._reconcile_takes  # a mistake in it is told when the agent is declared, not after a crash
        description = self._words.summary if self._description is None else self._description
        return ToolSchema(self.name, description, self._arguments.schema)

    async def run(self, arguments: Mapping[str, Json], context: Context) -> Output:
        """Call the function with the model's arguments.

        Raises `BadArguments`, and then nothing was run, or what the function raises. When the task is
        cancelled an async function gets `CancelledError`; a thread is asked by `context.cancelled` and not
        waited for.
        """
        given = self._arguments.read(arguments)
        if self._parameters.context is not None:
            given[self._parameters.context] = self._own(context)
        if not self._is_async:
            output: Output = await self._off_loop(self._function, given, context, to_output)
            return output
        return to_output(await self._on_loop(self._function, given, context))

    async def ask(self, arguments: Mapping[str, Json], context: Context) -> Reconciled:
        """Ask the `reconcile` function whether the cut-off call happened."""
        takes = self._reconcile_takes
        wanted = {parameter.name for parameter in takes.from_model}
        values = self._arguments.read(arguments)
        given = {
            parameter.name: values.get(parameter.name, parameter.default)
            for parameter in self._parameters.from_model
            if parameter.name in wanted
        }
        if takes.context is not None:
            given[takes.context] = self._own(context)
        function = cast("Reconcile", self._reconcile)
        if _is_async(function):
            answer = await self._on_loop(function, given, context)
        else:
            answer = await self._off_loop(function, given, context, _same)
        if not isinstance(answer, Happened | DidNotHappen | CannotTell):
            raise AgentMistake(
                f"The reconcile function of tool {self.name!r} returned {type(answer).__name__}: it must "
                "return Happened(result), DidNotHappen() or CannotTell()."
            )
        return answer

    def _own(self, context: Context) -> Context:
        """The context that the function gets: its progress may be reported from any thread."""
        loop = asyncio.get_running_loop()

        def report(message: str) -> None:
            try:
                loop.call_soon_threadsafe(context.report, message)
            except RuntimeError:  # the loop is closed: nobody watches any more
                return

        return replace(context, report=report)

    async def _on_loop(self, function: Callable[..., Any], given: Mapping[str, Any], context: Context) -> Any:
        told = tellings()
        try:
            return await function(**given)
        except asyncio.CancelledError as error:
            if tellings() > told:
                context.cancelled.set()
                raise
            raise no_signal(error, f"tool {self.name}") from error
        except (SystemExit, StopIteration) as error:
            raise no_signal(error, f"tool {self.name}") from error

    async def _off_loop(
        self,
        function: Callable[..., Any],
        given: Mapping[str, Any],
        context: Context,
        finish: Callable[[Any], Any],
    ) -> Any:
        def work() -> Any:
            value = function(**given)
            # A plain function may wrap an async one; the type is compared since `isinstance` asks the value.
            return value if type(value) is types.CoroutineType else finish(value)

        try:
            value = await in_thread(work, name=f"tool {self.name}")
        except asyncio.CancelledError:
            context.cancelled.set()
            raise
        if type(value) is types.CoroutineType:
            return finish(await self._on_loop(lambda: value, {}, context))
        return value

    @functools.cached_property
    def _reconcile_takes(self) -> Parameters:
        if self._reconcile is None:
            raise AgentMistake(f"Tool {self.name!r} has no reconcile function to ask.")
        takes = read_parameters(self._reconcile, f"{self.name}, reconcile")
        own = {parameter.name for parameter in self._parameters.from_model}
        for parameter in takes.from_model:
            if parameter.name not in own:
                raise AgentMistake(
                    f"The reconcile function of tool {self.name!r} takes {parameter.name!r}, which the "
                    "tool does not: it may take the tool's own parameters, by their names, and a Context."
                )
        return takes


class Decorator(Protocol):
    """Makes a tool of a function and keeps its signature."""

    def __call__(self, function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    repeat: Literal["safe", "keyed", "ask"],
    name: str | None = None,
    description: str | None = None,
    timeout_s: float | None = None,
    attempts: int = 1,
) -> Decorator: ...


@overload
def tool(
    *,
    repeat: Literal["reconcile"],
    reconcile: Reconcile,
    name: str | None = None,
    description: str | None = None,
    timeout_s: float | None = None,
    attempts: int = 1,
) -> Decorator: ...


def tool(
    function: object = None,
    /,
    *,
    repeat: object = None,
    name: str | None = None,
    description: str | None = None,
    timeout_s: float | None = None,
    attempts: int = 1,
    reconcile: Reconcile | None = None,
) -> Decorator:
    """Make a tool of a function; `repeat` says what may be done when nobody knows whether a call took effect.

    `name` and `description` stand for the function's own; `timeout_s` bounds one attempt (None: as long as it
    takes); `attempts` is how often a call is tried in all. `reconcile` goes with `repeat="reconcile"` and
    with nothing else: it takes any of the function's parameters by name, and a `Context`, and returns
    `Happened(result)`, `DidNotHappen()` or `CannotTell()`. Raises `AgentMistake` for what cannot work.
    """
    called = name or getattr(function, "__name__", None)
    shown = f"Tool {called!r}" if called else "A tool"
    if repeat is None:
        raise AgentMistake(f"{shown} does not say what may be done after a cut: write @tool with {_CHOICES}.")
    if repeat not in get_args(Repeat):
        raise AgentMistake(f"{shown} has repeat={repeat!r}, which is no choice: write {_CHOICES}.")
    if function is not None:
        raise AgentMistake(f"{shown}: pass the function to the decorator: tool(repeat={repeat!r})(function).")
    if repeat == "reconcile" and not callable(reconcile):
        raise AgentMistake(
            f'{shown} has repeat="reconcile" but no function to ask: pass reconcile=, a function that '
            "returns Happened(result), DidNotHappen() or CannotTell()."
        )
    if repeat != "reconcile" and reconcile is not None:
        raise AgentMistake(
            f'{shown} passes reconcile=, which only repeat="reconcile" uses: drop one of them.'
        )
    if timeout_s is not None and not (math.isfinite(timeout_s) and timeout_s > 0):
        raise AgentMistake(
            f"{shown} has timeout_s={timeout_s!r}: give seconds above 0, or None for no limit."
        )
    if type(attempts) is not int or attempts < 1:
        raise AgentMistake(f"{shown} has attempts={attempts!r}: give a whole number from 1.")

    def decorate(target: Callable[P, R], /) -> FunctionTool[P, R]:
        return FunctionTool(
            target,
            repeat=cast("Repeat", repeat),
            name=name,
            description=description,
            timeout_ms=None if timeout_s is None else max(1, round(timeout_s * 1000)),
            attempts=attempts,
            reconcile=reconcile,
        )

    return decorate


def _checked_name(function: object, name: str | None) -> str:
    found = name if name is not None else getattr(function, "__name__", "")
    if not NAME.fullmatch(found):
        raise AgentMistake(
            f"A tool cannot be called {found!r}: give name=, 1 to 64 letters, digits, `_` or `-`, which is "
            "what every model takes."
        )
    return found


def _is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004 - the method is looked at, not asked for
    )


def _same(value: Any) -> Any:
    return value
