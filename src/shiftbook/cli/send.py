"""`shiftbook send`: put a person's message into a run's inbox, whoever holds the run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

import typer

from shiftbook.cli.messages import message_of
from shiftbook.cli.options import Db, Json, Last, Verbose
from shiftbook.cli.output import data, note
from shiftbook.cli.places import journal, run_meant
from shiftbook.cli.words import ours, without_password
from shiftbook.errors import BadInput
from shiftbook.run.mail import post, post_rule
from shiftbook.workers.entering import Waking
from shiftbook.workers.queue import open_queue


def command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN TEXT", show_default=False, help="The run and the message; with --last only TEXT."
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            "--message", metavar="TEXT", show_default=False, help="The message; - reads it from stdin."
        ),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            "--rule",
            metavar="KEY",
            show_default=False,
            help="Set the text as a standing rule under this key, in place of any other there.",
        ),
    ] = None,
    withdraw: Annotated[
        str | None,
        typer.Option("--withdraw", metavar="KEY", show_default=False, help="Withdraw the rule of this key."),
    ] = None,
    last: Last = False,
    db: Db = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Send a message to a run; a process that has it at work takes it in at its next boundary.

    A run that rests is taken up with it by `shiftbook resume`, one that was begun with `--queue` by a worker.
    """
    given = list(words or [])
    run = None if last or not given else given.pop(0)
    if len(given) > 1:
        raise BadInput(f"{len(given)} messages were given: put the words of one message in quotes.")
    if rule is not None and withdraw is not None:
        raise BadInput("A rule is either set or withdrawn: give one of --rule and --withdraw.")
    message = message_of(given[0] if given else None, text, needed=withdraw is None)
    if withdraw is not None and message is not None:
        raise BadInput("A rule is withdrawn without words: send the message by itself.")
    asyncio.run(
        _send(
            run, last, Sent(message or "", withdraw if rule is None else rule, withdraw is not None), db, json
        )
    )


@dataclass(frozen=True, slots=True)
class Sent:
    """What is put into the inbox: a message, or a rule under its key, or the withdrawal of one."""

    text: str
    key: str | None
    withdrawn: bool


async def _send(run: str | None, last: bool, sent: Sent, db: str | None, json: bool) -> None:
    async with journal(db) as store:
        name = await run_meant(store, run, last)
        queue = await open_queue(store)
        wake = None if queue is None else Waking(queue)
        if sent.key is None:
            item = await post(store, name, sent.text, inbox=wake)
        else:
            item = await post_rule(store, name, sent.key, sent.text, withdrawn=sent.withdrawn, inbox=wake)
        lease = await store.leases.look(name)
    if json:
        data({"run": name, "item": item})
    elif wake is not None and wake.woken:
        note(f"Sent to run {name}; a worker takes it in.")
    elif lease.holder is None:
        place = [] if db is None else ["--db", without_password(db)]
        again = ours("resume", name, *place)
        note(f"Sent to run {name}, which nobody has at work now: {again}")
    else:
        note(f"Sent to run {name}; {lease.holder} takes it in at its next boundary.")
