"""How fast one account is asked: one gate for all runs of a process that pay with the same key for a model.

A vendor's limits are the account's and not a run's. When one run is told to wait, the gate closes until then
and the others wait too, instead of finding out one by one. `requests_per_minute` and `tokens_per_minute`
keep a process below limits that are known beforehand: like the vendors' own, a bucket that fills up evenly,
is full at first and may be emptied at once.

    fast = Pace(requests_per_minute=50, tokens_per_minute=400_000)
    Anthropic("claude-sonnet-5-5", pace=fast)

Waiting is one sleep by the run's clock, no polling. Nothing of it outlives the process: what a run itself was
told to wait for stands in its journal. Not done: sharing limits between processes.
"""

from __future__ import annotations

import hashlib
import threading

from shiftbook.clock import Clock
from shiftbook.errors import AgentMistake
from shiftbook.messages import Usage

_MINUTE_MS = 60_000
_SOON_MS = 1.0
"""A wait shorter than this is none: sleeping is no finer."""


class _Bucket:
    """An allowance a minute. It may go below zero: whoever takes from it then waits for his share."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._left = float(per_minute)
        self._at_ms: float | None = None

    def take(self, amount: int, now_ms: float) -> float:
        """Take it, and say how long to wait for it. More than a minute's goes when all is there."""
        if self._at_ms is not None:
            filled = self._left + (now_ms - self._at_ms) * self._per_minute / _MINUTE_MS
            self._left = min(float(self._per_minute), filled)
        self._at_ms = now_ms
        short = min(amount, self._per_minute) - self._left
        self._left -= amount
        return max(0.0, short) * _MINUTE_MS / self._per_minute

    def give(self, amount: int) -> None:
        """What was taken was so much too much (or, below zero, too little)."""
        self._left = min(float(self._per_minute), self._left + amount)


class Pace:
    """One account's gate. It may be shared by several providers, agents, event loops and threads.

    Tokens are those of the prompt that no cache served, and of the answer: the prompt's by our meter when the
    request goes out, put right by the usage that is reported. None is without limit.
    """

    def __init__(
        self, *, requests_per_minute: int | None = None, tokens_per_minute: int | None = None
    ) -> None:
        for name, limit in (
            ("requests_per_minute", requests_per_minute),
            ("tokens_per_minute", tokens_per_minute),
        ):
            if limit is not None and limit < 1:
                raise AgentMistake(f"{name} is {limit}: it has to be at least 1, or None.")
        self._requests = None if requests_per_minute is None else _Bucket(requests_per_minute)
        self._tokens = None if tokens_per_minute is None else _Bucket(tokens_per_minute)
        self._opens_ms = 0.0
        self._guard = threading.Lock()

    async def enter(self, clock: Clock, tokens: int) -> float:
        """Wait until a request of so many tokens may go out; gives the milliseconds that were waited."""
        began_ms = clock.steady_ms()
        with self._guard:
            waits = [
                bucket.take(amount, began_ms)
                for bucket, amount in ((self._requests, 1), (self._tokens, tokens))
                if bucket is not None
            ]
        goes_ms = began_ms + max(waits, default=0.0)
        # The gate may be closed anew while we wait for it, so it is looked at again.
        while (wait_ms := max(goes_ms, self._opens_ms) - clock.steady_ms()) >= _SOON_MS:
            await clock.sleep_ms(wait_ms)
        return clock.steady_ms() - began_ms

    def close(self, clock: Clock, wait_ms: float) -> None:
        """Let nobody through for so long from now; never shortens a wait that is longer."""
        with self._guard:
            self._opens_ms = max(self._opens_ms, clock.steady_ms() + wait_ms)

    def settle(self, tokens: int, usage: Usage) -> None:
        """Put right what `enter` took for a request whose usage is known now."""
        if self._tokens is not None and usage.prompt is not None:
            used = usage.prompt - (usage.cache_read or 0) + (usage.output or 0)
            with self._guard:
                self._tokens.give(tokens - used)


_PACES: dict[tuple[str, str, str], Pace] = {}
_GUARD = threading.Lock()


def pace_of(name: str, base_url: str | None, key: str) -> Pace:
    """This process's gate for a model at an address, paid for with a key; the key itself is not kept."""
    account = (name, base_url or "", hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest())
    with _GUARD:
        return _PACES.setdefault(account, Pace())
