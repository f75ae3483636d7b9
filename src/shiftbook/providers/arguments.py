"""A call's argument text, as a model wrote it, beside its parse.

The text is what the model said and is kept whenever it is not the canonical text of the parse. It is JSON in
the strict sense: NaN, infinities and anything but one object do not parse, and then the call has no
arguments, only its text. Nothing is repaired or guessed.
"""

from __future__ import annotations

import json

from shiftbook import canonical
from shiftbook.errors import NotCanonical
from shiftbook.messages import Call, Json


def call_from_text(call: str, tool: str, text: str, *, vendor: Json = None) -> Call:
    """The call of that id whose arguments a model wrote as `text`; an empty text is no arguments."""
    try:
        arguments = json.loads(text or "{}", parse_constant=_refuse)
        written = canonical.encode(arguments)
    except (ValueError, RecursionError, NotCanonical):
        return Call(call, tool, None, text, vendor)
    if type(arguments) is not dict:
        return Call(call, tool, None, text, vendor)
    return Call(call, tool, arguments, None if text == written else text, vendor)


def arguments_text(call: Call) -> str:
    """The argument text of a call, as it was written or as its parse reads."""
    if call.raw is not None:
        return call.raw
    return canonical.encode({} if call.arguments is None else dict(call.arguments))


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")
