"""How the prompts of a branch grow, where they fall, and why.

The model is a line, prompt(n) = s + g n, that starts again lower whenever the prompt falls:

    g   the mean rise from one request to the next, over all pairs that do not fall: what was dropped at a
        step down is in no pair, so a sawtooth and a straight line of the same growth have the same g
    s   the median of prompt(n) - g n over the requests before the first fall, kept between 0 and the
        smallest prompt: what a prompt holds before anything is said

Growth that is uneven (files read early, small talk later) is still summed rightly by g; s is then a rough
figure, and `spread`, the median distance of the prompts from the line, says how rough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from shiftbook.measure.series import Point, Series
from shiftbook.sessions.requests import Mark

STEP_SHARE = 0.02
STEP_TOKENS = 1_000
"""A prompt has fallen when it is smaller than the one before by more than both: less is how counts jitter
(reasoning that is not sent again, a reminder that comes and goes)."""

COLLAPSED = 0.8
"""A prompt of which less than this share was read from the cache was changed near its front."""

Why = Literal["compaction", "micro-compaction", "branch", "model switch", "shortened at the end", "unknown"]


@dataclass(frozen=True, slots=True)
class Fall:
    """A step down: request number `at` (from 1, in its branch) is smaller than the one before."""

    at: int
    before: int
    after: int
    why: Why


@dataclass(frozen=True, slots=True)
class Growth:
    """The fitted line, in tokens; None where there is too little to fit. `spread` as in the module's head."""

    fixed: float | None
    growth: float | None
    spread: float | None
    falls: tuple[Fall, ...]


def growth_of(series: Series) -> Growth:
    """Fit a branch. One request, or none with a size, gives no line."""
    falls = tuple(falls_of(series))
    sizes = [point.prompt for point in series.points]
    starts = [0, *(fall.at - 1 for fall in falls)]
    ends = [*starts[1:], len(sizes)]
    rises = sum(sizes[end - 1] - sizes[start] for start, end in zip(starts, ends, strict=True) if end > start)
    pairs = len(sizes) - len(starts)
    if pairs < 1:
        return Growth(None, None, None, falls)
    growth = rises / pairs
    first = sizes[: ends[0]]
    rests = [size - growth * number for number, size in enumerate(first, start=1)]
    fixed = min(max(0.0, median(rests)), float(min(sizes)))
    spread = median(abs(size - fixed - growth * number) for number, size in enumerate(first, start=1))
    return Growth(fixed, growth, spread, falls)


def has_fallen(before: int, after: int) -> bool:
    """Whether `after` tokens are a step down from `before`, by STEP_SHARE and STEP_TOKENS."""
    return before - after > max(STEP_TOKENS, STEP_SHARE * before)


def falls_of(series: Series) -> Sequence[Fall]:
    """Every step down of a branch and why it came."""
    return [
        Fall(number, before.prompt, after.prompt, _why(before, after, series.marks))
        for number, (before, after) in enumerate(series.pairs, start=2)
        if has_fallen(before.prompt, after.prompt)
    ]


def _why(before: Point, after: Point, marks: Sequence[Mark]) -> Why:
    """By the file's own marks first, then by the model, then by what the cache still knew."""
    between = {mark.what for mark in marks if _stands_between(mark, before, after)}
    if "compaction" in between:
        return "compaction"
    if "rewind" in between:
        return "branch"
    if before.row.model != after.row.model:
        return "model switch"
    if after.read is None:
        return "unknown"
    return "micro-compaction" if after.read < COLLAPSED * after.prompt else "shortened at the end"


def _stands_between(mark: Mark, before: Point, after: Point) -> bool:
    if before.row.line < mark.line < after.row.line:
        return True
    return None not in (mark.at_ms, before.at_ms, after.at_ms) and (
        (before.at_ms or 0) < (mark.at_ms or 0) <= (after.at_ms or 0)
    )
