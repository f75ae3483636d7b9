"""Bringing older entries back for a policy: looked for once, written down, and shown from then on by recipe.

What is staged is committed before anything is looked for. What was found is a `Recalled` entry that is
committed with the request that shows it; where mail or a crash comes between, it stands in the journal first,
and the policy finds it there.
"""

from __future__ import annotations

from shiftbook.entries import Recalled
from shiftbook.policies.units import is_by_code
from shiftbook.prompt.epoch import WantRecall
from shiftbook.prompt.recall import recalled
from shiftbook.run.book import read_entries
from shiftbook.run.desk import Desk


async def bring_back(desk: Desk, want: WantRecall) -> None:
    """Look for what the policy wants, and stage what was found."""
    await desk.book.commit()
    found = await desk.index.recall(want, desk.gauge.measure)
    desk.note(recalled(want, found))
    await fetch_brought(desk)


async def fetch_brought(desk: Desk) -> None:
    """Read the entries that a recall among the fresh ones names, where they are not at hand yet."""
    named = {
        position
        for entry in desk.fresh
        if is_by_code(entry) and isinstance(entry.what, Recalled)
        for position in entry.what.found
    }
    for position in sorted(named - desk.brought.keys()):
        for entry in await read_entries(desk.book.store, desk.book.run, position - 1, position):
            desk.brought[position] = entry
