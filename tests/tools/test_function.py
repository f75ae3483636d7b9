"""A function as a tool: declared or refused, shown to the model, still the function."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from shiftbook import canonical
from shiftbook.errors import AgentMistake
from shiftbook.tools.contract import (
    Context,
    DidNotHappen,
    contract_digest,
)
from shiftbook.tools.function import tool
from tests.tools.examples import deliver, run

any_tool = cast("Callable[..., Any]", tool)


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


def test_the_decorated_object_is_still_the_function():
    assert deliver("A", 3)["pieces"] == 3
    assert deliver.__doc__ is not None
    assert deliver.__name__ == "deliver"  # type: ignore[attr-defined]
    assert repr(deliver) == "<tool deliver, repeat='keyed'>"
