"""A tool's arguments checked, its function run, asked and cancelled."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, cast

import pydantic
import pytest

from shiftbook.errors import AgentMistake
from shiftbook.messages import Text
from shiftbook.tools.contract import (
    BadArguments,
    CannotTell,
    Context,
    DidNotHappen,
    Happened,
    TryAgain,
)
from shiftbook.tools.function import tool
from tests.tools.contexts import a_context
from tests.tools.examples import deliver, run

any_tool = cast("Callable[..., Any]", tool)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"order": "A"}, "'pieces' is missing"),
        ({"order": "A", "pieces": "2"}, "'pieces': Input should be a valid integer"),
        ({"order": "A", "pieces": True}, "'pieces': Input should be a valid integer"),
        ({"order": "A", "pieces": 1.0}, "'pieces': Input should be a valid integer"),
        ({"order": "A", "pieces": 1, "on": "soon"}, "'on"),
        ({"order": "A", "pieces": 1, "speed": "FAST"}, "'speed'"),
        (
            {"order": "A", "pieces": 1, "context": None},
            "'context' is not known; the tool takes order, pieces,",
        ),
        ({"order": "A", "pieces": 1, "parcels": [{"order": "B", "weight": 1}]}, "'parcels.0.weight'"),
        ({"order": "\ud83d", "pieces": 1}, "not valid JSON text"),
        ({"order": float("nan"), "pieces": 1}, "JSON cannot say"),
        ({"order": b"raw", "pieces": 1}, "JSON cannot say"),
        (["A", 1], "one JSON object"),
        (None, "one JSON object"),
    ],
)
def test_f11_arguments_that_do_not_fit_run_nothing(arguments, says):
    with pytest.raises(BadArguments, match=says):
        run(deliver, arguments)


def nest(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "arguments",
    [
        {"order": "S" * 1_000_000, "pieces": 1},
        {"order": "A", "pieces": "S" * 1_000_000},
        {"order": "A", "pieces": 1, "S" * 1_000_000: 1},
        {"order": "A", "pieces": 1, "parcels": ["S" * 100] * 10_000},
        {"order": "A", "pieces": nest(5_000)},
        {"order": "A", "pieces": 10**5_000},
        {"order": "A", "pieces": 1, "parcels": [{"order": ["S" * 100_000]}]},
    ],
)
def test_e8_a_refusal_is_short_and_carries_no_value(arguments):
    with pytest.raises(BadArguments) as caught:
        run(deliver, arguments)
    assert len(str(caught.value)) < 1_500
    assert "S" * 100 not in str(caught.value)


class Slot(pydantic.BaseModel):
    """A model with rules of its own."""

    row: int
    seen: set[int] = {1}


def test_the_check_is_strict_all_the_way_down():
    @tool(repeat="safe")
    def put(slots: list[Slot]) -> int:
        return slots[0].row

    assert put.schema.parameters["$defs"]["Slot"]["properties"]["row"] == {"type": "integer"}
    assert run(put, {"slots": [{"row": 5, "seen": [2]}]}) == "5"
    with pytest.raises(BadArguments, match=r"'slots\.0\.row': Input should be a valid integer"):
        run(put, {"slots": [{"row": "5"}]})


def test_the_function_gets_checked_values_and_its_own_defaults():
    context = a_context(key="k-7")
    given = {"order": "A", "pieces": 2, "on": "2026-03-01", "speed": "fast"}
    assert run(deliver, given, context) == (
        '{"order":"A","pieces":2,"on":{"$date":"2026-03-01"},"speed":"fast","key":"k-7"}'
    )
    assert run(deliver, {"order": "A", "pieces": 2}).endswith('"on":null,"speed":"slow","key":"key-1"}')


def test_b13_the_key_reaches_the_tool_outside_the_arguments():
    """One key for every attempt at a call, another for a new call, however equal the arguments are."""
    seen = []

    @tool(repeat="keyed")
    def send(to: str, context: Context) -> None:
        seen.append((to, context.key, context.attempt, context.headers()))

    assert list(send.schema.parameters["properties"]) == ["to"]
    for context in (a_context(key="a"), a_context(key="a", attempt=2), a_context(key="b", call="2.1")):
        run(send, {"to": "x"}, context)
    with pytest.raises(BadArguments):
        run(send, {"to": "x", "context": {"key": "forged"}})
    assert seen == [
        ("x", "a", 1, {"Idempotency-Key": "a"}),
        ("x", "a", 2, {"Idempotency-Key": "a"}),
        ("x", "b", 1, {"Idempotency-Key": "b"}),
    ]


def test_a_waiting_thread_does_not_hold_up_the_loop_and_many_may_wait():
    """More tools at once than any fixed pool has threads: each waits for the last to arrive."""
    count = 70
    together = threading.Barrier(count + 1)

    @tool(repeat="safe")
    def wait(context: Context) -> str:
        context.progress("here")
        together.wait(timeout=30)
        return threading.current_thread().name if threading.current_thread().daemon else "not a daemon"

    async def scenario() -> set[str]:
        all_here = asyncio.Semaphore(0)
        context = a_context(report=lambda _: all_here.release())
        waiting = [asyncio.create_task(wait.run({}, context)) for _ in range(count)]
        for _ in range(count):
            await all_here.acquire()
        assert not any(task.done() for task in waiting)
        together.wait(timeout=30)
        return {cast("Text", (await task).content[0]).text for task in waiting}

    assert asyncio.run(scenario()) == {"shiftbook tool"}


@tool(repeat="safe")
def raising(kind: str) -> None:
    """Raise what is asked for."""
    raise RAISED[kind]


@tool(repeat="safe")
async def raising_async(kind: str) -> None:
    """Raise what is asked for."""
    raise RAISED[kind]


class Crash(BaseException):
    """As the crash sweep's: no `except Exception` may swallow it."""


