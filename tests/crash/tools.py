"""Tools of every repeat policy that reach the world outside, and say the same after every death."""

from __future__ import annotations

import asyncio

from shiftbook.entries import PersonSaid
from shiftbook.errors import UnknownRun
from shiftbook.messages import Text
from shiftbook.run.mail import inbox_item
from shiftbook.tools.contract import Context, DidNotHappen, Happened, Reconciled, TryAgain
from shiftbook.tools.function import tool
from tests.crash.virtual import at_once
from tests.crash.world import RUN, WORLD, World


async def pause() -> None:
    """Let others run: a place inside a tool where the process can die."""
    await asyncio.sleep(0)


async def for_ever() -> None:
    """Wait for what never comes."""
    await asyncio.get_running_loop().create_future()


# --- tools, at least two of each repeat policy -----------------------------------------------------


@tool(repeat="safe")
async def look(place: str, context: Context) -> str:
    """Look at a place."""
    world = WORLD.get()
    world.begin(context)
    await pause()
    world.act(context)
    await pause()
    return f"{place}: 12 crates"


@tool(repeat="keyed")
async def pay(amount: int, context: Context) -> str:
    """Pay. The receiver honours the key."""
    world = WORLD.get()
    world.begin(context)
    await pause()
    if not world.happened(context.key):
        world.act(context)
    await pause()
    return f"paid {amount}"


def was_sent(to: str, context: Context) -> Reconciled:
    WORLD.get().ask(context.call)
    return Happened(f"sent to {to}") if WORLD.get().happened(context.key) else DidNotHappen()


async def send_asked(to: str, context: Context) -> Reconciled:
    await pause()
    return was_sent(to, context)


@tool(repeat="reconcile", reconcile=send_asked)
async def send(to: str, context: Context) -> str:
    """Send something; the receiver can tell whether it came."""
    world = WORLD.get()
    world.begin(context)
    await pause()
    world.act(context)
    await pause()
    return f"sent to {to}"


@tool(repeat="reconcile", reconcile=send_asked, timeout_s=60)
async def ship(to: str, context: Context) -> str:
    """Send something slowly: the first attempt hangs before anything happened."""
    world = WORLD.get()
    world.begin(context)
    if context.attempt == 1:
        await for_ever()
    world.act(context)
    await pause()
    return f"sent to {to}"


@tool(repeat="ask")
async def mail(to: str, context: Context) -> str:
    """Write to somebody: never done a second time."""
    world = WORLD.get()
    world.begin(context)
    await pause()
    world.act(context)
    await pause()
    return f"mailed {to}"


@tool(repeat="safe", attempts=3)
async def flaky(context: Context) -> str:
    """Fail once before anything happened."""
    WORLD.get().begin(context)
    await pause()
    if context.attempt == 1:
        raise TryAgain("busy")
    WORLD.get().act(context)
    return "done at last"


@tool(repeat="keyed", attempts=3, timeout_s=30)
async def slow(context: Context) -> str:
    """Hang once, after the receiver was reached."""
    world = WORLD.get()
    world.begin(context)
    if not world.happened(context.key):
        world.act(context)
    if context.attempt == 1:
        await for_ever()
    await pause()
    return "slow but done"


@tool(repeat="safe")
async def wait(minutes: int, context: Context) -> str:
    """Take a long time."""
    WORLD.get().begin(context)
    await asyncio.wait_for(asyncio.shield(_after(minutes)), None)
    WORLD.get().act(context)
    await pause()
    return f"waited {minutes}"


def _after(minutes: int) -> asyncio.Future[None]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def over() -> None:
        if not future.done():
            future.set_result(None)

    loop.call_later(minutes * 60, over)
    return future


@tool(repeat="safe")
async def big(number: int, lines: int, context: Context) -> str:
    """Return a long text; 2,200 lines are more than a row holds."""
    WORLD.get().begin(context)
    await pause()
    WORLD.get().act(context)
    return "\n".join(f"line {line} of report {number}: {line * 7919 % 1000}" for line in range(lines))


@tool(repeat="safe")
async def break_down(context: Context) -> str:
    """Raise."""
    WORLD.get().begin(context)
    await pause()
    raise ValueError("the drawer is stuck")


@tool(repeat="safe")
async def ring(text: str, context: Context) -> str:
    """Meanwhile a person writes."""
    WORLD.get().begin(context)
    await pause()
    write(WORLD.get(), f"ring-{context.call}", text)
    WORLD.get().act(context)
    return "rang"


TOOLS = (look, pay, send, ship, mail, flaky, slow, wait, big, break_down, ring)


def write(world: World, item: str, text: str) -> None:
    """A person's message, put into the inbox by another process, once."""
    assert world.peek is not None
    try:
        at_once(world.peek.inbox.put(RUN, inbox_item(item, PersonSaid((Text(text),)), 1)))
    except UnknownRun:
        return  # There is no run yet, and whoever writes is told so.
    if item not in world.posted:
        world.posted.append(item)
