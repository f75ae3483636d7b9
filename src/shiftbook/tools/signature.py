"""A function's signature as a tool's parameters: which the model fills in, and which one takes the context.

A model calls by name, so every parameter must have a name, an annotation and a place in a JSON object.
Refused with `AgentMistake`: *args, **kwargs, positional-only parameters, parameters without an annotation,
a second context, annotations that cannot be resolved.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from shiftbook.errors import AgentMistake
from shiftbook.tools.contract import Context

REQUIRED = inspect.Parameter.empty
"""The default of a parameter that has none."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that the model fills in; `default` is `REQUIRED` when it must."""

    name: str
    annotation: Any
    default: Any


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a function takes: from the model, and under `context` (None: not at all) from the engine."""

    from_model: tuple[Parameter, ...]
    context: str | None


def check_shape(function: Callable[..., object], tool: str) -> inspect.Signature:
    """The signature, once it is certain that a model can call it; reads no annotation."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise AgentMistake(
            f"Tool {tool!r}: its signature cannot be read. Wrap it in a function with annotated parameters."
        ) from None
    for parameter in signature.parameters.values():
        match parameter.kind:
            case parameter.VAR_POSITIONAL | parameter.VAR_KEYWORD:
                stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
                raise AgentMistake(
                    f"Tool {tool!r} takes {stars}{parameter.name}: a model passes named arguments, "
                    "so give each its own parameter."
                )
            case parameter.POSITIONAL_ONLY:
                raise AgentMistake(
                    f"Tool {tool!r} takes {parameter.name!r} by position only: a model passes arguments by "
                    "name, so remove the `/`."
                )
            case _ if parameter.annotation is parameter.empty:
                raise AgentMistake(
                    f"Tool {tool!r}: parameter {parameter.name!r} has no annotation, so the model cannot be "
                    "told what to pass. Annotate it; for a method, declare the bound method: "
                    "tool(repeat=...)(service.method)."
                )
    return signature


def read_parameters(function: Callable[..., object], tool: str) -> Parameters:
    """Resolve the annotations and set the context apart."""
    signature = check_shape(function, tool)
    hints = _hints(function, tool)
    from_model = []
    context = None
    for parameter in signature.parameters.values():
        annotation = hints.get(parameter.name, parameter.annotation)
        if not _is_context(annotation):
            from_model.append(Parameter(parameter.name, annotation, parameter.default))
        elif context is None:
            context = parameter.name
        else:
            raise AgentMistake(
                f"Tool {tool!r} takes two contexts, {context!r} and {parameter.name!r}: keep one of them."
            )
    return Parameters(tuple(from_model), context)


def bare(function: Callable[..., object]) -> Callable[..., object]:
    """The function that was written, without wrappers and partial arguments; of an object its `__call__`."""
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = inspect.unwrap(function.func)
    return function if inspect.isroutine(function) else type(function).__call__


def _hints(function: Callable[..., object], tool: str) -> Mapping[str, Any]:
    try:
        return get_type_hints(bare(function), include_extras=True)
    except Exception as error:  # an annotation is any code, and evaluating it raises anything
        raise AgentMistake(
            f"Tool {tool!r}: an annotation cannot be resolved ({type(error).__name__}: {error}). Define its "
            "types at the top of the module that defines the tool."
        ) from error


def _is_context(annotation: object) -> bool:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _is_context(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return Context in get_args(annotation)
    return annotation is Context
