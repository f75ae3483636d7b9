"""When the provider's cache has gone cold: then everything is written anew in any case."""

from __future__ import annotations

from shiftbook.policies.fit import Fitted
from shiftbook.policies.units import is_paused
from shiftbook.prompt.epoch import Budget, EpochPrompt

TTL_MS = 300_000
"""Without a request for so long, a provider's cache counts as cold: Anthropic's and OpenAI's shorter life."""

COLD_FACTOR = 2
"""On a cold cache the epoch ends when the prompt is so many times the mark, both without the fixed part,
which no new epoch makes smaller. Sooner would cost more than it spares: 1.25 gave .946 of all tokens cached
and .940 with a life of five minutes, 2.4 gave .954 and .930, over 18 recorded sessions of 138 to 288
requests, policy `journal`, cap 40,000 and mark 16,000, 2026-11."""


def is_cold(prompt: EpochPrompt, fitted: Fitted, budget: Budget) -> bool:
    """Whether the cache is cold and a new epoch, with what came now in it, would be much smaller.

    Never behind a reply that paused: a new epoch would end the turn that the vendor means to go on with.
    """
    if budget.gap_ms is None or budget.gap_ms <= TTL_MS or is_paused(fitted.units):
        return False
    # What came now is in the new epoch as well: where it takes the room, nothing would get smaller.
    grown, room = prompt.tokens + fitted.tokens - prompt.fixed, budget.mark - prompt.fixed
    return grown > COLD_FACTOR * room and 2 * fitted.tokens <= room
