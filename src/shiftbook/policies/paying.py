"""When a new epoch costs less than going on, by the prices of the model.

Every request reads the whole prompt again. What it reads beyond what this epoch was opened with would not be
there after a rebuild; a rebuild writes as much as that anew, but for the fixed part. It is due when the first
has come to cost as much as the second: growing by g tokens a request, that is after
k* = sqrt(2 (w - rho) r / (rho g)) requests, the spacing with the lowest price in the long run
(`economics.closed_forms`), and nothing about the growth to come has to be guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

from shiftbook.policies.fit import Fitted
from shiftbook.policies.units import is_paused
from shiftbook.prompt.epoch import Budget, EpochPrompt


@dataclass(frozen=True, slots=True)
class Account:
    """Tokens at the price of reading them from the cache: those read in this epoch beyond its opening, the
    request to come included, and what an opening costs to write beyond reading it."""

    reading: int
    writing: int

    @property
    def is_due(self) -> bool:
        """Whether going on has come to cost as much as a rebuild."""
        return self.reading >= self.writing


def account(prompt: EpochPrompt, fitted: Fitted, budget: Budget) -> Account | None:
    """What going on and a rebuild come to.

    None without prices, where nothing would get smaller, and behind a reply that paused: a new epoch would
    end the turn that the vendor means to go on with.
    """
    if budget.spread is None or is_paused(fitted.units) or 2 * fitted.tokens > budget.mark - prompt.fixed:
        return None
    opening = _opening(prompt, budget.mark)
    reading, tokens = 0, prompt.fixed
    for number, (block, size) in enumerate(zip(prompt.blocks, prompt.sizes, strict=True)):
        # A reply of this epoch tells of the request that brought it.
        if block.side == "assistant" and number >= prompt.first_end:
            reading += max(0, tokens - opening)
        tokens += size
    # The last request's reply is still fresh; then the request to come.
    reading += max(0, tokens - opening) + max(0, tokens + fitted.tokens - opening)
    return Account(reading, round(budget.spread * (opening - prompt.fixed)))


def _opening(prompt: EpochPrompt, mark: int) -> int:
    """The tokens that a rebuild comes to: as the last one did, the mark where there was none yet."""
    if prompt.epoch <= 1:
        return mark
    # An epoch that was opened early, for another reason, says little: half of the mark is the least.
    return min(mark, max(prompt.fixed + sum(prompt.sizes[: prompt.first_end]), mark // 2))
