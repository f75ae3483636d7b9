"""What the cache did for a session: which requests found it cold, after which pauses, and what that wrote.

Two rules, told apart on purpose. A *miss* is a request that read less than 80% of the prompt before it and
more than 2,000 tokens less: an expired life, a compaction and a real break are all misses. A *break* is what
nobody would expect: within the life of the cache, without a step down or another model, more than a fifth
and more than 20,000 tokens of what the cache should have held were written again. Counting misses as breaks
names several times too many (rajbos/ai-engineering-fluency#2024: 221 where 52 were real).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shiftbook.measure.growth import has_fallen
from shiftbook.measure.series import Point, Series, recorded_life

MISS_SHARE, MISS_TOKENS = 0.8, 2_000
BREAK_SHARE, BREAK_TOKENS = 0.2, 20_000
LIFE_MS = {"5m": 300_000, "1h": 3_600_000}
LIFE_DEFAULT = "5m"

PAUSES_MS = (60_000, 300_000, 600_000, 1_200_000, 3_600_000)
"""Upper ends of the histogram's bars; the last bar is open."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A bar of the histogram: requests that came after `over_ms` to `under_ms` (None: any longer pause) of
    silence, how many of them missed the cache, and the tokens that those that missed wrote anew, None where
    writes are not recorded."""

    over_ms: int
    under_ms: int | None
    requests: int
    missed: int
    rewritten: int | None


@dataclass(frozen=True, slots=True)
class Break:
    """Request number `at` of a branch lost `tokens` that the cache should have held, after `pause_ms`."""

    branch: str
    at: int
    tokens: int
    pause_ms: int | None


@dataclass(frozen=True, slots=True)
class Warmth:
    """Over `pairs` requests whose reads and whose predecessor are known.

    `cold` of them missed although the prompt did not step down; `missed` counts every miss. `rewrite` is all
    that was written to the cache over the largest prompt (1 is ideal), None when writes are not recorded.
    """

    pairs: int
    missed: int
    cold: int
    life: str
    life_recorded: bool
    pauses: tuple[Pause, ...]
    breaks: tuple[Break, ...]
    rewrite: float | None

    @property
    def cold_share(self) -> float | None:
        """q: the share of requests that found the cache cold."""
        return self.cold / self.pairs if self.pairs else None


def is_missed(before: int, read: int) -> bool:
    """Whether reading `read` tokens after a prompt of `before` is a miss."""
    return read < MISS_SHARE * before and before - read > MISS_TOKENS


def warmth_of(branches: Sequence[Series], life: str | None = None) -> Warmth:
    """The figures over all branches; `life` of the cache is the recorded one if not given, else 5 minutes."""
    recorded = recorded_life(point.row for each in branches for point in each.points)
    lived = life or recorded or LIFE_DEFAULT
    pairs = [
        (series.branch, number, before, after)
        for series in branches
        for number, (before, after) in enumerate(series.pairs, start=2)
        if after.read is not None
    ]
    missed = [each for each in pairs if is_missed(each[2].prompt, each[3].read or 0)]
    cold = [each for each in missed if not has_fallen(each[2].prompt, each[3].prompt)]
    found = (_break(branch, number, before, after, LIFE_MS[lived]) for branch, number, before, after in pairs)
    return Warmth(
        pairs=len(pairs),
        missed=len(missed),
        cold=len(cold),
        life=lived,
        life_recorded=life is None and recorded is not None,
        pauses=_pauses([(before, after) for _, _, before, after in pairs]),
        breaks=tuple(each for each in found if each is not None),
        rewrite=_rewrite(branches),
    )


def pause_ms(before: Point, after: Point) -> int | None:
    """The time between two requests, None when either has no stamp."""
    if before.at_ms is None or after.at_ms is None:
        return None
    return max(0, after.at_ms - before.at_ms)


def _break(branch: str, number: int, before: Point, after: Point, life_ms: int) -> Break | None:
    pause = pause_ms(before, after)
    if (pause is not None and pause >= life_ms) or has_fallen(before.prompt, after.prompt):
        return None
    if before.row.model != after.row.model:
        return None
    held = min(before.prompt - (before.row.usage.uncached or 0), after.prompt)
    lost = held - (after.read or 0)
    return Break(branch, number, lost, pause) if lost > max(BREAK_TOKENS, BREAK_SHARE * held) else None


def _pauses(pairs: Sequence[tuple[Point, Point]]) -> tuple[Pause, ...]:
    bars: list[Pause] = []
    for over, under in zip((0, *PAUSES_MS), (*PAUSES_MS, None), strict=True):
        within = [
            (before, after)
            for before, after in pairs
            if (pause := pause_ms(before, after)) is not None
            and over <= pause
            and (under is None or pause < under)
        ]
        cold = [after for before, after in within if is_missed(before.prompt, after.read or 0)]
        written = [after.row.usage.cache_write for after in cold]
        known = [each for each in written if each is not None]
        rewritten = sum(known) if len(known) == len(written) else None
        bars.append(Pause(over, under, len(within), len(cold), rewritten))
    return tuple(bars)


def _rewrite(branches: Sequence[Series]) -> float | None:
    points = [point for each in branches for point in each.points]
    writes = [point.row.usage.cache_write for point in points]
    if not points or any(written is None for written in writes):
        return None
    return sum(written or 0 for written in writes) / max(point.prompt for point in points)
