"""Reading a model's report: one JSON array of lines with citations, and nothing else.

A reply is hostile text. It is read whole or not at all: nothing in it is repaired or guessed, and what it
says is checked line by line afterwards (`fidelity`, `overreach`). Whatever else came, a refusal, a tool call,
a reply that was cut or is empty, is told in one sentence, so that a report by rule can take its place.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from shiftbook.entries import ReportLine
from shiftbook.errors import ShiftbookError
from shiftbook.messages import AssistantPart, Call, Json, StopReason, Text

REPLY_CHARS_MAX = 400_000
LINES_MAX = 400
CITED_MAX = 200
_FENCE = "```"

_STOPPED = {
    "refusal": "the model refused to write it",
    "length": "the model's reply was cut at the output limit",
    "pause": "the model's reply paused half-way",
}


class Unreadable(ShiftbookError):
    """A reply is no report; the message says why, as the end of a sentence."""


def read_lines(parts: Sequence[AssistantPart], stop: StopReason) -> tuple[ReportLine, ...]:
    """The lines of a reply as they were written, each on one line. Raises `Unreadable`."""
    if stop in _STOPPED:
        raise Unreadable(_STOPPED[stop])
    if any(isinstance(part, Call) for part in parts):
        raise Unreadable("the model called a tool in place of writing it")
    text = _bare("".join(part.text for part in parts if isinstance(part, Text)))
    if not text:
        raise Unreadable("the model's reply was empty")
    if len(text) > REPLY_CHARS_MAX:
        raise Unreadable(f"the model's reply was longer than {REPLY_CHARS_MAX} characters")
    try:
        plain: Json = json.loads(text)
    except (ValueError, RecursionError):
        raise Unreadable("the model's reply was no JSON") from None
    if type(plain) is not list:
        raise Unreadable("the model's reply was no list of lines")
    if not plain:
        raise Unreadable("the model's reply held no line")
    if len(plain) > LINES_MAX:
        raise Unreadable(f"the model's reply held more than {LINES_MAX} lines")
    return tuple(dict.fromkeys(_line(number, each) for number, each in enumerate(plain, 1)))


def _line(number: int, plain: Json) -> ReportLine:
    if type(plain) is not dict or set(plain) != {"text", "cites"}:
        raise Unreadable(f'line {number} of the model\'s reply was not {{"text", "cites"}}')
    text, cites = plain["text"], plain["cites"]
    words = " ".join(text.split()) if type(text) is str else ""
    if not words:
        raise Unreadable(f"line {number} of the model's reply had no text")
    if type(cites) is not list or not all(type(each) is int and 0 < each < 2**53 for each in cites):
        raise Unreadable(f"line {number} of the model's reply cited no entry numbers")
    # A line that cites nothing, or half the journal, is read and struck, so that it can be seen.
    return ReportLine(words, tuple(dict.fromkeys(cites))[: CITED_MAX + 1])


def _bare(text: str) -> str:
    """The text, or what stands in its fence where the whole of it is one fenced block."""
    text = text.strip()
    if text.startswith(_FENCE) and text.endswith(_FENCE) and text.count(_FENCE) == 2:
        first, _, rest = text.partition("\n")
        if first.removeprefix(_FENCE).strip().lower() in ("", "json"):
            return rest.removesuffix(_FENCE).strip()
    return text
