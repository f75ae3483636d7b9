"""The demo's agent: an order desk whose model is a script, so that it needs no key and no network.

Each order takes three turns: two look-ups side by side, a charge at the receiver, a note of it. The
receiver's address is a new one in every demo and no part of the agent: it comes by an environment variable.
"""

from __future__ import annotations

import json
import os
import urllib.request

from shiftbook.messages import Reply, Request
from shiftbook.providers.scripted import Scripted, call, calls, say
from shiftbook.run.agent import Agent
from shiftbook.tools.contract import Context
from shiftbook.tools.function import tool

ORDERS = 40
TURNS = 3 * ORDERS + 1
RECEIVER_VARIABLE = "SHIFTBOOK_DEMO_RECEIVER"
MESSAGE = f"Work through orders 1 to {ORDERS}: look each one up, charge it, and note that it was charged."

_ARTICLES = ("tea, loose, 250 g", "coffee beans, 1 kg", "oat biscuits, 12 x 80 g", "honey, 500 g")


@tool(repeat="safe")
def look_up_order(number: int) -> dict[str, object]:
    """Look an order up: who ordered what, and what it costs in cents."""
    return {
        "order": number,
        "customer": f"C-{1000 + 7 * number % 100}",
        "lines": [
            {"article": article, "boxes": 1 + (number + at) % 5, "cents_each": 450 + 125 * at}
            for at, article in enumerate(_ARTICLES)
        ],
        "cents": cents_of(number),
    }


@tool(repeat="safe")
def look_up_stock(number: int) -> dict[str, int]:
    """Look up how many boxes of each article of an order are in stock."""
    return {article: 40 + (number * (at + 3)) % 60 for at, article in enumerate(_ARTICLES)}


@tool(repeat="keyed")
def charge(order: int, cents: int, context: Context) -> dict[str, object]:
    """Charge an order to its customer's account."""
    body = json.dumps({"order": order, "cents": cents}).encode()
    headers = {"Content-Type": "application/json", **context.headers()}
    request = urllib.request.Request(os.environ[RECEIVER_VARIABLE] + "/charge", body, headers)
    with urllib.request.urlopen(request) as answer:
        charged: dict[str, object] = json.load(answer)
    return charged


@tool(repeat="safe")
def note_charged(order: int) -> str:
    """Note that an order was charged."""
    return f"order {order}: charged"


def cents_of(number: int) -> int:
    """What an order costs."""
    return sum((1 + (number + at) % 5) * (450 + 125 * at) for at in range(len(_ARTICLES)))


def script(request: Request) -> Reply:
    """What the model says in each turn: it depends on the turn alone, so every process says the same."""
    if request.turn >= TURNS:
        return say(f"All {ORDERS} orders are charged.")
    order = 1 + (request.turn - 1) // 3
    at = (request.turn - 1) % 3
    if at == 0:
        both = (call("look_up_order", {"number": order}), call("look_up_stock", {"number": order}))
        return calls(*both, text=f"Order {order}: I look it up.")
    if at == 1:
        return call("charge", {"order": order, "cents": cents_of(order)})
    return call("note_charged", {"order": order})


agent = Agent(
    name="order desk",
    model=Scripted(script),
    instructions="You work through orders one by one. Look an order up before you charge it. Charge it once.",
    tools=[look_up_order, look_up_stock, charge, note_charged],
    policy="window",
    cap=6_000,
)
