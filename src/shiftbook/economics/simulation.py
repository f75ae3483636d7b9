"""Play an agent loop token by token through a cache rule and a price list: the check on the closed forms.

The loop is the one of `closed_forms`: a static prefix, a rebuilt part that is empty before the first rebuild,
and the growth of each call. Every request is laid out as blocks with the run's markers; what is read and
written is the cache rule's answer, not a formula, and money is the price list's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from decimal import Decimal

from shiftbook.economics.cache import serve_all
from shiftbook.economics.cache_request import CacheBlock, CacheRequest, four_markers
from shiftbook.economics.cache_rules import CacheRule
from shiftbook.economics.closed_forms import Loop
from shiftbook.economics.cost import PriceList, cost


def loop_requests(
    loop: Loop, calls: int, rebuilds: Collection[int], *, gap: float = 0.0
) -> Iterator[CacheRequest]:
    """The requests of calls 1 to `calls`, `gap` seconds apart; the call numbers in `rebuilds` start an
    epoch. Sizes are rounded to whole tokens."""
    static = CacheBlock("static", round(loop.static), "system")
    brief: tuple[CacheBlock, ...] = ()
    grown: list[CacheBlock] = []
    previous: int | None = None
    for call in range(1, calls + 1):
        if call in rebuilds:
            brief = (CacheBlock(f"brief {call}", round(loop.rebuilt)),)
            grown = []
            previous = None
        grown.append(CacheBlock(f"call {call}", round(loop.growth), anchor=True))
        blocks = (static, *brief, *grown)
        end = len(blocks) - 1
        markers = four_markers(fixed_end=0, brief_end=len(brief) or None, previous_end=previous, end=end)
        yield CacheRequest((call - 1) * gap, blocks, markers)
        previous = end


def loop_costs(
    loop: Loop,
    calls: int,
    rebuilds: Collection[int],
    rule: CacheRule,
    prices: PriceList,
    *,
    gap: float = 0.0,
) -> tuple[Decimal | None, ...]:
    """USD of each call, output included; None where the list cannot price it."""
    counts = serve_all(rule, loop_requests(loop, calls, rebuilds, gap=gap))
    return tuple(cost(count.usage(round(loop.output)), prices) for count in counts)
