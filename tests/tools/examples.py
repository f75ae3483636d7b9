"""A tool with a parameter of each kind, and a call of a tool that gives its one text."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from shiftbook.messages import Text
from shiftbook.tools.contract import (
    Context,
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
