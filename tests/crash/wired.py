"""The crash sweep over the vendors' own SDKs: the model is a provider server on the loopback.

The world, the tools and the invariants are those of the sweep; the loop is a real one, since sockets are. A
process has a key of its own, by which the server knows whose request it answers; the answer goes by turn and
attempt, so that it is the same after every death. Beside the points of the sweep there is one at every piece
of a stream (`model.piece`) and, counted apart since sockets do not always wait as often, one at every
suspension inside a model request: before it is out, while the server is at it, between two pieces.

Left out of what is compared: ids, signatures and usage, which are the vendor's and new with every request.
"""

from __future__ import annotations

import asyncio
import itertools
import selectors
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, cast

from shiftbook.entries import Entry, ModelAnswered
from shiftbook.messages import AssistantPart, Call, Emit, Reasoning, Reply, ReplyEvent, Request, Text, Usage
from shiftbook.providers.pace import Pace
from shiftbook.providers.scripted import call, calls, say
from shiftbook.run.agent import Agent
from shiftbook.run.limits import Limits
from shiftbook.testing.crash import Crash, Dies, Seams
from shiftbook.testing.server import Cuts, Drops, Exchange, Fails, ProviderServer, Turn, think, vendor_block
from shiftbook.tools.contract import Tool
from tests.crash.invariants import broken, difference
from tests.crash.scenarios import Scenario, Told, change_tools
from tests.crash.sweep import Ground, Process
from tests.crash.tools import look, mail, pay, send
from tests.crash.world import Violation, World
from tests.providers.wires import ANTHROPIC, CHAT, WIRES, Wire

WAITS: ContextVar[Seams | None] = ContextVar("WAITS", default=None)
_keys = itertools.count(1)


def script(wire: Wire) -> Mapping[int, tuple[Turn, ...]]:
    """For each turn its attempts; the last stands for all later ones."""

    def reasoned(reply: Reply) -> Reply:
        return reply if wire is CHAT else think("It has to be done, and in this order.", reply)

    last = calls(call("send", {"to": "Bob"}), text="One thing is left.")
    return {
        1: (reasoned(calls(call("look", {"place": "A"}), call("pay", {"amount": 5}), text="I begin.")),),
        2: (Fails(529), Fails(429, retry_after_s=2), reasoned(calls(call("mail", {"to": "Ann"})))),
        3: (Cuts(say("I was about to say that all of it is well in hand."), "text"),),
        4: (Drops(last), last),
        **ending(wire),
    }


def ending(wire: Wire) -> Mapping[int, tuple[Turn, ...]]:
    """The last turns: over the one wire that knows of it, with a turn that the vendor pauses."""
    done = say("All done.")
    if wire is not ANTHROPIC:
        return {5: (done,)}
    used = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "all"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    paused = Reply((Text("I look it up."), vendor_block(used)), "pause")
    return {5: (paused,), 6: (replace(done, parts=(vendor_block(found), *done.parts)),)}


@dataclass(frozen=True)
class Wired(Scenario):
    """A scenario whose model is reached over an SDK."""

    wire: Wire = WIRES[0]
    stage: Any = None

    def agent(
        self, world: World, seams: Seams, change: Callable[[Agent], Agent] = lambda agent: agent
    ) -> Agent:
        stage: Stage = self.stage
        model = self.wire.at(stage.server, api_key=stage.enter(world), pace=Pace())
        agent = Agent(
            name=self.name,
            model=cast(Any, _Model(model, world, seams)),
            instructions="Keep the store in order.",
            tools=tuple(seams.tool(cast(Tool, each)) for each in self.tools),
            policy=self.policy,
            cap=self.cap,
            limits=self.limits,
        )
        return change_tools(agent, lambda each: cast(Tool, Told(each, world)))


@dataclass
class Stage:
    """The server, and who is who to it. `came` holds turn and attempt of every request of a key."""

    wire: Wire
    server: ProviderServer = field(init=False)
    worlds: dict[str, World] = field(default_factory=dict)
    came: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    key: str = ""

    def __post_init__(self) -> None:
        self._script = script(self.wire)
        self.server = ProviderServer(self._answer)

    def enter(self, world: World) -> str:
        """A new process of that world; gives its key."""
        self.key = f"sk-process-{next(_keys)}"
        self.worlds[self.key], self.came[self.key] = world, []
        return self.key

    def _answer(self, exchange: Exchange) -> Turn:
        key = key_of(exchange)
        turn, attempt = self.worlds[key].asked[-1]
        self.came[key].append((turn, attempt))
        attempts = self._script[turn]
        return attempts[min(attempt, len(attempts)) - 1]

    def scenario(self) -> Wired:
        """The scenario on this stage."""
        return Wired(
            self.wire.name,
            {},
            policy="transcript",
            cap=100_000,
            tools=(look, pay, mail, send),
            limits=Limits(parallel=2, snapshot_every=5),
            wire=self.wire,
            stage=self,
        )


def key_of(exchange: Exchange) -> str:
    """The key that a request came with."""
    return exchange.headers.get("x-api-key") or exchange.headers["authorization"].removeprefix("Bearer ")


class _Model:
    """The provider, with a point before and after each request and at each piece of its stream."""

    def __init__(self, inner: Any, world: World, seams: Seams) -> None:
        self._inner, self._world, self._seams = inner, world, seams

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def reply(self, request: Request, emit: Emit) -> Reply:
        self._seams.reach("model", "before")
        self._world.answer(request)
        self._world.requests[request.turn] = replace(
            request, blocks=tuple(replace(each, parts=_bare(each.parts)) for each in request.blocks)
        )

        def piece(event: ReplyEvent) -> None:
            self._seams.reach("model.piece", "inside")
            emit(event)

        waits = WAITS.get() or Seams()
        try:
            reply = await waits.call("wait", self._inner.reply, request, piece)
        except Crash:
            self._seams.died = self._seams.died or waits.died
            raise
        except Exception:
            self._seams.reach("model", "after")
            raise
        self._seams.reach("model", "after")
        return cast(Reply, reply)


