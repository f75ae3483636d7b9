"""The mail of a run: what outsiders put in, and the holder takes into the journal at its next boundary."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from shiftbook import canonical
from shiftbook.clock import Clock, SystemClock
from shiftbook.entries import PersonSaid, RuleSet, UserContent
from shiftbook.errors import BadInput, NotCanonical
from shiftbook.journal.promises import InboxItem, Store
from shiftbook.messages import Json, Text
from shiftbook.payload import from_plain, to_plain
from shiftbook.projections.keys import key_fault
from shiftbook.run.desk import Desk


async def move_mail(desk: Desk) -> None:
    """Stage the waiting inbox items as the entries that they become; the next commit takes them."""
    await desk.book.commit()
    for item in await desk.book.store.inbox.waiting(desk.book.run):
        plain: Json = canonical.decode(item.payload)
        what = from_plain(item.kind, {**plain, "item": item.id})
        if isinstance(what, RuleSet):
            # An author's rules come with the agent and by no other way.
            what = replace(what, author="person")
        desk.note(what, taken=item.id)
    desk.mail = False


class Mailbox(Protocol):
    """Where an item goes: a store's inbox, or one that also wakes a worker."""

    async def put(self, run: str, item: InboxItem) -> bool:
        """Put an item at the end. False, and nothing written, when an item of that id was put in before."""
        ...


async def post(
    store: Store,
    run: str,
    message: str | UserContent,
    *,
    clock: Clock | None = None,
    inbox: Mailbox | None = None,
) -> str:
    """Put a person's message into a run's inbox, from whatever process; returns the item's id.

    The holder moves it into the journal at its next boundary; a run that rests is taken up by `resume`.
    `inbox` stands in for the store's. Raises `BadInput` for what no entry could hold.
    """
    clock = clock or SystemClock()
    item = inbox_item(clock.new_run_id(), PersonSaid(content_of(message)), clock.now_ms())
    await (inbox or store.inbox).put(run, item)
    return item.id


def content_of(message: str | UserContent) -> UserContent:
    """What a person says, as an entry keeps it. Raises `BadInput` for what could not be read back."""
    content = (Text(message),) if isinstance(message, str) else message
    try:
        plain: Json = canonical.decode(canonical.encode(to_plain(PersonSaid(content))))
        from_plain(PersonSaid.__name__, plain)
    except (NotCanonical, TypeError, AttributeError, KeyError) as fault:
        raise BadInput(
            f"A message is a text, or a tuple of Text, Media and Missing, not {message!r:.60}; nothing was "
            "written."
        ) from fault
    return content


async def post_rule(
    store: Store,
    run: str,
    key: str,
    text: str,
    *,
    withdrawn: bool = False,
    clock: Clock | None = None,
    inbox: Mailbox | None = None,
) -> str:
    """Put a person's standing rule, or its withdrawal, into a run's inbox; returns the item's id.

    Raises `BadInput` for a key that cannot be one, and for a rule without a text.
    """
    fault = key_fault(key, f"the key {key!r:.60}")
    if fault is None and not withdrawn and not text.strip():
        fault = f"the rule {key!r} has no text"
    if fault is not None:
        raise BadInput(f"A rule cannot be set: {fault}.")
    clock = clock or SystemClock()
    rule = RuleSet(key, text, "person", withdrawn)
    item = inbox_item(clock.new_run_id(), rule, clock.now_ms())
    await (inbox or store.inbox).put(run, item)
    return item.id


def inbox_item(name: str, what: PersonSaid | RuleSet, at_ms: int) -> InboxItem:
    """An entry-to-be as an inbox item; `name` tells it from every other item of the run, for ever."""
    return InboxItem(name, type(what).__name__, at_ms, canonical.encode(to_plain(what)))
