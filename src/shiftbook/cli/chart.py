"""A line as blocks of text, for a terminal: one column for a stretch of values, its height their greatest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def text_chart(values: Sequence[int], *, width: int = 64, height: int = 8) -> list[str]:
    """Lines of a chart from 0 up to the greatest value, which stands beside the first line. No values, no
    lines."""
    if not values:
        return []
    columns = [max(part) for part in _stretches(values, min(width, len(values)))]
    top = max(*columns, 1)
    label = len(f"{top:,}")
    lines: list[str] = []
    for row in range(height - 1, -1, -1):
        filled = [8 * height * value / top - 8 * row for value in columns]
        bar = "".join(_EIGHTHS[max(0, min(8, math.ceil(each)))] for each in filled)
        side = f"{top:,}" if row == height - 1 else "0" if row == 0 else ""
        lines.append(f"{side:>{label}} |{bar}".rstrip())
    ends = f"{'1':<{max(1, len(columns) - len(f'{len(values):,}'))}}{len(values):,}"
    lines.append(" " * (label + 2) + (ends if len(columns) > len(f"{len(values):,}") + 1 else "1"))
    return lines


def _stretches(values: Sequence[int], columns: int) -> list[Sequence[int]]:
    edges = [len(values) * number // columns for number in range(columns + 1)]
    return [values[start:end] for start, end in pairwise(edges)]
