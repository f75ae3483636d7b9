"""The standing rules of a run: what its author or a person told it to keep to.

The last word on a key holds until it is withdrawn or replaced. No rule is ever taken from anybody else: not
from a model, a tool, an observer, a report or a recording.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shiftbook.entries import Author, Entry, RuleSet

RULERS: frozenset[Author] = frozenset({"author", "person"})
"""Who may set a rule."""


@dataclass(slots=True)
class Rules:
    """The last word on each key, withdrawn or not, in the order of the words; `by_author` only the author's.

    A word that withdraws is kept as well: whoever folds some of the entries must not miss it.
    """

    words: dict[str, Entry] = field(default_factory=dict)
    by_author: dict[str, Entry] = field(default_factory=dict)

    @property
    def standing(self) -> dict[str, Entry]:
        """The rules in force, in the order in which they were set."""
        return {
            key: entry
            for key, entry in self.words.items()
            if isinstance(entry.what, RuleSet) and not entry.what.withdrawn
        }


def learn_rule(rules: Rules, entry: Entry, what: RuleSet) -> None:
    """Take one word on a rule."""
    if what.author not in RULERS:
        return
    rules.words.pop(what.key, None)
    rules.words[what.key] = entry
    if what.author == "author":
        rules.by_author[what.key] = entry


def author_changes(rules: Rules, wanted: Mapping[str, str]) -> tuple[RuleSet, ...]:
    """What the author has to say so that his last word on each key is `wanted`; nothing when it is already.

    A person's own word on a key stays until the author says something new about it.
    """
    changes: list[RuleSet] = []
    for key, before in rules.by_author.items():
        last = before.what
        if isinstance(last, RuleSet) and not last.withdrawn and key not in wanted:
            changes.append(RuleSet(key, last.text, "author", withdrawn=True))
    for key, text in wanted.items():
        entry = rules.by_author.get(key)
        said = None if entry is None else entry.what
        if not isinstance(said, RuleSet) or said.withdrawn or said.text != text:
            changes.append(RuleSet(key, text, "author"))
    return tuple(changes)
