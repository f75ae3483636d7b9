"""How a run stands, in a few figures and the words of its last reply."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from shiftbook.entries import ModelAnswered, State
from shiftbook.messages import Json, Text
from shiftbook.run.answer import Unfit
from shiftbook.run.book import read_entries
from shiftbook.run.desk import Desk


@dataclass(frozen=True, slots=True)
class Summary:
    """How a shift ended. Counts are of the run's whole life.

    `cut_off` attempts had no recorded outcome; `repeated` are starts of a call that had finished already.
    """

    run: str
    state: State
    why: str
    turns: int
    actions: int
    cut_off: int
    repeated: int
    reply: str = ""
    """The words of the last whole reply."""
    output: Json = None
    """The value of that reply, where the agent declares an output and the run has finished with it."""


async def sum_up(desk: Desk) -> Summary:
    """How the run stands."""
    view, shape = desk.view, desk.agent.shape
    reply = desk.reply or await last_reply(desk)
    words, output = "", None
    if reply is not None:
        words = "".join(part.text for part in reply.parts if isinstance(part, Text))
        if shape is not None and view.state == "finished":
            with suppress(Unfit):
                output = shape.read(reply)
    return Summary(
        run=view.run,
        state=view.state,
        why=view.why,
        turns=view.answers,
        actions=view.finished,
        cut_off=view.cut_off,
        repeated=view.repeated,
        reply=words,
        output=output,
    )


async def last_reply(desk: Desk) -> ModelAnswered | None:
    """The last whole reply, as the journal has it."""
    at = desk.view.answered_at
    if at == 0:
        return None
    for entry in await read_entries(desk.book.store, desk.book.run, at - 1, at):
        if isinstance(entry.what, ModelAnswered):
            return entry.what
    return None
