"""A typed answer: what the reply that ends a task has to be, as a JSON schema and as a check.

The model is told the schema with its instructions. Its final reply is read as one JSON value, alone or as the
one fenced block of the reply, and checked; nothing in it is repaired or guessed. What does not fit is
told in a few short lines, from which the model is asked again. pydantic, or `jsonschema` for a schema given
as a mapping, is loaded when an agent declares such an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from shiftbook import canonical
from shiftbook.entries import ModelAnswered
from shiftbook.errors import AgentMistake, NotCanonical, ShiftbookError
from shiftbook.messages import Json, Text
from shiftbook.tools.contract import stable_schema

FAULTS_TOLD = 5
FAULT_CHARS_MAX = 300
_FENCE = "```"

TOLD = (
    "When the task is done, reply without a tool call: that reply is read by a program. It has to be one "
    "JSON value that fits the following JSON Schema, and nothing else.\n{schema}"
)
REPAIR = (
    "Your last reply is not the answer that was asked for. {why}. Reply again with one JSON value that fits "
    "the JSON Schema of the instructions, and nothing else."
)


class Unfit(ShiftbookError):
    """A reply is not the answer that was declared; the message tells the model why."""


class Shape:
    """What a final reply has to be. `schema` is the JSON schema that the model is shown."""

    def __init__(self, schema: Json, check: Callable[[str, Json], Json]) -> None:
        self.schema = schema
        self._check = check
        self._text = canonical.encode(schema)

    def told(self, instructions: str) -> str:
        """The instructions with the schema behind them."""
        words = TOLD.format(schema=self._text)
        return f"{instructions}\n\n{words}" if instructions else words

    def read(self, reply: ModelAnswered) -> Json:
        """The answer as a plain value. Raises `Unfit`."""
        if reply.stop == "length":
            raise Unfit("It was cut at the output limit; give a shorter one")
        text = _bare("".join(part.text for part in reply.parts if isinstance(part, Text)))
        if not text:
            raise Unfit("It holds no text")
        try:
            value = json.loads(text, parse_constant=_refuse)
            text.encode("utf-8")
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")
        except (ValueError, RecursionError) as fault:
            raise Unfit(f"It is not one JSON value ({_clip(str(fault))})") from None
        plain = self._check(text, value)
        try:
            canonical.encode(plain)
        except NotCanonical as fault:
            raise Unfit(f"It cannot be kept ({_clip(str(fault))})") from None
        return plain


def shape_of(output: Any) -> Shape:
    """The shape that `Agent(output=...)` declares: a JSON schema as a mapping, or a type that pydantic takes.

    Raises `AgentMistake` when it is neither.
    """
    return _of_schema(output) if isinstance(output, Mapping) else _of_type(output)


def repair_text(why: str) -> str:
    """What the model is told of a reply that does not fit."""
    return REPAIR.format(why=why.rstrip("."))


def _of_type(output: Any) -> Shape:
    from pydantic import TypeAdapter, ValidationError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(output)
        schema = stable_schema(adapter.json_schema())
        canonical.encode(schema)
    except Exception as fault:  # a type may bring schema code of its own
        raise AgentMistake(
            f"The output {_clip(repr(output))} has no JSON schema ({type(fault).__name__}): declare a "
            "pydantic model, a type that JSON can carry, or a JSON schema."
        ) from fault

    def check(text: str, value: Json) -> Json:
        try:
            return adapter.dump_python(adapter.validate_json(text), mode="json", by_alias=True)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_context=False, include_input=False)
            raise Unfit(_told((".".join(map(str, each["loc"])), each["msg"]) for each in faults)) from None
        except Exception as fault:  # a validator of the author's own may raise anything
            raise Unfit(f"It was refused ({_clip(f'{type(fault).__name__}: {fault}')})") from fault

    return Shape(schema, check)


def _of_schema(output: Mapping[str, Json]) -> Shape:
    try:
        from jsonschema import SchemaError  # type: ignore[import-untyped]
        from jsonschema.validators import validator_for  # type: ignore[import-untyped]
        from referencing import Registry
    except ImportError as fault:
        raise AgentMistake(
            "An output declared as a JSON schema needs `pip install 'shiftbook[schema]'`; "
            "a pydantic model does not."
        ) from fault
    try:
        schema = stable_schema(dict(output))
        canonical.encode(schema)
        kind = validator_for(schema)
        kind.check_schema(schema)
    except (SchemaError, NotCanonical) as fault:
        raise AgentMistake(f"The output is no valid JSON schema ({_clip(fault.args[0])}).") from fault
    # An empty registry: no reference is ever fetched.
    validator = kind(schema, registry=Registry())

    def check(text: str, value: Json) -> Json:
        try:
            faults = sorted(validator.iter_errors(value), key=lambda each: (each.json_path, each.message))
        except Exception as fault:  # a reference that leads nowhere, or a pattern that is none
            raise Unfit(f"It cannot be checked ({_clip(f'{type(fault).__name__}: {fault}')})") from fault
        if faults:
            raise Unfit(_told((each.json_path, each.message) for each in faults))
        return value

    return Shape(schema, check)


def _bare(text: str) -> str:
    """The text, or what stands in its fence where the whole of it is one fenced block."""
    text = text.strip()
    if text.startswith(_FENCE) and text.endswith(_FENCE) and text.count(_FENCE) == 2:
        first, _, rest = text.partition("\n")
        if first.removeprefix(_FENCE).strip().lower() in ("", "json"):
            return rest.removesuffix(_FENCE).strip()
    return text


def _told(faults: Iterable[tuple[str, str]]) -> str:
    lines = [f"{_clip(place)}: {_clip(what)}" if place else _clip(what) for place, what in faults]
    more = [f"and {len(lines) - FAULTS_TOLD} more"] if len(lines) > FAULTS_TOLD else []
    return "It does not fit the schema: " + "; ".join([*lines[:FAULTS_TOLD], *more])


def _clip(text: str) -> str:
    return text if len(text) <= FAULT_CHARS_MAX else f"{text[:FAULT_CHARS_MAX]}..."


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")
