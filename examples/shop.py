"""A shop's agent with one tool that only looks and one that orders: runs without a key."""

import asyncio

import shiftbook
from shiftbook.providers.scripted import Scripted, call, say

SHELF = {"oat milk": 3, "coffee": 40}


@shiftbook.tool(repeat="safe")  # looking twice changes nothing
def count(item: str) -> int:
    """Count what is on the shelf."""
    return SHELF[item]


@shiftbook.tool(repeat="keyed")  # the supplier honours the key, so a cut-off order may be sent again
def order(item: str, units: int, ctx: shiftbook.Context) -> str:
    """Order units of an item from the supplier."""
    return f"{units} x {item} ordered under key {ctx.key}"


shop = shiftbook.Agent(
    name="shop",
    model=Scripted(
        [
            call("count", {"item": "oat milk"}),
            call("order", {"item": "oat milk", "units": 21}),
            say("There were 3 left. I ordered 21."),
            say("Coffee is fine: 40 on the shelf yesterday."),
        ]
    ),
    instructions="Keep the shelf between 20 and 40 of everything.",
    tools=[count, order],
)


async def main() -> None:
    store = await shiftbook.open_store("shop.db")
    async with await shiftbook.start(store, shop, "Is there enough oat milk?") as run:
        async for entry in run.entries():
            print(entry.position, entry.kind)
    # Any later process goes on from here, after a kill -9 too.
    async with await shiftbook.resume(store, run.id, shop, "And coffee?") as run:
        print((await run.finish()).reply)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main())
