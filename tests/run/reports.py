"""What the tests of reports by a model share: a run with small epochs, and models that write reports."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from shiftbook.messages import Reply, Request
from shiftbook.providers.scripted import Step, call, say
from shiftbook.tools.function import tool
from tests.run.desk import said

LISTED = re.compile(r"^(\d+): ", re.MULTILINE)
PAGES = re.compile(r'^(\d+): done "page (\d+)', re.MULTILINE)
RECORDS = re.compile(r"\[Record, entry (\d+) of this run, [^\n]*answer to call [^\n]*\n> page (\d+) ")
WORDS = "some words of it " * 60

SMALL: dict[str, Any] = {
    "policy": "journal",
    "cap": 6_000,
    "mark": 2_800,
    "report": "model",
    # What comes back at a rebuild would take room of what is told: that is tried apart.
    "recall_point": 0,
    "recall_set": 0,
}


@tool(repeat="safe")
async def read(number: int) -> str:
    """Read a page."""
    return f"page {number} of book-{number} has {lines_of(number)} lines: {WORDS}"


def lines_of(number: int) -> int:
    """The figure of a page."""
    return 1_000 + number * 7919 % 8_999


def script(turns: int, tally_every: int = 5) -> list[Any]:
    """A call a turn; a tally kept on the way."""
    steps: list[Any] = []
    for number in range(turns):
        steps.append(call("read", {"number": number}))
        if number % tally_every == 0:
            steps.append(call("tally", {"key": "pages", "operation": "add", "amount": number}))
    return [*steps, say("Read.")]


def asked_for(request: Request) -> str:
    """What a request for a report says beside the prompt."""
    if request.tools:
        return said(request)[-1]
    return "\n".join(said(request))


def pages(request: Request) -> list[tuple[int, int]]:
    """Position and page of every answer that a request for a report names or quotes."""
    return [
        (int(at), int(page)) for at, page in (PAGES if request.tools else RECORDS).findall(asked_for(request))
    ]


def report(*lines: tuple[str, Sequence[int]]) -> Reply:
    """A reply that is a report."""
    return say(json.dumps([{"text": text, "cites": list(cites)} for text, cites in lines]))


def faithful(request: Request) -> Step:
    """A line with the figure of each page, which is in the answer that it cites."""
    return report(*((f"Page {page} holds {lines_of(page)} lines.", [at]) for at, page in pages(request)))


Answers = Callable[[Request], Step]


def writes(reports: Answers, steps: Sequence[Step]) -> Answers:
    """A script whose turns are `steps` and whose reports are by `reports`."""

    def step(request: Request) -> Step:
        return reports(request) if request.purpose == "report" else steps[request.turn - 1]

    return step
