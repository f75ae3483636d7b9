"""Eight engines with one fault each, of the kinds that real engines have; the sweep has to find every one.

Each is a context in which a function of the engine is replaced, and the invariant by which it must be found.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from shiftbook import canonical
from shiftbook.entries import ActionStarted, Warned
from shiftbook.journal.promises import Commit, Store
from shiftbook.payload import from_plain
from shiftbook.projections.view import OpenAsk, OpenCall
from shiftbook.run import actions, loop, step
from shiftbook.run.book import Book
from shiftbook.run.restore import Restored, restore
from shiftbook.testing.breaking import changed
from tests.crash.sweep import Ground

Replacing = Any


@dataclass(frozen=True)
class Broken:
    """`found_by` names the invariant, `way` the way of dying that shows the fault."""

    name: str
    found_by: str
    way: str
    replace: Callable[[], Replacing]


@contextmanager
def effect_before_intent() -> Iterator[None]:
    """The call is begun, and announced while it runs."""
    commit = Book.commit

    async def dispatch(desk: Any, act: Any) -> None:
        begun = [asyncio.create_task(actions._attempt(desk, desk.view.calls[c], a)) for c, a in act.calls]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for call, attempt in act.calls:
            actions._announce(desk, desk.view.calls[call], attempt)
        await commit(desk.book)
        try:
            await actions._gather(desk, dict(zip(begun, act.calls, strict=True)))
        finally:
            for task in begun:
                task.cancel()

    with patch.object(actions, "dispatch", dispatch):
        yield


@contextmanager
def key_from_arguments() -> Iterator[None]:
    """Equal arguments, equal key."""

    context = actions._context

    def key(call: OpenCall) -> str:
        text = f"{call.tool} {canonical.encode(dict(call.arguments or {}))}"
        return f"sweep-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def announce(desk: Any, call: OpenCall, attempt: int) -> None:
        desk.note(ActionStarted(call.call, call.tool, key(call), attempt))

    def with_key(desk: Any, call: OpenCall, attempt: int) -> Any:
        return replace(context(desk, call, attempt), key=key(call))

    with patch.object(actions, "_announce", announce), patch.object(actions, "_context", with_key):
        yield


@contextmanager
def recorded_at_the_end_of_a_batch() -> Iterator[None]:
    """All results are written when the last one is known."""

    async def gather(desk: Any, by_task: dict[Any, tuple[str, int]]) -> None:
        await asyncio.wait(set(by_task))
        for task in list(by_task):
            call, _ = by_task.pop(task)
            actions._record(desk, call, task.result())

    with patch.object(actions, "_gather", gather):
        yield


@contextmanager
def model_asked_again() -> Iterator[None]:
    """A resume goes back to the last request and asks it again."""

    async def from_the_request(store: Store, run: str) -> Restored:
        restored = await restore(store, run)
        view = restored.view
        if view.calls:
            view.ask, view.calls = OpenAsk(view.turn), {}
        return restored

    with patch.object(loop, "restore", from_the_request):
        yield


@contextmanager
def ask_repeated() -> Iterator[None]:
    """Whatever was cut off is run again."""
    with patch.object(step, "_cut_off", lambda call, facts, limits: None):
        yield


@contextmanager
def lease_epoch_unchecked() -> Iterator[None]:
    """An append is checked for its position only."""
    open_store = Ground.open

    def unfenced(ground: Ground) -> Store:
        store = open_store(ground)

        async def append(commit: Commit) -> None:
            lease = await store.leases.look(commit.run)
            await store.entries.append(replace(commit, epoch=lease.epoch))

        return changed(store, "entries", append=append)

    with patch.object(Ground, "open", unfenced):
        yield


@contextmanager
def second_answer() -> Iterator[None]:
    """What is settled after a crash is settled once more, in case it was lost."""
    settle = actions.settle

    def twice(desk: Any, act: Any) -> None:
        settle(desk, act)
        settle(desk, act)

    with patch.object(actions, "settle", twice):
        yield


@contextmanager
def lost_message() -> Iterator[None]:
    """Messages are taken out of the inbox first and written with the next commit."""

    async def move_mail(desk: Any) -> None:
        await desk.book.commit()
        items = await desk.book.store.inbox.waiting(desk.book.run)
        for item in items:
            desk.note(Warned("mail", "a message was taken in"), taken=item.id)
        await desk.book.commit()
        for item in items:
            plain: Any = canonical.decode(item.payload)
            desk.note(from_plain(item.kind, {**plain, "item": item.id}))
        desk.mail = False

    with patch.object(loop, "move_mail", move_mail):
        yield


BROKEN = (
    Broken("effect before intent", "intent_first", "", effect_before_intent),
    Broken("key from arguments", "key_of_call", "", key_from_arguments),
    Broken("recording at the end of a batch", "recorded_at_once", "", recorded_at_the_end_of_a_batch),
    Broken("model asked again", "answer_once", "", model_asked_again),
    Broken("ask repeated", "repeat_allowed", "", ask_repeated),
    Broken("lease epoch unchecked", "one_writer", "+takeover", lease_epoch_unchecked),
    Broken("second answer to a call", "one_answer", "", second_answer),
    Broken("lost inbox message", "mail_once", "+message", lost_message),
)
