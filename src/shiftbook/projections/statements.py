"""Facts and decisions: what stands under each key, and what stood there before.

Statements are only added. One takes the place of what stands under its key, or of the one that it names; the
earlier one stays in the journal. Two exceptions keep the stronger word: a report does not take the place of
what anybody else has stated, and what a tool returned does not take the place of a decision.
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

    `earlier` are the positions of those that stood under a key before, the newest last; `keys` are the keys
    of the standing ones by position.
    """

    standing: dict[str, Entry] = field(default_factory=dict)
    earlier: dict[str, tuple[int, ...]] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)


def learn_statement(statements: Statements, entry: Entry, what: StatementMade) -> None:
    """Take one statement; O(1)."""
    named = statements.keys.get(what.supersedes or 0)
    for key in (what.key, named):
        old = None if key is None else statements.standing.get(key)
        if key is None or old is None:
            continue
        if not _may_replace(what, old.what):
            if key == what.key:
                return
            continue
        del statements.standing[key], statements.keys[old.position]
        before = (*statements.earlier.get(key, ()), old.position)
        statements.earlier[key] = before[-EARLIER_MAX:]
    statements.standing[what.key] = entry
    statements.keys[entry.position] = what.key


def standing_at(statements: Statements, key: str) -> int | None:
    """The position of what stands under a key."""
    entry = statements.standing.get(key)
    return None if entry is None else entry.position


def history(entries: Iterable[Entry], key: str) -> tuple[Entry, ...]:
    """Every statement under that key among the entries, superseded ones included, in order."""
    return tuple(each for each in entries if isinstance(each.what, StatementMade) and each.what.key == key)


def _may_replace(new: StatementMade, old: object) -> bool:
    if not isinstance(old, StatementMade):
        return True
    if new.origin == "report":
        return old.origin == "report"
    if new.origin in ("tool", "observer") and new.sort == "fact":
        return old.sort == "fact"
    return True
