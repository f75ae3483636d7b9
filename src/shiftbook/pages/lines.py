"""Lines over a run: one for each series, with levels that do not move and moments when something happened.

A point that is not known leaves a gap. However long a series is, a chart draws a bounded number of points:
of each stretch its first, least, greatest and last, so that no peak is lost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shiftbook.pages.markup import Markup, escaped, figure, joined, place
from shiftbook.pages.style import DASHES, SERIES_MAX

STRETCHES = 200
"""So many stretches of a series are drawn, each by at most four points."""

MOMENTS_MAX = 200
WIDTH, HEIGHT = 1000, 300
"""The drawing's own units; it is stretched to the room it gets, the labels are not."""

Point = tuple[float, float | None]
"""Where along the run, and how much; None where it is not known."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Level:
    """A height that does not move, such as a window."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Moment:
    """Where something happened."""

    name: str
    at: float


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    levels: Sequence[Level] = (),
    moments: Sequence[Moment] = (),
) -> Markup:
    """A chart from 0 upwards. Raises `ValueError` for more lines than there are colours."""
    if len(series) > SERIES_MAX:
        raise ValueError(f"a chart has at most {SERIES_MAX} lines, not {len(series)}")
    points = [(x, y) for each in series for x, y in each.points if y is not None and _is_drawn(x, y)]
    if not points:
        return Markup(
            f"<figure><figcaption>{escaped(title)}</figcaption><p>Nothing is known to draw.</p></figure>"
        )
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    top = _round_up(max([*(y for _, y in points), *(level.value for level in levels), 1e-9]))

    def across(x: float) -> float:
        return WIDTH * (x - first) / (last - first) if last > first else WIDTH / 2

    def up(y: float) -> float:
        return HEIGHT - HEIGHT * max(y, 0.0) / top

    ticks = [top * part / 4 for part in range(5)]
    drawn = [
        Markup(f'<line class="grid" x1="0" x2="{WIDTH}" y1="{place(up(t))}" y2="{place(up(t))}"/>')
        for t in ticks
    ]
    for moment in _thinned(moments, first, last):
        x = place(across(moment.at))
        drawn.append(
            Markup(
                f'<line class="moment" x1="{x}" x2="{x}" y1="0" y2="{HEIGHT}">'
                f"<title>{escaped(moment.name)}</title></line>"
            )
        )
    for level in levels:
        y = place(up(level.value))
        drawn.append(Markup(f'<line class="level" x1="0" x2="{WIDTH}" y1="{y}" y2="{y}"/>'))
    for number, each in enumerate(series):
        for way in _ways(_thin(each.points)):
            steps = " ".join(f"{place(across(x))},{place(up(y))}" for x, y in way)
            if len(way) == 1:
                drawn.append(Markup(f'<path class="dot" stroke="var(--s{number})" d="M{steps}h0.01"/>'))
            else:
                drawn.append(
                    Markup(
                        f'<polyline class="line" stroke="var(--s{number})" '
                        f'stroke-dasharray="{DASHES[number]}" points="{steps}"/>'
                    )
                )
    labels = [
        Markup(f'<span class="y" style="bottom:{place(100 * t / top)}%">{_short(t)}</span>') for t in ticks
    ]
    labels += [
        Markup(
            f'<span class="m" style="top:{place(100 * up(each.value) / HEIGHT)}%">{escaped(each.name)}</span>'
        )
        for each in levels
    ]
    ends = _marks(first, last)
    labels += [
        Markup(
            f'<span class="x{" last" if x == last and x != first else ""}" '
            f'style="left:{place(100 * across(x) / WIDTH)}%">{_short(x)}</span>'
        )
        for x in ends
    ]
    return Markup(
        f"<figure><figcaption>{escaped(title)}</figcaption>{_key(series)}"
        f'<div class="axis">{escaped(y_label)}</div><div class="plot">'
        f'<svg role="img" aria-label="{escaped(_told(title, series))}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'preserveAspectRatio="none">{joined(drawn)}</svg>{joined(labels)}</div>'
        f'<div class="axis right">{escaped(x_label)}</div></figure>'
    )


def _marks(first: float, last: float) -> list[float]:
    """Where the x axis has a number. Between whole ends the middle is whole: there is no request 80.5."""
    middle = (first + last) / 2
    if first == int(first) and last == int(last):
        middle = float(int(middle))
    return sorted({first, middle, last})


def _is_drawn(x: float, y: float | None) -> bool:
    return y is not None and math.isfinite(x) and math.isfinite(y)


def _thin(points: Sequence[Point]) -> list[Point]:
    if len(points) <= 4 * STRETCHES:
        return list(points)
    size = math.ceil(len(points) / STRETCHES)
    kept: list[Point] = []
    for start in range(0, len(points), size):
        stretch = range(start, min(start + size, len(points)))
        known = [at for at in stretch if _is_drawn(*points[at])]
        gaps = [at for at in stretch if not _is_drawn(*points[at])][:1]
        ends = [min(known, key=lambda at: points[at][1] or 0), max(known, key=lambda at: points[at][1] or 0)]
        chosen = {known[0], known[-1], *ends, *gaps} if known else set(gaps)
        kept += [points[at] for at in sorted(chosen)]
    return kept


def _ways(points: Sequence[Point]) -> list[list[tuple[float, float]]]:
    """The points in pieces without a gap."""
    ways: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is not None and _is_drawn(x, y):
            ways[-1].append((x, y))
        elif ways[-1]:
            ways.append([])
    return [way for way in ways if way]


def _thinned(moments: Sequence[Moment], first: float, last: float) -> list[Moment]:
    within = [each for each in moments if math.isfinite(each.at) and first <= each.at <= last]
    step = math.ceil(len(within) / MOMENTS_MAX) or 1
    return within[::step]


def _round_up(value: float) -> float:
    size = 10.0 ** math.floor(math.log10(value))
    return next(size * step for step in (1, 2, 2.5, 4, 5, 8, 10) if size * step >= value * (1 - 1e-12))


def _short(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{place(round(value / size, 1))}{letter}"
    return place(value)


def _told(title: str, series: Sequence[Series]) -> str:
    """The chart in words, for who does not see it."""
    said = [title]
    for each in series:
        known = [y for x, y in each.points if y is not None and _is_drawn(x, y)]
        if known:
            said.append(
                f"{each.name}: from {figure(known[0], digits=2)} to {figure(known[-1], digits=2)}, "
                f"least {figure(min(known), digits=2)}, greatest {figure(max(known), digits=2)}"
            )
    return "; ".join(said)


def _key(series: Sequence[Series]) -> Markup:
    items = joined(
        Markup(
            f'<li><svg viewBox="0 0 30 10" aria-hidden="true"><line class="line" x1="0" x2="30" y1="5" '
            f'y2="5" stroke="var(--s{number})" stroke-dasharray="{DASHES[number]}"/></svg>'
            f"{escaped(each.name)}</li>"
        )
        for number, each in enumerate(series)
    )
    return Markup(f'<ul class="key">{items}</ul>')
