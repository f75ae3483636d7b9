"""A table of figures: text to the left, numbers to the right, and a word where a figure is missing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from shiftbook.pages.markup import MISSING, Markup, escaped, figure, joined

Cell = str | int | float | None
"""A cell: text as it is, a number, or None where nothing is known."""


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    right: Collection[str] = (),
    digits: int = 3,
    caption: str = "",
) -> Markup:
    """A table; the columns named in `right` stand to the right, as numbers do. A float has `digits` places.

    A row must have a cell for each column: `ValueError` says which has not.
    """
    for number, row in enumerate(rows, 1):
        if len(row) != len(columns):
            raise ValueError(f"row {number} has {len(row)} cells for {len(columns)} columns")
    sides = [name in right for name in columns]
    head = joined(
        Markup(f'<th scope="col"{_side(side)}>{escaped(name)}</th>')
        for name, side in zip(columns, sides, strict=True)
    )
    body = joined(
        Markup(f"<tr>{joined(_cell(c, side, digits) for c, side in zip(row, sides, strict=True))}</tr>\n")
        for row in rows
    )
    told = f"<caption>{escaped(caption)}</caption>" if caption else ""
    return Markup(
        f'<div class="wide"><table>{told}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>"
    )


def _cell(cell: Cell, side: bool, digits: int) -> Markup:
    if isinstance(cell, float):
        cell = figure(cell, digits=digits)
    elif isinstance(cell, int):
        cell = figure(cell)
    text = MISSING if cell is None else cell
    if text == MISSING:
        return Markup(f'<td class="none{" right" if side else ""}">{MISSING}</td>')
    return Markup(f"<td{_side(side)}>{escaped(text)}</td>")


def _side(right: bool) -> str:
    return ' class="right"' if right else ""
