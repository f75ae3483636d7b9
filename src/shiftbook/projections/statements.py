"""Facts and decisions: what stands under each key, and what stood there before.

Statements are only added. One takes the place of what stands under its key, and the earlier one stays in the
journal; only a report never takes the place of what anybody else has stated. So what stands under a key is
the last word of those who count most there, whichever earlier ones are folded beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shiftbook.entries import Entry, StatementMade

EARLIER_MAX = 8
"""Positions of earlier statements that are kept for each key; `history` finds all of them."""


@dataclass(slots=True)
class Statements:
    """The statements after an entry: `standing` in the order in which they were made.

    `earlier` are the positions of those that stood under a key before, the newest last.
    """

    standing: dict[str, Entry] = field(default_factory=dict)
    earlier: dict[str, tuple[int, ...]] = field(default_factory=dict)


def learn_statement(statements: Statements, entry: Entry, what: StatementMade) -> None:
    """Take one statement; O(1)."""
    old = statements.standing.get(what.key)
    if old is not None:
        if what.origin == "report" and not _is_report(old):
            return
        del statements.standing[what.key]
        before = (*statements.earlier.get(what.key, ()), old.position)
        statements.earlier[what.key] = before[-EARLIER_MAX:]
    statements.standing[what.key] = entry


def standing_at(statements: Statements, key: str) -> int | None:
    """The position of what stands under a key."""
    entry = statements.standing.get(key)
    return None if entry is None else entry.position


def history(entries: Iterable[Entry], key: str) -> tuple[Entry, ...]:
    """Every statement under that key among the entries, superseded ones included, in order."""
    return tuple(each for each in entries if isinstance(each.what, StatementMade) and each.what.key == key)


def _is_report(entry: Entry) -> bool:
    return isinstance(entry.what, StatementMade) and entry.what.origin == "report"
