"""A function as a tool: declared or refused, shown, checked, run, asked and cancelled."""

from __future__ import annotations

import asyncio
import enum
import functools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import Field

from shiftbook import canonical
from shiftbook.errors import AgentMistake
from shiftbook.messages import Text
from shiftbook.tools.contract import (
    BadArguments,
    CannotTell,
    Context,
    DidNotHappen,
    Happened,
    TryAgain,
    contract_digest,
)
from shiftbook.tools.function import FunctionTool, tool
from tests.tools.contexts import a_context

any_tool = cast("Callable[..., Any]", tool)


class Speed(enum.Enum):
    SLOW = "slow"
    FAST = "fast"


@dataclass
class Parcel:
    order: str
    pieces: int = 1


@tool(repeat="keyed", timeout_s=1.5, attempts=3)
def deliver(
    order: Annotated[str, Field(max_length=9)],
    pieces: int,
    *,
    on: date | None = None,
    speed: Speed = Speed.SLOW,
    title: Literal["a", "b"] = "a",
    parcels: list[Parcel] = [],  # noqa: B006 - defaults of this kind are shown in the schema
    context: Context | None = None,
) -> dict[str, object]:
    """Deliver an order.

    Args:
        order: The order's number.
        context: Never shown.
    """
    return {"order": order, "pieces": pieces, "on": on, "speed": speed, "key": context and context.key}


def run(made: FunctionTool[..., Any], arguments: dict[str, Any], context: Context | None = None) -> str:
    output = asyncio.run(made.run(arguments, context or a_context()))
    assert output.blobs == {}
    assert not output.is_error
    (part,) = output.content
    assert isinstance(part, Text)
    return part.text


# --- declared or refused --------------------------------------------------------------------------------


def test_b5_there_is_no_default_repeat_policy():
    """The kind of B5: a tool whose author said nothing about a cut does not exist."""
    for declare in (any_tool, lambda function: any_tool()(function), lambda f: any_tool(repeat=None)(f)):
        with pytest.raises(AgentMistake) as caught:
            declare(lambda: None)
        for choice in ("safe", "keyed", "reconcile", "ask"):
            assert f'"{choice}"' in str(caught.value)
    with pytest.raises(AgentMistake, match="no choice"):
        any_tool(repeat="sometimes")


def reconcile_bare() -> DidNotHappen:
    return DidNotHappen()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"repeat": "reconcile"}, "no function to ask"),
        ({"repeat": "safe", "reconcile": reconcile_bare}, "only repeat="),
        ({"repeat": "safe", "timeout_s": 0}, "seconds above 0"),
        ({"repeat": "safe", "timeout_s": float("nan")}, "seconds above 0"),
        ({"repeat": "safe", "attempts": 0}, "whole number from 1"),
        ({"repeat": "safe", "name": "a b"}, "cannot be called 'a b'"),
        ({"repeat": "safe", "name": "x" * 65}, "cannot be called"),
    ],
)
def test_options_that_cannot_work_are_refused(options, says):
    with pytest.raises(AgentMistake, match=says):
        any_tool(**options)(reconcile_bare)


def stars(*numbers: int) -> None: ...
def named_stars(**numbers: int) -> None: ...
def by_position(number: int, /) -> None: ...
def bare_parameter(number) -> None: ...
def yields(number: int) -> Any:
    yield number


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (stars, r"takes \*numbers"),
        (named_stars, r"takes \*\*numbers"),
        (by_position, "by position only"),
        (bare_parameter, "'number' has no annotation"),
        (yields, "piece by piece"),
        (lambda: None, "cannot be called '<lambda>'"),
        (functools.partial(reconcile_bare), "cannot be called ''"),
    ],
)
def test_signatures_that_no_model_can_call_are_refused_when_declared(function, says):
    with pytest.raises(AgentMistake, match=says):
        tool(repeat="safe")(function)


def unknown_name(number: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def no_schema(first: int, odd: threading.Thread) -> None: ...
def called_back(odd: Callable[[int], int]) -> None: ...
def two_contexts(one: Context, two: Context) -> None: ...


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (unknown_name, "Nowhere"),
        (no_schema, "parameter 'odd' has the type"),
        (called_back, "no JSON schema"),
        (two_contexts, "two contexts, 'one' and 'two'"),
    ],
)
def test_annotations_without_a_schema_are_refused_with_the_first_look(function, says):
    made = tool(repeat="safe")(function)
    with pytest.raises(AgentMistake, match=says) as caught:
        _ = made.schema
    assert len(str(caught.value)) < 400


# --- shown ----------------------------------------------------------------------------------------------


