"""A bar for each figure, with the interval in which the true one may lie drawn over it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shiftbook.pages.markup import MISSING, Markup, escaped, figure, joined, place
from shiftbook.pages.style import SERIES_MAX


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure, its interval where there is one, and the group it stands in. None: not known, no bar."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    group: str = ""
    colour: int = 0
    """A number of a series: the same thing has the same colour in every chart of a page."""


def bar_chart(
    bars: Sequence[Bar], *, title: str, most: float | None = None, digits: int = 2, unit: str = ""
) -> Markup:
    """Bars from 0 to `most` (the greatest figure unless named); no figure below 0 has a length."""
    known = [
        each for bar in bars for each in (bar.value, bar.high) if each is not None and math.isfinite(each)
    ]
    end = max([most or 0.0, *known]) or 1.0
    rows: list[Markup] = []
    group = ""
    for bar in bars:
        if bar.group != group:
            group = bar.group
            rows.append(Markup(f'<div class="group">{escaped(group)}</div>'))
        rows.append(_row(bar, end, digits, unit))
    return Markup(
        f'<figure><figcaption>{escaped(title)}</figcaption>\n<div class="bars">{joined(rows)}</div></figure>'
    )


def _row(bar: Bar, end: float, digits: int, unit: str) -> Markup:
    told = figure(bar.value, digits=digits, unit=unit)
    drawn = Markup("")
    if bar.value is not None and told != MISSING:
        width = 100 * min(max(bar.value, 0.0), end) / end
        drawn = Markup(
            f'<rect width="{place(width)}" height="10" opacity=".8" '
            f'fill="var(--s{bar.colour % SERIES_MAX})"/>'
        )
        if bar.low is not None and bar.high is not None:
            low, high = (place(100 * min(max(each, 0.0), end) / end) for each in (bar.low, bar.high))
            drawn = Markup(f'{drawn}<line class="reach" x1="{low}" x2="{high}" y1="5" y2="5"/>')
            told += f" ({figure(bar.low, digits=digits)} to {figure(bar.high, digits=digits)})"
    name = escaped(f"{bar.label}: {told}")
    return Markup(
        f'<div class="label">{escaped(bar.label)}</div><div class="track">'
        f'<svg role="img" aria-label="{name}" viewBox="0 0 100 10" preserveAspectRatio="none">'
        f'<title>{name}</title>{drawn}</svg></div><div class="value">{escaped(told)}</div>\n'
    )
