"""The ways into the queue: a new run that a worker is to take, and mail that wakes a queued run."""

from __future__ import annotations

from collections.abc import Sequence

from shiftbook.clock import Clock, SystemClock
from shiftbook.entries import PersonSaid
from shiftbook.errors import AgentMistake, BadInput
from shiftbook.journal.promises import InboxItem
from shiftbook.run.agent import Agent
from shiftbook.run.loop import start
from shiftbook.run.mail import content_of, inbox_item
from shiftbook.workers.queue import Queue

PRIORITY_MAX = 999_999
"""The greatest priority of a run, and the least below zero."""


async def enter(
    queue: Queue,
    agent: Agent,
    message: str,
    *,
    run: str | None = None,
    tags: Sequence[str] = (),
    priority: int = 0,
    clock: Clock | None = None,
) -> str:
    """Open a new run and leave it to a worker; returns its id.

    The run is opened and declared here, so that an agent that cannot be run is refused here; its message and
    its first wake are one transaction. Who is cut off in between has opened a run to which nobody has said
    anything. Raises what `start` raises, and `AgentMistake` for an agent without a reference: no worker could
    find it; `BadInput` for a priority beyond `PRIORITY_MAX` either way.
    """
    if abs(priority) > PRIORITY_MAX:
        raise BadInput(
            f"A priority of {priority} is out of bounds: give one from -{PRIORITY_MAX:,} to {PRIORITY_MAX:,}."
        )
    if not agent.reference:
        raise AgentMistake(
            f"The agent {agent.name!r} has no reference, so that no worker could find it: give "
            'Agent(reference="package.module:NAME"), or begin it by the command line.'
        )
    clock = clock or SystemClock()
    item = inbox_item(clock.new_run_id(), PersonSaid(content_of(message)), clock.now_ms())
    async with await start(queue.store, agent, None, run=run, tags=tags, clock=clock) as opened:
        name = opened.id
    await queue.enter(name, agent.reference, item, priority)
    return name


class Waking:
    """An inbox that wakes the run with each item, if it is a queued one. Stands in for a store's."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.woken = False
        """Whether a worker was called."""

    async def put(self, run: str, item: InboxItem) -> bool:
        """Put the item in and call a worker: both or neither."""
        self.woken = await self._queue.send(run, item)
        return True
