"""Taking a run up from its journal: its view and the prompt of its current epoch.

A snapshot is the view, what is known, and the prompt's cursor as plain JSON; the entries after it are
folded on top. Without a snapshot, or with one that cannot be read, everything is folded from the first entry:
slower, the same. In both cases every prompt that is made again is held against the digest in the journal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shiftbook import canonical
from shiftbook.entries import MODEL_VISIBLE, Entry, EpochOpened, ModelAsked
from shiftbook.errors import Damaged, NotCanonical
from shiftbook.journal.promises import Snapshot, Store
from shiftbook.messages import Json
from shiftbook.projections.knowledge import (
    Knowledge,
    knowledge_from_plain,
    knowledge_to_plain,
    learn,
    needed,
)
from shiftbook.projections.view import VIEW_VERSION, RunView, fold, view_from_plain, view_to_plain
from shiftbook.prompt.brief import BRIEF_KINDS
from shiftbook.prompt.epoch import EpochPrompt
from shiftbook.prompt.grow import first_prompt
from shiftbook.prompt.measure import Gauge
from shiftbook.prompt.rederive import Rederived, cursor, cursor_ranges, from_cursor
from shiftbook.run.book import read_entries
from shiftbook.run.desk import reads_prompt

SNAPSHOT_NAME = "run"


@dataclass(slots=True)
class Restored:
    """What a resumed run starts from."""

    view: RunView = field(default_factory=RunView)
    prompts: Rederived = field(default_factory=Rederived)
    knowledge: Knowledge = field(default_factory=Knowledge)
    asked_ms: int | None = None
    """The stamp of the last request; a snapshot is written with one, so it is always among what is read."""

    def take(self, entries: Iterable[Entry]) -> None:
        """Fold entries, in order."""
        for entry in entries:
            fold(self.view, entry)
            learn(self.knowledge, entry)
            self.prompts.take(entry)
            if reads_prompt(entry.what):
                self.asked_ms = entry.at_ms

    def prompt(self, gauge: Gauge) -> EpochPrompt:
        """The prompt as it was last sent, measured; an empty one where none was sent yet."""
        prompt = self.prompts.prompt
        if prompt is None:
            return first_prompt(self.view.declaration, gauge)
        gauge.use(prompt.meter)
        gauge.measure_again(prompt)
        return prompt


def snapshot_of(view: RunView, knowledge: Knowledge, prompt: EpochPrompt, fresh: Iterable[Entry]) -> Snapshot:
    """The snapshot of a run whose view, knowledge and prompt these are."""
    plain = {
        "view": view_to_plain(view),
        "knowledge": knowledge_to_plain(knowledge),
        "cursor": cursor(prompt, fresh),
    }
    return Snapshot(SNAPSHOT_NAME, VIEW_VERSION, view.position, canonical.encode(plain))


async def restore(store: Store, run: str) -> Restored:
    """The run as its journal has it. Raises `Damaged` when a prompt does not come out as it was sent."""
    restored = await _from_snapshot(store, run) or Restored()
    entries = await read_entries(store, run, restored.view.position)
    if restored.view.position:
        # A brief may be made of what no prompt since has shown.
        standing = needed(restored.knowledge, BRIEF_KINDS.values())
        restored.prompts.known.update((entry.position, entry) for entry in standing)
        await _fetch_recalled(store, run, entries, restored.prompts)
    restored.take(entries)
    if restored.prompts.faults:
        fault = restored.prompts.faults[0]
        raise Damaged(
            f"Run {run}, entry {fault.position}: {fault.what}. `shiftbook verify {run}` tells more."
        )
    return restored


async def _fetch_recalled(store: Store, run: str, entries: Iterable[Entry], prompts: Rederived) -> None:
    """Read what recipes after a snapshot bring back: entries of any age, in no prompt before."""
    for entry in entries:
        recipe = entry.what.blocks if isinstance(entry.what, ModelAsked | EpochOpened) else ()
        for pick in recipe:
            if pick.form == "recalled" and pick.first <= pick.last and pick.first not in prompts.known:
                for each in await read_entries(store, run, pick.first - 1, min(pick.last, entry.position)):
                    if type(each.what) in MODEL_VISIBLE:
                        prompts.known[each.position] = each


async def _from_snapshot(store: Store, run: str) -> Restored | None:
    snapshot = await store.cache.load(run, SNAPSHOT_NAME, VIEW_VERSION)
    if snapshot is None:
        return None
    try:
        plain: Json = canonical.decode(snapshot.text)
        view = view_from_plain(plain["view"])
        knowledge = knowledge_from_plain(plain["knowledge"])
        entries: list[Entry] = []
        for first, last in cursor_ranges(plain["cursor"]):
            entries.extend(await read_entries(store, run, first - 1, last))
        prompts = from_cursor(plain["cursor"], entries)
    except (NotCanonical, Damaged, KeyError, TypeError, ValueError):
        return None  # A snapshot is a cache: one that cannot be read is as good as none.
    if prompts.faults or not view.position == knowledge.position == snapshot.position:
        return None
    # The prompt is of the agent it was made for; the next epoch is of the agent declared since.
    prompts.declaration = view.declaration
    return Restored(view, prompts, knowledge)
