"""A small order desk: an agent to start from. Run it as it is, then change it piece by piece.

    shiftbook run agent.py:shop "Order 3 boxes of tea."

Kill it in the middle (kill -9), and `shiftbook resume --last` goes on without repeating finished work.
"""

from __future__ import annotations

from shiftbook import Agent, Context, Reply, Request, Scripted, tool
from shiftbook.providers.scripted import call, say

PRICES = {"tea": 4, "coffee": 9}


# `safe`: after a cut this tool may simply be run again; a second look changes nothing.
@tool(repeat="safe")
def price(article: str) -> int:
    """Look up the price of one box, in euros."""
    return PRICES[article]


# `keyed`: it may be run again after a cut too, because the receiver is given the same key again and takes a
# second delivery of it for what it is. The key stays the same on every retry; the model never sees it.
@tool(repeat="keyed")
def order(article: str, boxes: int, context: Context) -> str:
    """Place an order with the supplier."""
    # A real one sends the key along, for instance: httpx.post(url, headers=context.headers(), json=...)
    return f"{boxes} boxes of {article} ordered under {context.key}"


def script(request: Request) -> Reply:
    """What the model says, turn by turn, without a key: a real model takes its place when you have one."""
    if request.turn == 1:
        return call("price", {"article": "tea"}, text="I look up the price first.")
    if request.turn == 2:
        return call("order", {"article": "tea", "boxes": 3})
    return say("3 boxes of tea are ordered, 12 euros in all.")


shop = Agent(
    name="shop",
    model=Scripted(script),
    instructions="You take orders. Look up the price before you order.",
    tools=[price, order],
    # The prompt stays below this many tokens however long the run gets: `window` drops the oldest turns.
    policy="window",
    cap=20_000,
)
