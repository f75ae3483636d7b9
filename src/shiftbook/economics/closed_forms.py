"""When to rebuild a prompt, and what a run costs in the long run, as formulas instead of searches.

An agent loop sends a static prefix of s tokens and appends g tokens a call; y tokens come back. A transcript
keeps all of it. A rebuilding loop replaces its dynamic part (P tokens by then) by r tokens every k calls.
With w, rho, o the prices of cache-written, cache-read and output tokens, a = r/g and c = r/P:

    best spacing of rebuilds        k* = sqrt(2 [(w - rho) r + b] / (rho g))
    long-run price of a call        rho (s + r - g/2) + w g + o y + sqrt(2 rho g [(w - rho) r + b])
    one rebuild is paid back after  c (w/rho - 1) / (1 - c) calls
    earliest level point            rebuild at m* = a + sqrt((w/rho - 1) a), level at T* = a + 2 sqrt(...)
    rebuilding from the first call  level with the transcript at N = 2a + 2 sqrt(2 (w/rho - 1) a)
    a share q of calls comes cold   replace rho by rho_q = (1 - q) rho + q w

Derived for this project from the cost of one call; the pay-back with a summariser agrees with Skidmore's
(skids.dev, 2026-05). `simulation` plays the same loops through a cache rule and a price list, and the tests
hold the two against each other. Not in the formulas: turns lost to forgetting, recall calls, quality,
minimum lengths, look-back, a rebuilt part that grows. Numbers are floats: estimates to decide by, not bills.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt

from shiftbook.economics.cost import PriceList, Rate
from shiftbook.errors import BadInput


@dataclass(frozen=True, slots=True)
class Loop:
    """Sizes of an agent loop in tokens: static prefix s, growth g and output y a call, rebuilt part r."""

    static: float
    growth: float
    output: float
    rebuilt: float

    def __post_init__(self) -> None:
        if self.growth <= 0 or min(self.static, self.output, self.rebuilt) < 0:
            raise BadInput("A loop needs a growth above zero tokens a call and no negative size.")

    @property
    def ratio(self) -> float:
        """a = r/g: how many calls' growth one rebuilt part is worth."""
        return self.rebuilt / self.growth


@dataclass(frozen=True, slots=True)
class Tariff:
    """Prices in USD per million tokens: cache read rho, cache write w, output o."""

    read: float
    write: float
    output: float

    def __post_init__(self) -> None:
        if not 0 < self.read <= self.write or self.output < 0:
            raise BadInput("A tariff needs a read price above zero and not above its write price.")

    @property
    def spread(self) -> float:
        """w/rho - 1: how many cached reads one rewrite costs beyond the read itself."""
        return self.write / self.read - 1


def tariff(prices: PriceList, prompt: int, *, hour: bool = False) -> Tariff:
    """The three prices of a list for prompts of `prompt` tokens, writes for five minutes or for an `hour`.

    A list without a write price writes at the uncached price, without a read price reads at it.
    """
    written = prices.cache_write_1h if hour else prices.cache_write_5m

    def price(rate: Rate | None) -> float:
        return float((rate or prices.uncached).at(prompt))

    return Tariff(price(prices.cache_read), price(written), float(prices.output.at(prompt)))


def spread(prices: PriceList, prompt: int) -> float | None:
    """w/rho - 1 of a list for prompts of `prompt` tokens; None where nothing is paid for a cached read."""
    try:
        return tariff(prices, prompt).spread
    except BadInput:
        return None


def cold(prices: Tariff, share: float) -> Tariff:
    """The tariff when a `share` q of calls finds a cold cache: rho_q = (1 - q) rho + q w; all forms stay."""
    if not 0 <= share <= 1:
        raise BadInput("The share of calls on a cold cache lies between 0 and 1.")
    return replace(prices, read=(1 - share) * prices.read + share * prices.write)


def rebuild_when_cold(dynamic: float, rebuilt: float) -> bool:
    """On a cold cache both are written anew, w P or w r: rebuild exactly when the rebuilt part is smaller."""
    return rebuilt < dynamic


