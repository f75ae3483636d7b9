"""What a session cost, split by what its tokens were, at the prices of its own models or of a chosen one.

Every request of the file is priced, sub-agents, helpers and compactions too. A request that cannot be priced
makes the sum unknown (None), never smaller, and is counted under the reason why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shiftbook.economics.cost import CostParts, PriceList, cost_parts
from shiftbook.measure.series import usage_of
from shiftbook.messages import Usage
from shiftbook.sessions.normal import RecordedUsage
from shiftbook.sessions.requests import RequestRow

Prices = Callable[[str, int | None], PriceList | None]
"""The price list of a model at a moment (Unix milliseconds, None: not recorded); None: not known."""


CUT_OUTPUT = 10
"""Tokens: no reply that calls a tool by name is as short, and an agent's replies mostly do."""


@dataclass(frozen=True, slots=True)
class Bill:
    """USD by kind of token, None when any request could not be priced. `unpriced` counts those by reason.

    `output_cut` says that the recorded output is that of a reply's first moments, so that the sum is the
    least that was paid: Claude Code often writes a reply down before its last count has come.
    """

    parts: CostParts | None
    requests: int
    unpriced: tuple[tuple[str, int], ...]
    output_cut: bool


def bill_of(
    rows: Sequence[RequestRow], prices: Prices, *, model: str | None = None, life: str | None = None
) -> Bill:
    """Price every row, at `model`'s prices if it is given. `life` as for `usage_of`."""
    parts, unpriced = CostParts(), dict[str, int]()
    lists: dict[tuple[str, int | None], PriceList | None] = {}
    for row in rows:
        reason, amount = "", None
        named = model or row.model
        usage = usage_of(row.usage, life)
        if row.source == "missing" or usage.prompt is None or usage.output is None:
            reason = "no usage recorded"
        elif named is None:
            reason = "no model recorded"
        else:
            key = (named, None if row.at_ms is None else row.at_ms // 3_600_000)
            if key not in lists:
                lists[key] = prices(named, row.at_ms)
            found = lists[key]
            amount = None if found is None else cost_parts(usage, found)
            if found is None:
                reason = f"no price known for {named}"
            elif amount is None:
                reason = _lacking(row.usage, usage, found)
        if amount is None:
            unpriced[reason] = unpriced.get(reason, 0) + 1
        else:
            parts += amount
    priced = None if unpriced or not rows else parts
    return Bill(priced, len(rows), tuple(sorted(unpriced.items())), _is_output_cut(rows))


def _is_output_cut(rows: Sequence[RequestRow]) -> bool:
    """Whether more than half of the recorded outputs are shorter than any reply with a call is."""
    counts = [row.usage.output for row in rows if row.usage.output is not None]
    return 2 * sum(count <= CUT_OUTPUT for count in counts) > len(counts)


def _lacking(recorded: RecordedUsage, usage: Usage, prices: PriceList) -> str:
    """Which count, or which price, a known list lacks for a usage that it cannot price."""
    if (
        recorded.cache_write
        and recorded.cache_write_5m is None
        and recorded.cache_write_1h is None
        and (usage.cache_write_5m is None or usage.cache_write_1h is None)
    ):
        return "life of cache writes not recorded (choose one with --ttl 5m or --ttl 1h)"
    if usage.uncached is None or (usage.cache_read is None and prices.cache_read is not None):
        return "tokens read from the cache not recorded"
    if usage.cache_write_5m is None or usage.cache_write_1h is None:
        return "tokens written to the cache not recorded"
    return f"no price known for cache writes of this life by {prices.model}"
