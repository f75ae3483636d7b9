"""Is this session long enough for a rebuilt prompt to be cheaper, and by how much?

The closed forms of `economics` with a session's own numbers: its fixed part s, growth g, output y and share q
of cold requests, the prices of its model, and the reader's r, what a rebuilt prompt holds beside the fixed
part. What they leave out stands there: above all, turns that are lost to what was forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from shiftbook.economics.closed_forms import (
    Loop,
    Tariff,
    best_first_rebuild,
    best_spacing,
    calls_to,
    cold,
    level_point,
    period_cost,
    tariff,
    transcript_cost,
)
from shiftbook.economics.cost import PriceList

REBUILT_DEFAULT = 20_000
"""r in tokens when the reader names none: the size at which docs/guides/measure.md states its figures."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Calls at which things happen, and USD of `requests` calls either way, output included.

    `m_star`: the best call for a first rebuild; `t_star`: the call from which that has paid; `k_star`: the
    best spacing of rebuilds after. `transcript` is the price of keeping everything, on a window that is long
    enough; `rebuilt` that of a first rebuild at m* and one every k* calls. `tier` is the first length at
    which a price of the list steps up, `tier_at` the call that gets there; None where there is none.
    """

    requests: int
    rebuilt_tokens: float
    m_star: float
    t_star: float
    k_star: float
    transcript: float
    rebuilt: float
    tier: int | None
    tier_at: float | None

    @property
    def shorter(self) -> bool:
        """Whether the session ended before T*: the transcript is cheaper."""
        return self.requests < self.t_star


def advise(
    loop: Loop, requests: int, prices: PriceList, *, cold_share: float = 0.0, hour: bool = False
) -> Advice | None:
    """The advice for a loop of `requests` calls; prices are those of its mean prompt. None when the list
    reads nothing more cheaply than it writes, or for free: then there is nothing to weigh."""
    middle = round(loop.static + loop.growth * min(requests, 1_000_000) / 2)
    rates = tariff(prices, middle, hour=hour) if _readable(prices, middle, hour) else None
    if rates is None:
        return None
    rates = cold(rates, cold_share)
    tier = first_tier(prices)
    return Advice(
        requests=requests,
        rebuilt_tokens=loop.rebuilt,
        m_star=best_first_rebuild(loop, rates),
        t_star=level_point(loop, rates),
        k_star=best_spacing(loop, rates),
        transcript=transcript_cost(loop, rates, requests),
        rebuilt=rebuilt_cost(loop, rates, requests),
        tier=tier,
        tier_at=None if tier is None else calls_to(tier, loop),
    )


def rebuilt_cost(loop: Loop, rates: Tariff, calls: int) -> float:
    """USD of a transcript up to call m*, then of periods of k* calls (both to the next whole call)."""
    first = max(1, ceil(best_first_rebuild(loop, rates)))
    if calls <= first:
        return transcript_cost(loop, rates, calls)
    spacing = max(1, ceil(best_spacing(loop, rates)))
    periods, rest = divmod(calls - first, spacing)
    whole = periods * period_cost(loop, rates, spacing)
    return transcript_cost(loop, rates, first) + whole + (period_cost(loop, rates, rest) if rest else 0.0)


def first_tier(prices: PriceList) -> int | None:
    """The prompt length, in tokens, above which the list's input prices first step up."""
    rates = (prices.uncached, prices.cache_read, prices.cache_write_5m, prices.cache_write_1h)
    starts = [start for rate in rates if rate is not None for start, _ in rate.steps]
    return min(starts, default=None)


def _readable(prices: PriceList, prompt: int, hour: bool) -> bool:
    written = prices.cache_write_1h if hour else prices.cache_write_5m
    if hour and written is None and prices.cache_write_5m is not None:
        return False
    read = (prices.cache_read or prices.uncached).at(prompt)
    return 0 < read <= (written or prices.uncached).at(prompt)