def transcript_cost(loop: Loop, prices: Tariff, calls: int) -> float:
    """USD of `calls` calls that keep everything:
    w s + rho [s (N - 1) + g N (N - 1)/2] + w g N + o y N."""
    n = calls
    read = loop.static * (n - 1) + loop.growth * n * (n - 1) / 2
    return _usd(
        prices.write * loop.static
        + prices.read * read
        + prices.write * loop.growth * n
        + prices.output * loop.output * n
    )


def period_cost(loop: Loop, prices: Tariff, calls: int, *, building: float = 0.0) -> float:
    """USD of one period of `calls` = k calls after a rebuild, the static prefix being warm:
    rho [s k + r (k - 1) + g k (k - 1)/2] + w r + w g k + o y k + b, with b = `building` in USD."""
    k = calls
    read = loop.static * k + loop.rebuilt * (k - 1) + loop.growth * k * (k - 1) / 2
    return (
        _usd(
            prices.read * read
            + prices.write * loop.rebuilt
            + prices.write * loop.growth * k
            + prices.output * loop.output * k
        )
        + building
    )


def best_spacing(loop: Loop, prices: Tariff, *, building: float = 0.0) -> float:
    """k*: calls between rebuilds with the lowest long-run price,
    sqrt(2 [(w - rho) r + b] / (rho g)); `building` is what making one brief costs, in USD."""
    return sqrt(2 * _rewrite(loop, prices, building) / (prices.read * loop.growth))


def long_run_price(loop: Loop, prices: Tariff, *, building: float = 0.0) -> float:
    """USD a call of a loop that rebuilds every k* calls:
    rho (s + r - g/2) + w g + o y + sqrt(2 rho g [(w - rho) r + b])."""
    return _usd(
        prices.read * (loop.static + loop.rebuilt - loop.growth / 2)
        + prices.write * loop.growth
        + prices.output * loop.output
        + sqrt(2 * prices.read * loop.growth * _rewrite(loop, prices, building))
    )


def payback(kept: float, prices: Tariff, *, summarised: bool = False) -> float:
    """b: calls, the rebuilding one included, after which one rebuild has paid for itself:
    c (w/rho - 1)/(1 - c), where c = `kept` is the rebuilt part over what it replaces.

    `summarised` adds the model's own work, reading P from the cache and writing r: (1 + c o/rho)/(1 - c).
    Infinite when nothing becomes smaller (c >= 1).
    """
    if kept < 0:
        raise BadInput("The kept share of a rebuild cannot be negative.")
    if kept >= 1:
        return inf
    calls = kept * prices.spread / (1 - kept)
    if summarised:
        calls += (1 + kept * prices.output / prices.read) / (1 - kept)
    return calls


def best_first_rebuild(loop: Loop, prices: Tariff) -> float:
    """m*: the call at which a single rebuild brings the level point nearest, a + sqrt((w/rho - 1) a)."""
    return loop.ratio + sqrt(prices.spread * loop.ratio)


def level_point(loop: Loop, prices: Tariff) -> float:
    """T*: the earliest call at which transcript-then-one-rebuild has cost no more than the transcript,
    a + 2 sqrt((w/rho - 1) a). A session shorter than this is cheaper as a transcript."""
    return loop.ratio + 2 * sqrt(prices.spread * loop.ratio)


def level_from_start(loop: Loop, prices: Tariff) -> float:
    """N: the call at which a loop that rebuilds every k* calls from the first has cost no more than the
    transcript, 2 a + 2 sqrt(2 (w/rho - 1) a)."""
    return 2 * loop.ratio + 2 * sqrt(2 * prices.spread * loop.ratio)


def calls_to(window: float, loop: Loop) -> float:
    """The call at which a transcript reaches `window` tokens (a window or a price step): (W - s)/g."""
    return max(0.0, (window - loop.static) / loop.growth)


def _rewrite(loop: Loop, prices: Tariff, building: float) -> float:
    """(w - rho) r + b, in millionths of a USD."""
    return (prices.write - prices.read) * loop.rebuilt + building * 1e6


def _usd(millionths: float) -> float:
    return millionths / 1e6
