"""Death at any await: every place where a process can die is counted, and it dies at one of them.

    seams = Seams(Dies(at=3, moment="after", seam="entries.append"))
    store, agent = seams.store(store), seams.agent(agent)
    ... run until `Crash` is raised, then open the store anew and resume

A process does something to the world only through its store, its model, its tools and its clock. Each await
of one of them is a call with a point before it (nothing has happened), one at every suspension inside it,
and one after it (it happened, and the caller is never told). `Seams()` without a death counts them all.

`Crash` is no `Exception`, so that nothing that handles faults can swallow it, and after it every seam raises
it again: the dead do not write. Production code holds no hook for this. Refused: a death inside a thread,
since only `SIGKILL` can end that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, cast

from shiftbook.clock import Clock
from shiftbook.journal.promises import Store
from shiftbook.messages import Emit, Json, Reply, Request
from shiftbook.providers.promise import Provider
from shiftbook.run.agent import Agent
from shiftbook.tools.contract import Context, Output, Reconciled, Tool

Moment = Literal["before", "inside", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "inside", "after")

NOT_AWAITED = frozenset({"follow"})
"""Methods of a store that hand out an iterator and are not awaited themselves."""


class Crash(BaseException):
    """The process is dead. Catch it where the process was started, nowhere else."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place where a process can die; `number` counts them in the order in which they are passed, from 1."""

    number: int
    seam: str
    moment: Moment

    def __str__(self) -> str:
        return f"point {self.number}, {self.moment} {self.seam}"


@dataclass(frozen=True, slots=True)
class Dies:
    """Dies at the `at`-th point that fits; `seam` is a name like "entries.append", "model" or "tool.pay"."""

    at: int
    moment: Moment | None = None
    seam: str | None = None

    def fits(self, point: Point) -> bool:
        """Whether the point is one of those that are counted for this death."""
        return self.moment in (None, point.moment) and self.seam in (None, point.seam)

    def act(self, seams: Seams, point: Point) -> None:
        """What happens there."""
        seams.died = point
        raise Crash(str(point))


@dataclass(frozen=True, slots=True)
class Fails(Dies):
    """The call raises `error` there and the process lives on: after a commit, its confirmation is lost."""

    error: Exception = OSError("failed on purpose")

    def act(self, seams: Seams, point: Point) -> None:
        raise self.error


@dataclass(frozen=True, slots=True)
class Meanwhile(Dies):
    """Something else happens there, in between: a message comes in, another process takes the run."""

    do: Callable[[], None] = lambda: None

    def act(self, seams: Seams, point: Point) -> None:
        self.do()


class Seams:
    """Wraps what one process uses. `passed` are the points so far, `died` the one that was its end."""

    def __init__(self, *deaths: Dies) -> None:
        self.passed: list[Point] = []
        self.died: Point | None = None
        self.arm(*deaths)

    def arm(self, *deaths: Dies) -> None:
        """From here on, count for these deaths instead of the ones before."""
        self._deaths = deaths
        self._counts = [0] * len(deaths)

    def store(self, store: Store) -> Store:
        """The store with every awaited method counted; `close` is not, it is the undertaker's."""
        return cast(Store, _DyingStore(self, store))

    def provider(self, provider: Provider) -> Provider:
        """The model, its `reply` counted under "model", or under "report" where it is to write one."""
        return cast(Provider, _DyingModel(self, provider))

    def tool(self, tool: Tool) -> Tool:
        """The tool, its `run` counted under "tool.NAME" and its `ask` under "ask.NAME"."""
        return cast(Tool, _DyingTool(self, tool))

    def clock(self, clock: Clock) -> Clock:
        """The clock, its `sleep_ms` counted under "clock.sleep_ms"."""
        return cast(Clock, _DyingClock(self, clock))

    def agent(self, agent: Agent) -> Agent:
        """The agent with its models and tools wrapped."""
        return replace(
            agent,
            model=self.provider(agent.model),
            report=agent.report if isinstance(agent.report, str) else self.provider(agent.report),
            fallback=tuple(map(self.provider, agent.fallback)),
            tools=tuple(map(self.tool, agent.tools)),
        )

    def reach(self, seam: str, moment: Moment) -> None:
        """Pass a point, or die at it. For seams of your own; raises `Crash` for ever after a death."""
        if self.died is not None:
            raise Crash(f"dead since {self.died}")
        point = Point(len(self.passed) + 1, seam, moment)
        self.passed.append(point)
        for index, death in enumerate(self._deaths):
            if death.fits(point):
                self._counts[index] += 1
                if self._counts[index] == death.at:
                    death.act(self, point)

    async def call(self, seam: str, function: Callable[..., Awaitable[Any]], *args: Any, **named: Any) -> Any:
        """Await `function(*args, **named)` with all its points."""
        self.reach(seam, "before")
        try:
            result = await _Watched(self, seam, function(*args, **named))
        except Exception:
            self.reach(seam, "after")
            raise
        self.reach(seam, "after")
        return result


class _Watched:
    """An awaitable whose every suspension is a point."""

    def __init__(self, seams: Seams, seam: str, inner: Awaitable[Any]) -> None:
        self._seams, self._seam, self._inner = seams, seam, inner

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self._inner.__await__()
        error: BaseException | None = None
        while True:
            if self._seams.died is not None:
                inner.close()
                raise Crash(f"dead since {self._seams.died}")
            try:
                waits_for = inner.send(None) if error is None else inner.throw(error)
            except StopIteration as stop:
                return stop.value
            error = None
            try:
                self._seams.reach(self._seam, "inside")
            except BaseException:
                inner.close()
                raise
            try:
                yield waits_for
            except GeneratorExit:
                inner.close()
                raise
            except BaseException as thrown:  # noqa: BLE001 - it is the inner's to handle
                error = thrown


class _Wrapped:
    """Whatever is not counted is the inner's."""

    def __init__(self, seams: Seams, inner: Any) -> None:
        self._seams, self._inner = seams, inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Part(_Wrapped):
    """One promise of a store."""

    def __init__(self, seams: Seams, inner: Any, name: str) -> None:
        super().__init__(seams, inner)
        self._name = name

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name in NOT_AWAITED:
            return method
        return partial(self._seams.call, f"{self._name}.{name}", method)


class _DyingStore(_Wrapped):
    def __init__(self, seams: Seams, inner: Store) -> None:
        super().__init__(seams, inner)
        for part in ("entries", "leases", "inbox", "blobs", "catalogue", "cache"):
            setattr(self, part, _Part(seams, getattr(inner, part), part))


class _DyingModel(_Wrapped):
    async def reply(self, request: Request, emit: Emit) -> Reply:
        seam = "report" if request.purpose == "report" else "model"
        return cast(Reply, await self._seams.call(seam, self._inner.reply, request, emit))


class _DyingTool(_Wrapped):
    async def run(self, arguments: Mapping[str, Json], context: Context) -> Output:
        seam = f"tool.{self._inner.name}"
        return cast(Output, await self._seams.call(seam, self._inner.run, arguments, context))

    async def ask(self, arguments: Mapping[str, Json], context: Context) -> Reconciled:
        seam = f"ask.{self._inner.name}"
        return cast(Reconciled, await self._seams.call(seam, self._inner.ask, arguments, context))


class _DyingClock(_Wrapped):
    async def sleep_ms(self, duration_ms: float) -> None:
        await self._seams.call("clock.sleep_ms", self._inner.sleep_ms, duration_ms)
