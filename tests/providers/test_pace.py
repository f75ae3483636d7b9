"""One account, one gate: who is told to wait makes the others wait; known limits are kept."""

from __future__ import annotations

import asyncio
from itertools import count, pairwise
from typing import Any

import pytest

from shiftbook.entries import ModelFailed
from shiftbook.errors import AgentMistake
from shiftbook.journal.open import open_store
from shiftbook.messages import Usage
from shiftbook.providers.bridge import Bridge
from shiftbook.providers.pace import Pace, pace_of
from shiftbook.providers.scripted import call, say
from shiftbook.run.agent import Agent
from shiftbook.run.book import read_entries
from shiftbook.run.loop import start
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.server import Exchange, Fails, ProviderServer, Turn
from shiftbook.tools.function import tool
from tests.providers.wires import ANTHROPIC, WIRES

EACH = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
_keys = count(1)


class Counting(SimulatedClock):
    """Counts its sleeps."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeps: list[float] = []

    async def sleep_ms(self, duration_ms: float) -> None:
        self.sleeps.append(duration_ms)
        await super().sleep_ms(duration_ms)


def waits(pace: Pace, *tokens: int) -> list[float]:
    """What each of these requests waits, one sent after the other."""
    clock = Counting()

    async def main() -> list[float]:
        return [await pace.enter(clock, each) for each in tokens]

    found = asyncio.run(main())
    assert len(clock.sleeps) == sum(1 for each in found if each), "one sleep a wait"
    return found


def test_requests_per_minute_may_come_at_once_and_then_evenly() -> None:
    assert waits(Pace(requests_per_minute=3), *[1] * 6) == pytest.approx([0, 0, 0, 20_000, 20_000, 20_000])


def test_tokens_per_minute_count_and_one_request_above_them_all_goes_when_all_is_there() -> None:
    pace = Pace(tokens_per_minute=6_000)
    # 4,000 of 6,000; 3,000 wait for 1,000 more, at 100 a second; then nothing is left, and all of it is asked
    # for: a minute. 3,000 beyond it are owed, so that the next waits for them as well.
    assert waits(pace, 4_000, 3_000, 9_000, 1_000) == pytest.approx([0, 10_000, 60_000, 40_000])


def test_what_was_taken_too_much_is_given_back_when_the_usage_is_known() -> None:
    pace = Pace(tokens_per_minute=6_000)
    clock = SimulatedClock()

    async def main() -> list[float]:
        first = await pace.enter(clock, 6_000)
        pace.settle(6_000, Usage(500, 5_000, 0, 0, 500))  # what a cache served counts for nothing
        second = await pace.enter(clock, 5_000)
        pace.settle(5_000, Usage())  # nothing reported, nothing put right
        return [first, second, await pace.enter(clock, 1_000)]

    assert asyncio.run(main()) == pytest.approx([0, 0, 10_000])


def test_a_gate_that_is_closed_anew_while_somebody_waits_keeps_him_waiting() -> None:
    pace, clock = Pace(), SimulatedClock()

    class Closing(SimulatedClock):
        async def sleep_ms(self, duration_ms: float) -> None:
            if self.steady_ms() < 1:
                pace.close(self, 9_000)
                pace.close(self, 2_000)  # shortens nothing
            await super().sleep_ms(duration_ms)

    closing = Closing(time=clock.time)

    async def main() -> float:
        pace.close(clock, 5_000)
        return await pace.enter(closing, 1)

    assert asyncio.run(main()) == pytest.approx(9_000)


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(AgentMistake, match="requests_per_minute is 0"):
        Pace(requests_per_minute=0)


@EACH
def test_providers_of_one_key_share_a_gate_and_no_key_is_kept(wire: Any) -> None:
    def made(**more: Any) -> Pace:
        pace: Pace = wire.provider(wire.model, **({"api_key": "sk-one"} | more)).pace
        return pace

    assert made() is made()
    others = [
        made(api_key="sk-two"),
        made(base_url="http://127.0.0.1:1/v1"),
        wire.provider("m", api_key="sk-one").pace,
    ]
    assert len({id(each) for each in (made(), *others)}) == 4
    own = Pace()
    assert made(pace=own) is own
    assert pace_of("m", None, "sk-one") is pace_of("m", None, "sk-one")


def test_the_bridge_has_a_gate_too() -> None:
    def made(key: str) -> Pace:
        return Bridge("openai:gpt-6-sol", api_key=key, base_url="http://127.0.0.1:1/v1").pace

    assert made("a") is made("a")
    assert made("a") is not made("b")


@tool(repeat="safe")
async def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: 12 crates"


def agent(model: Any) -> Agent:
    return Agent(name="worker", model=model, tools=(look,))


@EACH
def test_a_429_of_one_run_makes_every_run_of_its_key_wait(wire: Any) -> None:
    clock = SimulatedClock()
    came: list[tuple[str, float]] = []

    def script(exchange: Exchange) -> Turn:
        key = exchange.headers.get("x-api-key") or exchange.headers["authorization"].removeprefix("Bearer ")
        came.append((key, clock.steady_ms()))
        return Fails(429, retry_after_s=7) if len(came) == 1 else say("Done.")

    told, others = asyncio.Event(), asyncio.Event()
    shared, apart = f"sk-shared-{next(_keys)}", f"sk-apart-{next(_keys)}"

    class Told(SimulatedClock):
        """Waits for its next attempt until the others are through."""

        async def sleep_ms(self, duration_ms: float) -> None:
            told.set()
            await others.wait()
            await super().sleep_ms(duration_ms)

    async def one(store: Any, run: str, key: str, own: SimulatedClock = clock) -> None:
        model = wire.at(server, api_key=key)
        async with await start(store, agent(model), "Begin.", run=run, clock=own) as handle:
            assert (await handle.finish()).state == "finished"

    async def main() -> None:
        store = await open_store(":memory:", clock=clock)
        try:
            first = asyncio.create_task(one(store, "first", shared, Told(time=clock.time)))
            waiting = asyncio.ensure_future(told.wait())
            await asyncio.wait({first, waiting}, return_when=asyncio.FIRST_COMPLETED)
            assert waiting.done(), "the first run was told to wait"
            await one(store, "apart", apart)
            await one(store, "second", shared)
            others.set()
            await first
        finally:
            await store.close()

    with ProviderServer(script, clock=clock) as server:
        asyncio.run(main())
    assert len(server.exchanges) == 4, "nobody else had to find out"
    at = {name: [ms for key, ms in came if key == name] for name in (shared, apart)}
    assert at[shared][0] == at[apart][0] == 0
    assert all(ms >= 7_000 for ms in at[shared][1:])
    assert len(at[shared]) == 3


@pytest.mark.parametrize("as_date", [False, True])
@EACH
def test_every_attempt_is_recorded_with_the_wait_that_the_vendor_wishes(wire: Any, as_date: bool) -> None:
    clock = SimulatedClock()
    times: list[float] = []
    faults: list[Turn] = [
        Fails(429, retry_after_s=30, as_date=as_date),
        Fails(529),
        Fails(500, retry_after_s=90, as_date=as_date),
    ]

    def script(exchange: Exchange) -> Turn:
        times.append(clock.steady_ms())
        return faults[len(times) - 1] if len(times) <= 3 else say("Done.")

    async def main() -> list[Any]:
        store = await open_store(":memory:", clock=clock)
        try:
            model = wire.at(server, api_key=f"sk-{next(_keys)}", clock=clock)
            async with await start(store, agent(model), "Begin.", run="r", clock=clock) as handle:
                assert (await handle.finish()).state == "finished"
            return [each for each in await read_entries(store, "r") if isinstance(each.what, ModelFailed)]
        finally:
            await store.close()

    with ProviderServer(script, clock=clock) as server:
        failed = asyncio.run(main())
    assert [each.what.attempt for each in failed] == [1, 2, 3]
    assert [each.what.status for each in failed] == [429, 529, 500]
    wished = [each.what.retry_at_ms - each.at_ms for each in failed]
    assert wished == pytest.approx([30_000, 2_000, 90_000], abs=1_000 if as_date else 1)
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps == pytest.approx(wished, abs=2)


def test_a_run_that_is_stopped_at_the_gate_rests_and_goes_on_later() -> None:
    class Stopping(SimulatedClock):
        def __init__(self) -> None:
            super().__init__()
            self.handle: Any = None

        async def sleep_ms(self, duration_ms: float) -> None:
            if self.handle is not None:
                handle, self.handle = self.handle, None
                handle.stop("lunch")
            await super().sleep_ms(duration_ms)

    clock, pace = Stopping(), Pace()

    async def main() -> None:
        store = await open_store(":memory:", clock=clock)
        try:
            one = agent(ANTHROPIC.at(server, pace=pace))
            async with await start(store, one, "Begin.", run="r", clock=clock) as handle:
                clock.handle = handle
                pace.close(clock, 60_000)
                assert (await handle.finish()).state == "paused"
                assert server.exchanges == ()
                assert (await handle.finish()).state == "finished"
        finally:
            await store.close()

    with ProviderServer([call("look", {"place": "A"}), say("Done.")]) as server:
        asyncio.run(main())
    assert len(server.exchanges) == 2
