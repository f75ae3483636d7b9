"""A model's arguments against a function's parameters: the JSON schema that it is shown, and the check.

The schema is the same bytes in every process. The check is strict, in JSON's terms: a date may come as text,
a number may not, an unknown argument is refused; nothing is guessed, so that what a person approves is
what is run. What is refused is told to the model in a few short lines that carry no value of it.
pydantic is loaded when the first schema is made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from shiftbook import canonical
from shiftbook.errors import AgentMistake, NotCanonical
from shiftbook.messages import Json
from shiftbook.tools.contract import BadArguments
from shiftbook.tools.signature import REQUIRED, Parameter, Parameters

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

FAULTS_TOLD = 5
"""Faults that one refusal names; the rest are counted."""

PLACE_CHARS_MAX = 80
FAULT_CHARS_MAX = 200


class Arguments:
    """The parameters of one tool, as a schema and as a check."""

    def __init__(self, tool: str, parameters: Parameters, words: Mapping[str, str]) -> None:
        """`words` describes parameters by name. Raises `AgentMistake` for a type that no schema can tell."""
        self._tool = tool
        self._parameters = parameters.from_model
        self._model = _make_model(tool, self._parameters, words)
        self.schema = _make_schema(tool, self._model)

    def read(self, arguments: Mapping[str, Json]) -> dict[str, Any]:
        """The values to call the function with; what the model left out is left to the function's defaults.

        Raises `BadArguments` with a message for the model.
        """
        from pydantic import ValidationError

        if not isinstance(arguments, Mapping):
            raise BadArguments(f"The arguments of {self._tool} must be one JSON object.")
        try:
            text = json.dumps(dict(arguments), allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise BadArguments(
                f"The arguments of {self._tool} hold what JSON cannot say, such as NaN or an infinity."
            ) from None
        try:
            checked = self._model.model_validate_json(text, strict=True)
        except ValidationError as error:
            raise BadArguments(self._told(error)) from None
        except Exception as error:  # a validator of the author's own may raise anything
            raise BadArguments(
                f"The arguments of {self._tool} were refused: {_clip(f'{error}', FAULT_CHARS_MAX)}"
            ) from error
        given = checked.model_fields_set
        return {
            parameter.name: getattr(checked, _field(number))
            for number, parameter in enumerate(self._parameters)
            if _field(number) in given
        }

    def _told(self, error: ValidationError) -> str:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        lines = [self._fault(fault["type"], fault["loc"], fault["msg"]) for fault in faults[:FAULTS_TOLD]]
        if len(faults) > FAULTS_TOLD:
            lines.append(f"and {len(faults) - FAULTS_TOLD} more")
        return f"The arguments of {self._tool} do not fit. " + "; ".join(lines) + "."

    def _fault(self, kind: str, place: tuple[int | str, ...], message: str) -> str:
        where = _clip(".".join(str(step) for step in place), PLACE_CHARS_MAX)
        if kind == "json_invalid":
            return "They are not valid JSON text: a lone surrogate, or lists and objects nested too deep"
        if kind == "extra_forbidden" and len(place) == 1:
            known = ", ".join(parameter.name for parameter in self._parameters)
            return f"{where!r} is not known; the tool takes {known or 'no arguments'}"
        if kind == "missing":
            return f"{where!r} is missing"
        return f"{where!r}: {_clip(message, FAULT_CHARS_MAX)}"


def _make_model(tool: str, parameters: tuple[Parameter, ...], words: Mapping[str, str]) -> type[BaseModel]:
    from pydantic import ConfigDict, Field, create_model

    # Fields are numbered and known outside by their alias, so that a parameter may have any name.
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(parameters):
        told: dict[str, Any] = {"alias": parameter.name}
        if parameter.name in words:
            told["description"] = words[parameter.name]
        if parameter.default is not REQUIRED:
            if _json_can_say(parameter.default):
                told["default"] = parameter.default
            else:
                told["default_factory"] = _always(parameter.default)
        fields[_field(number)] = (parameter.annotation, Field(**told))
    config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())
    try:
        return create_model("Arguments", __config__=config, **fields)
    except Exception as error:  # an annotation may bring its own schema code
        raise _unfit(tool, parameters, error) from error


def _make_schema(tool: str, model: type[BaseModel]) -> Mapping[str, Json]:
    from pydantic.errors import PydanticUserError
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        """Leaves out the titles made from names: they tell the model nothing and cost tokens each turn."""

        ignored_warning_kinds = GenerateJsonSchema.ignored_warning_kinds | {"non-serializable-default"}

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    try:
        schema: dict[str, Any] = model.model_json_schema(by_alias=True, schema_generator=Untitled)
        for definition in (schema, *schema.get("$defs", {}).values()):
            definition.pop("title", None)
        schema.setdefault("properties", {})
        canonical.encode(schema)
    except (PydanticUserError, TypeError, ValueError, NotCanonical) as error:
        raise AgentMistake(
            f"Tool {tool!r}: its parameters have no JSON schema ({_first_line(error)}). "
            "Use types that JSON can carry."
        ) from error
    return schema


def _unfit(tool: str, parameters: tuple[Parameter, ...], error: Exception) -> AgentMistake:
    """Name the parameter that is to blame, by trying each alone."""
    from pydantic import ConfigDict, TypeAdapter

    for parameter in parameters:
        try:
            TypeAdapter(parameter.annotation, config=ConfigDict(strict=True))
        except Exception:  # noqa: BLE001 - as above; the cause is told in one sentence, not by its own text
            return AgentMistake(
                f"Tool {tool!r}: parameter {parameter.name!r} has the type "
                f"{_clip(str(parameter.annotation), 80)}, which has no JSON schema. "
                "Use types that JSON can carry."
            )
    return AgentMistake(f"Tool {tool!r}: its parameters have no JSON schema ({_first_line(error)}).")


def _field(number: int) -> str:
    return f"p{number}"


def _always(value: Any) -> Callable[[], Any]:
    return lambda: value


def _json_can_say(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _first_line(error: Exception) -> str:
    return _clip(str(error).partition("\n")[0], FAULT_CHARS_MAX)


def _clip(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else text[: chars_max - 3] + "..."
