"""A clock that a test owns: time stands still until somebody waits or a test moves it.

`sleep_ms` moves time on at once and lets others run, so that no test waits. Tokens and ids come from a seed,
so that a failure can be repeated. Processes whose clocks disagree are two clocks over one time, with a skew.
"""

from __future__ import annotations

import asyncio
import random

from shiftbook.clock import ID_ALPHABET, RUN_ID_LENGTH

START_MS = 1_767_225_600_000
"""Where time starts unless a test says otherwise: the first second of 2026, UTC."""


class Time:
    """What several clocks share. It never goes back."""

    def __init__(self, start_ms: float = START_MS) -> None:
        self.start_ms = start_ms
        self.ms = start_ms

    def reach(self, ms: float) -> None:
        """Move on to a moment, unless it is past already."""
        self.ms = max(self.ms, ms)


class SimulatedClock:
    """Keeps the promise `shiftbook.clock.Clock` without a machine's clock or its chance.

    `skew_ms` is how far this clock's stamps are off; durations and waiting are not.
    """

    def __init__(self, seed: int = 0, *, time: Time | None = None, skew_ms: int = 0) -> None:
        self.time = time or Time()
        self.skew_ms = skew_ms
        self._chance = random.Random(seed)

    def now_ms(self) -> int:
        return int(self.time.ms) + self.skew_ms

    def steady_ms(self) -> float:
        return self.time.ms - self.time.start_ms

    async def sleep_ms(self, duration_ms: float) -> None:
        until = self.time.ms + max(duration_ms, 0)
        # Whoever is ready goes first: a wait ends when there is nothing else to do, or soon after.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.time.reach(until)

    def token(self, size: int) -> bytes:
        return self._chance.randbytes(size)

    def new_run_id(self) -> str:
        return "".join(self._chance.choice(ID_ALPHABET) for _ in range(RUN_ID_LENGTH))

    def advance(self, duration_ms: float) -> None:
        """Let time pass."""
        self.time.reach(self.time.ms + duration_ms)

    def skewed(self, skew_ms: int, seed: int = 1) -> SimulatedClock:
        """Another machine's clock over the same time, `skew_ms` ahead of it (behind when negative)."""
        return SimulatedClock(seed, time=self.time, skew_ms=skew_ms)
