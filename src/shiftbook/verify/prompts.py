"""Every prompt made again from its entries, holding the open epoch and not the run.

A request within an epoch adds entries that came since; a rebuild may reach back to any entry, and those are
read again from the store when a recipe names them. Refused before anything is rendered: a recipe that names
entries to come, or so many ranges that making it would not end.
"""

from __future__ import annotations

from dataclasses import replace

from shiftbook.entries import (
    MODEL_VISIBLE,
    Entry,
    EpochOpened,
    ModelAnswered,
    ModelAsked,
    Pick,
    Recipe,
    ReportAsked,
    What,
)
from shiftbook.errors import Damaged
from shiftbook.journal.promises import Store
from shiftbook.projections.knowledge import Knowledge, learn, needed
from shiftbook.projections.pending import named
from shiftbook.prompt.brief import BRIEF_FORMS, BRIEF_KINDS, PENDING
from shiftbook.prompt.epoch import EpochPrompt
from shiftbook.prompt.rederive import PromptFault, Rederived
from shiftbook.run.book import read_entries

_FOLDED = frozenset(BRIEF_KINDS.values())

RECIPE_FACTOR = 4
"""A recipe's ranges may hold this many times the entries there are: more is no prompt, but a trap."""


class Prompts:
    """The fold over a run's entries, in order, from the start or from an epoch's opening."""

    def __init__(self, store: Store, run: str, *, after: int = 0, declaration: str = "") -> None:
        self._store = store
        self._run = run
        self._fold = Rederived(declaration=declaration)
        self._knowledge = Knowledge() if after == 0 else None
        self._newest: dict[type[What], int] = {}
        """The last entry of each kind that a brief folds."""
        self._since = after + 1
        """From this position on, every model-visible entry is in memory; older ones if they are shown."""

    @property
    def prompt(self) -> EpochPrompt | None:
        """The prompt of the last request taken."""
        return self._fold.prompt

    @property
    def count(self) -> int:
        """Requests that were made again."""
        return self._fold.prompts

    @property
    def held(self) -> int:
        """Entries in memory."""
        return len(self._fold.known)

    async def take(self, entry: Entry) -> list[PromptFault]:
        """Fold one entry; what is wrong with the prompt that it asks for."""
        fold, what = self._fold, entry.what
        if self._knowledge is not None:
            learn(self._knowledge, entry)
        if type(what) in _FOLDED:
            self._newest[type(what)] = entry.position
        faults: list[PromptFault] = []
        if isinstance(what, EpochOpened | ModelAsked):
            wrong = _unusable(what.blocks, entry.position)
            if wrong:
                faults.append(PromptFault(entry.position, wrong))
                entry = replace(entry, what=replace(what, blocks=()))
            else:
                await self._fetch(what.blocks)
                faults += [PromptFault(entry.position, fault) for fault in self._unlisted(what.blocks)]
        elif isinstance(what, ReportAsked) and (wrong := _unnamed(what, entry.position)):
            return [PromptFault(entry.position, wrong)]
        is_fresh = fold.opening is not None
        fold.take(entry)
        faults += fold.faults
        fold.faults.clear()
        if isinstance(what, ModelAsked) and is_fresh and fold.prompt is not None:
            fold.known = dict(fold.prompt.shown)
            self._since = entry.position
        return faults

    async def _fetch(self, recipe: Recipe) -> None:
        known = self._fold.known
        for pick in recipe:
            last = min(pick.last, self._since - 1)
            kind = BRIEF_KINDS.get(pick.form)
            if kind and self._knowledge is not None and self._newest.get(kind, 0) <= pick.last:
                # What stands is enough for a brief; its range is the whole journal.
                known.update((each.position, each) for each in needed(self._knowledge, (kind,)))
                continue
            if pick.form == PENDING:
                if self._knowledge is not None and pick.of == named(self._knowledge.pending):
                    excerpts = needed(self._knowledge, (ModelAnswered,))
                    known.update((each.position, each) for each in excerpts)
                    continue
                await self._fetch(tuple(Pick(at, at) for at in pick.of if at not in known))
                continue
            if pick.form == "dropped" or all(at in known for at in {pick.first, last} if at <= last):
                continue
            try:
                entries = await read_entries(self._store, self._run, pick.first - 1, last)
            except Damaged:
                continue  # Whoever reads the rows has told it; the renderer tells what it misses.
            known.update((entry.position, entry) for entry in entries if type(entry.what) in MODEL_VISIBLE)

    def _unlisted(self, recipe: Recipe) -> list[str]:
        """What is wrong with what a brief names as open: it has to be all of it, and nothing else."""
        if self._knowledge is None:
            return []
        wanted = named(self._knowledge.pending)
        return [
            f"Its brief names the entries {list(pick.of)} as open; those that are open are {list(wanted)}."
            for pick in recipe
            if pick.form == PENDING and pick.of != wanted
        ]


def _unusable(recipe: Recipe, position: int) -> str:
    """Why this recipe cannot be one of the entry at `position`, "" if it can."""
    total = 0
    for pick in recipe:
        if not 1 <= pick.first <= pick.last < position:
            return f"Its recipe picks the entries {pick.first} to {pick.last}, which are not before it."
        if not all(pick.first <= at <= pick.last for at in pick.of):
            return f"Its recipe picks the entries {pick.first} to {pick.last} and names others of them."
        is_one = pick.form == "dropped" or pick.form in BRIEF_FORMS
        total += len(pick.of) + (1 if is_one else pick.last - pick.first + 1)
    if total > RECIPE_FACTOR * position:
        return f"Its recipe picks {total} entries where there are {position - 1}."
    return ""


def _unnamed(asked: ReportAsked, position: int) -> str:
    """Why these cannot be the entries of the report's request at `position`, "" if they can."""
    if list(asked.entries) == sorted(set(asked.entries)) and all(0 < at < position for at in asked.entries):
        return ""
    return "Its request names entries that are not before it, or not in order."
