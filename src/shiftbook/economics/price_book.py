"""Look a model's prices up in the `genai-prices` package and turn them into a price list of ours.

The package ships its table with itself; nothing is fetched. Its release is the date of the table, so the
version stands in each list's source. A model that it does not know, or prices by something other than text
tokens, has no list: None, and what was spent stays unknown. Without the package every model is unknown, and
`price_source` says so.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shiftbook.economics.cost import PriceList, Rate
from shiftbook.errors import BadInput

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.types import ModelInfo, TieredPrices


def price_source() -> str | None:
    """Name and version of the price table in use, with its date if it was updated since; None: no table."""
    try:
        from genai_prices import __version__
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    snapshot = get_snapshot()
    updated = f", updated {snapshot.timestamp:%Y-%m-%d}" if snapshot.from_auto_update else ""
    return f"genai-prices {__version__}{updated}"


def price_list(model: str, at: datetime, *, vendor: str | None = None) -> PriceList | None:
    """The prices that held for `model` at `at` (with a time zone), or None when they are not known.

    `vendor` is the provider's id in genai-prices ("anthropic", "openai", "google", "aws" ...); without it
    the model's own maker is taken. Prices by date, by hour and by prompt length are honoured; batch and
    priority tariffs, regional surcharges and fees of server-side tools are not in it.
    """
    if at.tzinfo is None:
        raise BadInput("Prices are asked for at a moment without a time zone; give one, such as UTC.")
    source, found = price_source(), _found(model, vendor)
    if source is None or found is None or not found.prices:
        return None
    prices = found.get_prices(at)
    if prices.input_mtok is None or prices.output_mtok is None or prices.requests_kcount is not None:
        return None
    write_5m = prices.cache_write_mtok if prices.cache_write_5m_mtok is None else prices.cache_write_5m_mtok
    return PriceList(
        model=found.id,
        source=source,
        at=at,
        uncached=_rate(prices.input_mtok),
        output=_rate(prices.output_mtok),
        cache_read=None if prices.cache_read_mtok is None else _rate(prices.cache_read_mtok),
        cache_write_5m=None if write_5m is None else _rate(write_5m),
        cache_write_1h=None if prices.cache_write_1h_mtok is None else _rate(prices.cache_write_1h_mtok),
    )


def prices_at(model: str, at_ms: int) -> PriceList | None:
    """The prices that held for `model` at a moment in milliseconds since 1970; None when they, or the moment,
    are not known to any calendar."""
    try:
        return price_list(model, datetime.fromtimestamp(at_ms / 1000, UTC))
    except (OverflowError, OSError, ValueError):
        return None


_VENDORS = {"anthropic": "anthropic", "openai": "openai", "openai-chat": "openai"}


def known_prices(reference: str, replied: str | None, at_ms: int) -> PriceList | None:
    """The prices of the package `genai-prices`, by the vendor that the reference names."""
    wire, _, name = reference.partition(":")
    vendor = _VENDORS.get(wire)
    if wire == "bridge":
        vendor, _, name = name.partition(":")
    if not vendor or not name:
        return None
    try:
        at = datetime.fromtimestamp(at_ms / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    for model in (replied, name):
        if model and (found := price_list(model, at, vendor=vendor)) is not None:
            return found
    return None


def context_window(model: str, *, vendor: str | None = None) -> int | None:
    """The longest prompt that the model takes, in tokens, as the table has it; None when it is not known."""
    found = _found(model, vendor)
    return None if found is None else found.context_window


def _found(model: str, vendor: str | None) -> ModelInfo | None:
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    snapshot = get_snapshot()
    for maker, name in _readings(model, vendor):
        try:
            return snapshot.find_provider_model(name, None, maker, None)[1]
        except LookupError:
            continue
    return None


def _readings(model: str, vendor: str | None) -> list[tuple[str | None, str]]:
    """The id as it stands, then `vendor/model` taken apart, as gateways write it."""
    head, slash, tail = model.partition("/")
    return [(vendor, model), (vendor or head, tail)] if slash and head and tail else [(vendor, model)]


def _rate(price: Decimal | TieredPrices) -> Rate:
    from genai_prices.types import TieredPrices

    if isinstance(price, TieredPrices):
        return Rate(price.base, tuple((tier.start, tier.price) for tier in price.tiers))
    return Rate(price)