RAISED: dict[str, BaseException] = {
    "value": ValueError("no"),
    "stop": StopIteration(3),
    "exit": SystemExit(2),
    "cancelled": asyncio.CancelledError(),
    "crash": Crash(),
    "again": TryAgain("busy"),
}


@pytest.mark.parametrize("made", [raising, raising_async], ids=["thread", "async"])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("value", ValueError),
        ("stop", RuntimeError),
        ("exit", RuntimeError),
        ("cancelled", RuntimeError),
        ("crash", Crash),
        ("again", TryAgain),
    ],
)
def test_what_a_tool_raises_is_raised_and_never_taken_for_a_signal(made, kind, expected):
    async def scenario() -> BaseException:
        try:
            await made.run({"kind": kind}, a_context())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test looks at it
            return error
        raise AssertionError("nothing was raised")

    error = asyncio.run(scenario())
    assert type(error) is expected
    assert error is RAISED[kind] or error.__cause__ is RAISED[kind]


def test_a_plain_function_may_hand_back_a_coroutine():
    async def later(number: int) -> int:
        await asyncio.sleep(0)
        return number + 1

    @tool(repeat="safe")
    def wrapped(number: int) -> Any:
        return later(number)

    assert run(wrapped, {"number": 1}) == "2"


def test_progress_from_a_thread_arrives_on_the_loop_before_the_result():
    seen: list[tuple[str, str]] = []

    @tool(repeat="safe")
    def work(context: Context) -> None:
        for step in ("one", "two"):
            context.progress(step)

    context = a_context(report=lambda text: seen.append((text, threading.current_thread().name)))
    run(work, {}, context)
    assert seen == [("one", "MainThread"), ("two", "MainThread")]


def test_cancellation_asks_a_thread_and_does_not_wait_for_it():
    released, ended = threading.Event(), threading.Event()

    @tool(repeat="ask")
    def stubborn(context: Context) -> str:
        context.progress("here")
        context.cancelled.wait(timeout=30)
        released.wait(timeout=30)
        ended.set()
        return "too late"

    async def scenario() -> None:
        begun = asyncio.Event()
        context = a_context(report=lambda _: begun.set())
        task = asyncio.create_task(stubborn.run({}, context))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert context.cancelled.is_set()
        assert not ended.is_set()
        released.set()

    asyncio.run(scenario())
    assert ended.wait(timeout=30)


def test_cancellation_reaches_an_async_function():
    seen = []

    @tool(repeat="ask")
    async def waits(context: Context) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def scenario() -> None:
        context = a_context()
        task = asyncio.create_task(waits.run({}, context))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert context.cancelled.is_set()

    asyncio.run(scenario())
    assert seen == ["cancelled"]


def test_ctrl_c_ends_a_process_whose_tool_goes_on_for_ever():
    script = (
        "import asyncio, os, signal, threading\n"
        "from tests.tools.contexts import a_context\n"
        "from shiftbook.tools.function import tool\n"
        "@tool(repeat='safe')\n"
        "def endless() -> None:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    threading.Event().wait()\n"
        "asyncio.run(endless.run({}, a_context()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert "KeyboardInterrupt" in done.stderr
    assert done.returncode != 0


def find_order(order: str, context: Context) -> Happened | DidNotHappen:
    return Happened({"order": order, "key": context.key}) if order == "A" else DidNotHappen()


async def find_order_async(pieces: int) -> Any:
    return CannotTell() if pieces else "yes"


@pytest.mark.parametrize(
    ("reconcile", "order", "expected"),
    [
        (find_order, "A", Happened({"order": "A", "key": "key-1"})),
        (find_order, "B", DidNotHappen()),
        (find_order_async, "A", CannotTell()),
    ],
)
def test_reconcile_takes_the_parameters_that_it_names(reconcile, order, expected):
    @tool(repeat="reconcile", reconcile=reconcile)
    def place(order: str, pieces: int = 5) -> None:
        raise AssertionError("it was run")

    assert asyncio.run(place.ask({"order": order}, a_context())) == expected


def test_mistakes_in_reconcile_are_told():
    @tool(repeat="reconcile", reconcile=find_order)
    def other(number: int) -> None: ...

    with pytest.raises(AgentMistake, match="takes 'order', which the tool does not"):
        _ = other.schema

    @tool(repeat="reconcile", reconcile=find_order_async)
    def wrong(pieces: int) -> None: ...

    with pytest.raises(AgentMistake, match="returned str: it must return Happened"):
        asyncio.run(wrong.ask({"pieces": 0}, a_context()))
    with pytest.raises(AgentMistake, match="no reconcile function"):
        asyncio.run(deliver.ask({"order": "A", "pieces": 0}, a_context()))