def test_schema_comes_from_signature_and_docstring_and_hides_the_context():
    assert deliver.schema.name == "deliver"
    assert deliver.schema.description == "Deliver an order."
    assert deliver.schema.parameters == {
        "$defs": {
            "Parcel": {
                "additionalProperties": False,
                "properties": {"order": {"type": "string"}, "pieces": {"default": 1, "type": "integer"}},
                "required": ["order"],
                "type": "object",
            },
            "Speed": {"enum": ["slow", "fast"], "type": "string"},
        },
        "additionalProperties": False,
        "properties": {
            "order": {"type": "string", "maxLength": 9, "description": "The order's number."},
            "pieces": {"type": "integer"},
            "on": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
            "speed": {"$ref": "#/$defs/Speed"},
            "title": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "parcels": {"type": "array", "items": {"$ref": "#/$defs/Parcel"}, "default": []},
        },
        "required": ["order", "pieces"],
        "type": "object",
    }
    assert (deliver.repeat, deliver.timeout_ms, deliver.attempts) == ("keyed", 1500, 3)


@tool(repeat="safe", name="renamed", description="Told otherwise.")
def odd_names(self: int, json: str, model_config: bool, _private: int, schema: float = float("nan")) -> str:
    """Not this."""
    return f"{self} {json} {model_config} {_private} {schema}"


def test_any_parameter_name_works_and_options_stand_for_the_function_s_own():
    assert odd_names.schema.name == "renamed"
    assert odd_names.schema.description == "Told otherwise."
    assert list(odd_names.schema.parameters["properties"]) == [
        "self",
        "json",
        "model_config",
        "_private",
        "schema",
    ]
    assert "default" not in odd_names.schema.parameters["properties"]["schema"], "NaN is not JSON"
    assert run(odd_names, {"self": 1, "json": "j", "model_config": True, "_private": 2}) == "1 j True 2 nan"


def test_schema_bytes_are_the_same_in_other_processes():
    """The kind of I6: hash seed and order of import change no byte of what is sent."""
    script = (
        "from tests.tools.test_function import deliver; from shiftbook import canonical;"
        "from shiftbook.tools.contract import contract_digest;"
        "print(ascii(canonical.encode(dict(deliver.schema.parameters))), contract_digest(deliver))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    here = f"{canonical.encode(dict(deliver.schema.parameters))!a} {contract_digest(deliver)}\n"
    assert seen == {here}


def test_the_repeat_policy_is_part_of_the_contract():
    keyed = tool(repeat="keyed")(reconcile_bare)
    safe = tool(repeat="safe")(reconcile_bare)
    assert contract_digest(keyed) != contract_digest(safe)


class Counter:
    """A service whose method and call are tools."""

    def __init__(self) -> None:
        self.total = 0

    def add(self, amount: int) -> int:
        """Add to it."""
        self.total += amount
        return self.total

    async def __call__(self, amount: int) -> int:
        """Add later."""
        return self.add(amount)


def test_methods_partials_and_callable_objects_are_tools():
    counter = Counter()
    method = tool(repeat="safe")(counter.add)
    partial = tool(repeat="safe", name="partial")(functools.partial(counter.add, amount=5))
    called = tool(repeat="safe", name="called")(counter)
    assert [each.schema.description for each in (method, partial, called)] == ["Add to it."] * 2 + [
        "Add later."
    ]
    assert [run(method, {"amount": 2}), run(partial, {}), run(called, {"amount": 1})] == ["2", "7", "8"]


def test_declaring_a_tool_loads_no_pydantic():
    script = (
        "import sys; from shiftbook.tools.function import tool\n"
        "@tool(repeat='safe')\ndef f(x: int) -> int: return x\n"
        "assert 'pydantic' not in sys.modules; f.schema; assert 'pydantic' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


# --- checked --------------------------------------------------------------------------------------------


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


def test_the_function_gets_checked_values_and_its_own_defaults():
    context = a_context(key="k-7")
    given = {"order": "A", "pieces": 2, "on": "2026-03-01", "speed": "fast"}
    assert run(deliver, given, context) == (
        '{"order":"A","pieces":2,"on":{"$date":"2026-03-01"},"speed":"fast","key":"k-7"}'
    )
    assert run(deliver, {"order": "A", "pieces": 2}).endswith('"on":null,"speed":"slow","key":"key-1"}')


# --- run ------------------------------------------------------------------------------------------------


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


# --- asked ----------------------------------------------------------------------------------------------


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


# --- called directly ------------------------------------------------------------------------------------


def test_the_decorated_object_is_still_the_function():
    assert deliver("A", 3)["pieces"] == 3
    assert deliver.__doc__ is not None
    assert deliver.__name__ == "deliver"  # type: ignore[attr-defined]
    assert repr(deliver) == "<tool deliver, repeat='keyed'>"
