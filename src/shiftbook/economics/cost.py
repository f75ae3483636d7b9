"""Money: a price list as a value, and the cost of one request's usage in it.

A list holds a rate for each kind of token; a rate may step up once the whole prompt passes a length, and then
holds for every token of the request. The sum is exact (Decimal, USD); rounding to cents is for people, last.
Refused: guessing. A price or a count that matters and is not known makes the cost None, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal, localcontext

from shiftbook.errors import BadInput
from shiftbook.messages import Usage

_MILLION = Decimal(1_000_000)
_CENT = Decimal("0.01")
_DIGITS = 60  # exact for any count of tokens below 1e30 at prices of up to 20 decimals


@dataclass(frozen=True, slots=True)
class Rate:
    """USD per million tokens; from `steps` the last whose start is below the prompt's tokens holds."""

    base: Decimal
    steps: tuple[tuple[int, Decimal], ...] = ()

    def __post_init__(self) -> None:
        starts = [start for start, _ in self.steps]
        prices = [self.base, *(price for _, price in self.steps)]
        if starts != sorted(set(starts)) or any(not price.is_finite() or price < 0 for price in prices):
            raise BadInput("A rate needs finite prices of at least zero and steps at rising prompt lengths.")

    def at(self, prompt: int) -> Decimal:
        """The price that holds for a whole request of `prompt` tokens; a step begins above its start."""
        price = self.base
        for start, stepped in self.steps:
            if prompt > start:
                price = stepped
        return price


@dataclass(frozen=True, slots=True)
class PriceList:
    """The prices of one model at one moment, and where they were read.

    `cache_read` None: the vendor has no price of its own for reads, they cost as uncached. Both writes
    None: writing to the cache is not charged apart. One of them None: that life's price is not known.
    """

    model: str
    source: str
    at: datetime
    uncached: Rate
    output: Rate
    cache_read: Rate | None = None
    cache_write_5m: Rate | None = None
    cache_write_1h: Rate | None = None


@dataclass(frozen=True, slots=True)
class CostParts:
    """USD of one request or of many, by what the tokens were; the four add up to `total`."""

    uncached: Decimal = Decimal(0)
    cache_write: Decimal = Decimal(0)
    cache_read: Decimal = Decimal(0)
    output: Decimal = Decimal(0)

    @property
    def total(self) -> Decimal:
        """Exact sum of the four."""
        with localcontext() as context:
            context.prec = _DIGITS
            return self.uncached + self.cache_write + self.cache_read + self.output

    def __add__(self, other: CostParts) -> CostParts:
        with localcontext() as context:
            context.prec = _DIGITS
            return CostParts(
                self.uncached + other.uncached,
                self.cache_write + other.cache_write,
                self.cache_read + other.cache_read,
                self.output + other.output,
            )


def cost_parts(usage: Usage, prices: PriceList) -> CostParts | None:
    """Exact USD for one request, split; None when a count or a price that it needs is not known.

    A missing count of cache reads or writes does no harm where the list prices that kind as uncached:
    those tokens are then in `uncached` at their right price. `reasoning` is a part of `output`.
    """
    prompt = usage.prompt
    if prompt is None or usage.uncached is None or usage.output is None:
        return None
    writes_priced = prices.cache_write_5m is not None or prices.cache_write_1h is not None
    amounts: list[Decimal] = []
    with localcontext() as context:
        context.prec = _DIGITS
        for count, rate, apart in (
            (usage.uncached, prices.uncached, True),
            (usage.output, prices.output, True),
            (usage.cache_read, prices.cache_read, prices.cache_read is not None),
            (usage.cache_write_5m, prices.cache_write_5m, writes_priced),
            (usage.cache_write_1h, prices.cache_write_1h, writes_priced),
        ):
            if not apart:
                count, rate = count or 0, prices.uncached
            if count is None or (count > 0 and rate is None):
                return None
            amounts.append(Decimal(0) if rate is None else Decimal(count) * rate.at(prompt) / _MILLION)
        uncached, output, read, five, hour = amounts
        return CostParts(uncached, five + hour, read, output)


def cost(usage: Usage, prices: PriceList) -> Decimal | None:
    """Exact USD for one request; None as `cost_parts`."""
    parts = cost_parts(usage, prices)
    return None if parts is None else parts.total


def total(costs: Iterable[Decimal | None]) -> Decimal | None:
    """The sum, or None when any of it is not known."""
    amount = Decimal(0)
    for each in costs:
        if each is None:
            return None
        amount += each
    return amount


def cents(amount: Decimal) -> Decimal:
    """The amount to the cent, halves up, as a bill shows it."""
    return amount.quantize(_CENT, ROUND_HALF_UP)
