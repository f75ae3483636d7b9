"""A pause that its vendor does not go on with: the epoch ends, and the model begins anew."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from shiftbook.entries import EpochOpened, ModelAsked, ModelFailed, ModelInterrupted, PersonSaid, Warned
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Store
from shiftbook.providers.scripted import say
from shiftbook.run.limits import Limits
from shiftbook.run.loop import Run, resume, start
from shiftbook.run.mail import post
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.server import Cuts, Fails, ProviderServer
from shiftbook.verify import verify
from tests.providers.test_paused_runs import FIRST, LAST, SEARCH, sent
from tests.providers.test_runs_over_wires import agent, entries
from tests.providers.wires import ANTHROPIC

RUN = "run7"
POLICIES = ["transcript", "window", "masking", "notes", "journal"]
GoesOn = Callable[[Store, Callable[..., Awaitable[Run]]], Awaitable[None]]


def after_a_pause(script: Sequence[Any], policy: str, goes_on: GoesOn) -> tuple[ProviderServer, list[Any]]:
    """A run that has paused in its first turn; `goes_on` takes it up. The server, and all that happened."""
    whats: list[Any] = []

    async def main(server: ProviderServer) -> None:
        clock = SimulatedClock()
        store = await open_store(":memory:", clock=clock)
        model = ANTHROPIC.at(server, server_tools=SEARCH)

        def made(**limits: Any) -> Any:
            return agent(model, policy=policy, cap=20_000, limits=Limits(retry_ms_min=0, **limits))

        async def take_up() -> Run:
            return await resume(store, RUN, made(), clock=clock)

        try:
            async with await start(store, made(turns=1), "What is tea?", run=RUN, clock=clock) as run:
                await run.finish()
            await goes_on(store, take_up)
            assert (await verify(store, RUN)).ok
            kinds = (EpochOpened, ModelAsked, ModelFailed, ModelInterrupted, Warned, PersonSaid)
            whats.extend(await entries(store, RUN, *kinds))
        finally:
            await store.close()

    with ProviderServer([FIRST, *script]) as server:
        asyncio.run(main(server))
    return server, whats


def ended_at_the_pause(server: ProviderServer, whats: Sequence[Any]) -> None:
    """The last request stands in a second epoch and holds nothing of the vendor's work."""
    opened = [each for each in whats if isinstance(each, EpochOpened)]
    assert [each.reason for each in opened[1:]] == ["a paused reply was not gone on with"]
    said = sent(server.exchanges[-1])
    kinds = {block["type"] for message in said for block in message["content"]}
    assert kinds == {"text"}
    assert said[-1]["role"] == "user"
    text = "\n".join(block["text"] for message in said for block in message["content"])
    assert "What is tea?" in text
    assert "I look." in text, "what it said stays"


@pytest.mark.parametrize("policy", POLICIES)
def test_a_refused_continuation_is_asked_anew_and_the_run_goes_on(policy: str) -> None:
    async def goes_on(store: Store, take_up: Any) -> None:
        async with await take_up() as run:
            assert (await run.finish()).state == "finished"

    server, whats = after_a_pause([Fails(400), LAST], policy, goes_on)
    ended_at_the_pause(server, whats)
    assert [each.what for each in whats if isinstance(each, Warned)] == ["pause given up"]
    assert len(server.exchanges) == 3


def test_a_model_that_cannot_be_had_costs_no_pause() -> None:
    """A wrong key is no refusal of the turn: who sets it right goes on where the vendor stopped."""

    async def goes_on(store: Store, take_up: Any) -> None:
        for state in ("failed", "finished"):
            async with await take_up() as run:
                assert (await run.finish()).state == state

    server, whats = after_a_pause([Fails(401), LAST], "journal", goes_on)
    assert len([each for each in whats if isinstance(each, EpochOpened)]) == 1
    assert [each.what for each in whats if isinstance(each, Warned)] == []
    assert sent(server.exchanges[2]) == sent(server.exchanges[1])


@pytest.mark.parametrize("policy", POLICIES)
def test_a_continuation_that_is_cancelled_is_not_left_in_the_midst_of_the_vendors_work(policy: str) -> None:
    async def goes_on(store: Store, take_up: Any) -> None:
        async with await take_up() as run:
            announced = run._desk.book.on_entry
            assert announced is not None

            def cancels(entry: Any) -> None:
                announced(entry)
                if isinstance(entry.what, ModelAsked):
                    run.cancel()

            run._desk.book.on_entry = cancels
            assert (await run.finish()).state == "cancelled"
        await post(store, RUN, "Go on all the same.")
        async with await take_up() as run:
            assert (await run.finish()).state == "finished"

    server, whats = after_a_pause([LAST, LAST], policy, goes_on)
    ended_at_the_pause(server, whats)
    assert sent(server.exchanges[-1])[-1]["content"][-1]["text"] == "Go on all the same."


def test_a_continuation_that_breaks_off_is_not_left_in_the_midst_of_the_vendors_work() -> None:
    async def goes_on(store: Store, take_up: Any) -> None:
        async with await take_up() as run:
            assert (await run.finish()).state == "finished"

    broken = Cuts(say("It is four " + "and then some " * 40), "text")
    server, whats = after_a_pause([broken, LAST], "journal", goes_on)
    (interrupted,) = [each for each in whats if isinstance(each, ModelInterrupted)]
    assert interrupted.parts
    ended_at_the_pause(server, whats)
