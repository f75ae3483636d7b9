"""What a run cost and how much of its prompts came from a cache, as its providers reported it.

Each answer, a report's too, is priced by itself, at the prices of its day, since a price may step with the
length of a prompt. One answer whose usage or price is not known makes the sum unknown (None), never smaller;
so does a reply that was cut half-way, which is billed and not reported. Attempts that failed before a word
came are left out.

Prices are of the vendor that the model's reference names, by the wire: a gateway's own prices are not known.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from shiftbook.economics.cost import PriceList, cost
from shiftbook.economics.price_book import known_prices
from shiftbook.entries import (
    AgentDeclared,
    Entry,
    ModelAnswered,
    ModelInterrupted,
    ReportAnswered,
    ReportAsked,
    ReportFailed,
    ReportWritten,
)
from shiftbook.messages import Usage

Prices = Callable[[str, str | None, int], PriceList | None]
"""The price list that held for a model: its reference as declared, the name that the reply gave (None: the
same), the moment in milliseconds since 1970. None where it is not known."""


class Reported:
    """The sums over a run's entries, in order."""

    def __init__(self, prices: Prices = known_prices) -> None:
        self._prices = prices
        self._model = self._writer = ""
        self._amount: Decimal | None = Decimal(0)
        self._read: int | None = 0
        self._prompt = 0
        self._answers = 0

    @property
    def cost(self) -> Decimal | None:
        """USD, exact; None when nothing was answered or any of it is not known."""
        return self._amount if self._answers else None

    @property
    def cached_share(self) -> float | None:
        """Tokens read from the cache over all prompt tokens; None when any answer does not report both."""
        return self._read / self._prompt if self._read is not None and self._prompt else None

    def take(self, entry: Entry) -> None:
        """Fold one entry."""
        match entry.what:
            case AgentDeclared(model=model):
                self._model = model
            case ModelAnswered(usage=usage, model=replied):
                self._answered(self._model, replied, usage, entry.at_ms)
            case ReportAsked(model=writer):
                self._writer = writer
            case ReportAnswered(usage=usage, model=replied):
                self._answered(self._writer, replied, usage, entry.at_ms)
            case ModelInterrupted(parts=parts) if parts:
                self._amount = None
            case ReportFailed(part=part) if part:
                self._amount = None
            case ReportWritten(usage=usage, writer=writer) if usage != Usage():
                self._add(writer, None, usage, entry.at_ms)

    def _answered(self, reference: str, replied: str | None, usage: Usage, at_ms: int) -> None:
        self._answers += 1
        self._add(reference, replied, usage, at_ms)
        if usage.prompt is None or usage.cache_read is None:
            self._read = None
        elif self._read is not None:
            self._read += usage.cache_read
            self._prompt += usage.prompt

    def _add(self, reference: str, replied: str | None, usage: Usage, at_ms: int) -> None:
        if self._amount is None:
            return
        prices = self._prices(reference, replied, at_ms)
        amount = None if prices is None else cost(usage, prices)
        self._amount = None if amount is None else self._amount + amount