def _bare(parts: Sequence[Any]) -> tuple[Any, ...]:
    """Parts without what a vendor names or signs them by."""

    def bare(part: AssistantPart) -> Any:
        if isinstance(part, Call):
            return replace(part, vendor=None)
        return replace(part, opaque=None) if isinstance(part, Reasoning) else part

    return tuple(bare(part) for part in parts)


class WiredGround(Ground):
    """A ground whose processes have a real loop."""

    def loop(self, main: Any, idle: Callable[[], None]) -> Any:
        """A real loop; `idle` is called whenever it waits for the network."""
        with asyncio.Runner(loop_factory=lambda: _Loop(idle)) as runner:
            return runner.run(main)


class Bare(Ground):
    """A ground told without the vendor's ids and usage."""

    def __init__(self, ground: Ground) -> None:
        self.world, self._ground = ground.world, ground

    def journal(self) -> list[Entry]:
        """All entries, bare."""

        def bare(entry: Entry) -> Entry:
            what = entry.what
            if not isinstance(what, ModelAnswered):
                return entry
            return replace(entry, what=replace(what, parts=_bare(what.parts), usage=Usage()))

        return [bare(entry) for entry in self._ground.journal()]


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, on_idle: Callable[[], None]) -> None:
        super().__init__(_Watching(on_idle))


class _Watching(selectors.DefaultSelector):
    def __init__(self, on_idle: Callable[[], None]) -> None:
        super().__init__()
        self._on_idle = on_idle

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or timeout > 0:
            self._on_idle()
        return super().select(timeout)


# --- one death --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Death:
    """Where the process dies: at a point of the sweep, or at a suspension inside a model request."""

    at: int
    waiting: bool = False

    def __str__(self) -> str:
        return f"{'wait' if self.waiting else 'point'} {self.at}"


def uncrashed(stage: Stage) -> tuple[WiredGround, Process, int]:
    """The run in which nobody dies, and how often it waited inside model requests."""
    ground = WiredGround(stage.scenario())
    waits = Seams()
    token = WAITS.set(waits)
    try:
        process = ground.process()
    finally:
        WAITS.reset(token)
    return ground, process, len(waits.passed)


def after(stage: Stage, death: Death, same_as: WiredGround) -> list[Violation] | None:
    """Die there, resume, and say what is broken; None where the run came to its end without dying."""
    ground = WiredGround(stage.scenario())
    token = WAITS.set(Seams(Dies(death.at)) if death.waiting else None)
    try:
        first = ground.process(*(() if death.waiting else (Dies(death.at),)))
    finally:
        WAITS.reset(token)
    if first.seams.died is None:
        ground.close()
        return None
    one, before, asked = stage.key, ground.journal(), len(ground.world.asked)
    second = ground.process()
    try:
        found = broken(ground, summary=second.summary, error=second.error, before=before)
        if second.error is None:
            found += difference(Bare(ground), Bare(ground).journal(), Bare(same_as))
        return found + list(_bills(stage, one, asked, before, ground.world))
    finally:
        ground.close()


def _bills(stage: Stage, one: str, asked: int, before: Sequence[Entry], world: World) -> Any:
    """What the server has to say: one HTTP request a call, and none for a turn that was answered."""
    two = stage.key
    if two == one:
        return
    of_one, of_two = stage.came[one], stage.came[two]
    # Whoever died in a request may have died before it was out.
    if not asked - 1 <= len(of_one) <= asked or of_one != world.asked[: len(of_one)]:
        yield Violation("one_request", f"{of_one} came of {world.asked[:asked]}")
    if of_two != world.asked[asked:]:
        yield Violation("one_request", f"{of_two} came of {world.asked[asked:]}")
    answered = {entry.what.turn for entry in before if isinstance(entry.what, ModelAnswered)}
    if again := answered.intersection(turn for turn, _ in of_two):
        yield Violation("paid_once", f"turns {sorted(again)} were journaled and asked for again")


def deaths(process: Process, waits: int) -> list[Death]:
    """Where an SDK makes a difference; what happens inside of tools is swept without one."""
    telling = ("entries.append", "model", "model.piece", "clock.sleep_ms")
    points = [Death(point.number) for point in process.seams.passed if point.seam in telling]
    return points + [Death(number, waiting=True) for number in range(1, waits + 1)]


def main() -> int:
    """All deaths on all wires: `make crash-wires`. Prints what was tried and what is broken."""
    # What a dead process has left open is collected after its loop is gone, and complains.
    sys.unraisablehook = lambda _: None
    count = 0
    for wire in WIRES:
        stage = Stage(wire)
        with stage.server:
            ground, process, waits = uncrashed(stage)
            every = deaths(process, waits)
            results = {str(death): after(stage, death, ground) for death in every}
        tried = [each for each in results.values() if each is not None]
        for name, found in results.items():
            for each in (found or [])[:5]:
                print(f"{wire.name}, {name}: {each}")
                count += 1
        print(
            f"{wire.name}: {len(tried)} of {len(every)} deaths tried, {len(stage.server.exchanges)} requests"
        )
    print("broken" if count else "ok: nothing lost, nothing repeated, nothing paid twice")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
