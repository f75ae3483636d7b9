"""Taking a run up from its journal: the view and the prompt of the current epoch, from a snapshot or from the start.

A snapshot is the view and the prompt's cursor as plain JSON; entries after it are folded on top. Without a
snapshot, or with one of another version, everything is folded from the first entry: slower, the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from shiftbook import canonical
from shiftbook.entries import MODEL_VISIBLE, Entry
from shiftbook.errors import NotCanonical
from shiftbook.journal.promises import Snapshot, Store
from shiftbook.messages import Json
from shiftbook.projections.view import VIEW_VERSION, RunView, fold, view_from_plain, view_to_plain
from shiftbook.prompt.epoch import EpochPrompt
from shiftbook.prompt.grow import Cursor, cursor_from_plain, cursor_of, cursor_to_plain, follow, rebuild
from shiftbook.prompt.measure import Gauge
from shiftbook.run.book import read_entries

SNAPSHOT_EVERY = 200
"""Entries between two snapshots: a resume folds at most about this many beside the prompt's own."""

SNAPSHOT_NAME = "run"


def snapshot_of(view: RunView, prompt: EpochPrompt) -> Snapshot:
    """The snapshot of a run whose view and prompt these are."""
    plain = {"view": view_to_plain(view), "cursor": cursor_to_plain(cursor_of(prompt))}
    return Snapshot(SNAPSHOT_NAME, VIEW_VERSION, view.position, canonical.encode(plain))


async def restore(
    store: Store, run: str, gauge: Gauge, fixed: int
) -> tuple[RunView, EpochPrompt, list[Entry]]:
    """The run's view, its prompt as it was last sent, and the model-visible entries that came since."""
    view, cursor = await _from_snapshot(store, run)
    tail = await read_entries(store, run, view.position)
    for entry in tail:
        fold(view, entry)
        follow(cursor, entry)
    entries = await _shown(store, run, cursor, {entry.position: entry for entry in tail})
    prompt = rebuild(cursor, entries, gauge, fixed)
    fresh = [
        entry
        for entry in await _after(store, run, cursor.asked_at, tail)
        if type(entry.what) in MODEL_VISIBLE
    ]
    return view, prompt, fresh


async def _from_snapshot(store: Store, run: str) -> tuple[RunView, Cursor]:
    snapshot = await store.cache.load(run, SNAPSHOT_NAME, VIEW_VERSION)
    if snapshot is not None:
        try:
            plain: Mapping[str, Json] = canonical.decode(snapshot.text)
            view = view_from_plain(plain["view"])
            if view.position == snapshot.position:
                return view, cursor_from_plain(plain["cursor"])
        except (NotCanonical, KeyError, TypeError, ValueError):
            pass  # A snapshot is a cache: one that cannot be read is as good as none.
    return RunView(), Cursor()


async def _shown(
    store: Store, run: str, cursor: Cursor, known: Mapping[int, Entry]
) -> Mapping[int, Entry]:
    """The entries that the cursor's picks name."""
    entries = dict(known)
    for pick in cursor.picks:
        if pick.form == "dropped" or all(at in entries for at in (pick.first, pick.last)):
            continue
        for entry in await read_entries(store, run, pick.first - 1, pick.last):
            entries[entry.position] = entry
    return entries


async def _after(store: Store, run: str, position: int, tail: list[Entry]) -> list[Entry]:
    if not tail or tail[0].position > position + 1:
        return await read_entries(store, run, position)
    return [entry for entry in tail if entry.position > position]
