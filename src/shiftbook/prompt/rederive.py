"""A run's prompts made again from its journal, and held against the digests that were written with them.

`verify` folds every entry and asks for the faults; a resume does the same, or starts from a cursor and
renders only the current epoch. Neither needs agent code, and without a gauge no tokenizer either. A
difference is a value that names the position, not an exception; the fold goes on from the written digest,
so that one difference is told once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shiftbook.entries import (
    MODEL_VISIBLE,
    AgentDeclared,
    Entry,
    EpochOpened,
    ModelAsked,
    Pick,
    Recipe,
    ReportAsked,
)
from shiftbook.errors import Damaged, NewerFormat
from shiftbook.messages import Json
from shiftbook.prompt.brief import BRIEF_FORMS, BRIEF_KINDS
from shiftbook.prompt.digest import start
from shiftbook.prompt.epoch import EpochPrompt, Growth
from shiftbook.prompt.grow import adopt, grow, opened
from shiftbook.prompt.measure import Gauge
from shiftbook.prompt.report_request import digested_request

CURSOR_VERSION = 3
"""Raised when a cursor changes its meaning: those of other versions are not read."""


@dataclass(frozen=True, slots=True)
class PromptFault:
    """At `position`, what the journal says of a prompt is not what comes of it."""

    position: int
    what: str


@dataclass(slots=True)
class Rederived:
    """The fold: after each entry, the prompt as the run had it, and every fault so far.

    `fresh` are the model-visible entries since the last request; `prompts` counts the requests that were
    made again. `prompt` is None before the first.
    """

    prompt: EpochPrompt | None = None
    fresh: list[Entry] = field(default_factory=list)
    faults: list[PromptFault] = field(default_factory=list)
    prompts: int = 0
    declaration: str = ""
    known: dict[int, Entry] = field(default_factory=dict)
    opening: tuple[int, EpochOpened] | None = None

    def take(self, entry: Entry) -> None:
        """Fold one entry."""
        what = entry.what
        if type(what) in MODEL_VISIBLE:
            self.known[entry.position] = entry
            self.fresh.append(entry)
        elif isinstance(what, AgentDeclared):
            self.declaration = what.declaration
        elif isinstance(what, EpochOpened):
            self.opening = (entry.position, what)
        elif isinstance(what, ModelAsked):
            self._ask(entry.position, what)
        elif isinstance(what, ReportAsked):
            self._report(entry.position, what)

    def _report(self, position: int, asked: ReportAsked) -> None:
        self.prompts += 1
        try:
            if asked.extends and self.prompt is None:
                raise Damaged("A report's request extends a prompt, but the model was never asked before.")
            before = start(self.declaration, asked.renderer)
            if asked.extends and self.prompt is not None:
                before = self.prompt.digest
            digest = digested_request(asked, self.known, before)
        except (Damaged, NewerFormat) as error:
            self.faults.append(PromptFault(position, str(error)))
            return
        if digest != asked.digest:
            what = f"the report's request has digest {asked.digest}, its entries give {digest}"
            self.faults.append(PromptFault(position, what))

    def _ask(self, position: int, asked: ModelAsked) -> None:
        self.prompts += 1
        try:
            growth = self._growth(asked)
        except (Damaged, NewerFormat) as error:
            self.faults.append(PromptFault(position, str(error)))
            return
        if growth.digest != asked.digest:
            what = (
                f"the prompt of turn {asked.turn} has digest {asked.digest}, its entries give {growth.digest}"
            )
            self.faults.append(PromptFault(position, what))
        prompt = self.prompt if self.prompt is not None else EpochPrompt(0, 0, "")
        adopt(prompt, growth)
        prompt.digest, prompt.tokens, prompt.meter = asked.digest, asked.tokens, asked.meter
        self.prompt = prompt
        self.fresh.clear()

    def _growth(self, asked: ModelAsked) -> Growth:
        if self.opening is not None:
            _, head = self.opening
            self.opening = None
            recipe = (*head.blocks, *asked.blocks)
            return opened(recipe, self.known, head.epoch, self.declaration, None, asked.renderer)
        if self.prompt is None:
            raise Damaged(f"Turn {asked.turn} asks the model before any epoch was opened.")
        if self.prompt.renderer != asked.renderer:
            raise Damaged(f"Turn {asked.turn} changes the renderer within an epoch.")
        picked = _picked(asked.blocks, self.known)
        return grow(self.prompt, asked.blocks, [*self.fresh, *picked], None)


def _picked(recipe: Recipe, known: Mapping[int, Entry]) -> list[Entry]:
    return [
        known[position]
        for pick in recipe
        if pick.form != "dropped"
        for position in range(pick.first, pick.last + 1)
        if position in known
    ]


def rederive(entries: Iterable[Entry], gauge: Gauge | None = None) -> Rederived:
    """Fold a run's entries, from the first on. With a gauge, what the last prompt holds is measured too.

    The gauge is put on the meter that the last request names.
    """
    fold = Rederived()
    for entry in entries:
        fold.take(entry)
    if gauge is not None and fold.prompt is not None:
        gauge.use(fold.prompt.meter)
        gauge.measure_again(fold.prompt)
    return fold


# --- cursors: enough of a prompt to make it again ------------------------------------------------------


def cursor(prompt: EpochPrompt, fresh: Iterable[Entry] = ()) -> dict[str, Json]:
    """The prompt as plain JSON for a snapshot: its recipe and its digest, and which entries it lacks yet."""
    folded = {at for block in prompt.blocks if block.kind in BRIEF_KINDS for at in block.entries}
    return {
        "version": CURSOR_VERSION,
        "epoch": prompt.epoch,
        "declaration": prompt.declaration,
        "renderer": prompt.renderer,
        "digest": prompt.digest,
        "tokens": prompt.tokens,
        "meter": prompt.meter,
        "upto": prompt.upto,
        "ends": [prompt.first_end, prompt.last_end],
        "picks": [[pick.first, pick.last, pick.form, pick.keep, list(pick.of)] for pick in prompt.picks],
        "folded": sorted(folded),
        "fresh": [entry.position for entry in fresh],
    }


def cursor_ranges(plain: Mapping[str, Json]) -> list[tuple[int, int]]:
    """The ranges of positions whose entries `from_cursor` needs, as they come in the prompt."""
    apart = {"dropped", *BRIEF_FORMS}
    picked = [(first, last) for first, last, form, *_ in plain["picks"] if form not in apart]
    named = [position for *_, of in plain["picks"] for position in of]
    single = [*plain["folded"], *named, *plain["fresh"]]
    return [*picked, *((position, position) for position in single)]


def from_cursor(plain: Mapping[str, Json], entries: Iterable[Entry], gauge: Gauge | None = None) -> Rederived:
    """The prompt again, from a cursor and the entries in its ranges; O(prompt), whatever the journal holds.

    A cursor that does not fit the entries gives a fault and no prompt: drop the snapshot and `rederive`.
    """
    known = {entry.position: entry for entry in entries if type(entry.what) in MODEL_VISIBLE}
    fold = Rederived(declaration=str(plain["declaration"]), known=known)
    at = int(plain["upto"])
    if plain["version"] != CURSOR_VERSION:
        fold.faults.append(PromptFault(at, f"the cursor has version {plain['version']}"))
        return fold
    recipe = tuple(Pick(first, last, form, keep, tuple(of)) for first, last, form, keep, of in plain["picks"])
    fresh = list(plain["fresh"])
    try:
        if missing := [position for position in fresh if position not in known]:
            raise Damaged(f"Entry {missing[0]} is not there.")
        growth = opened(
            recipe, known, int(plain["epoch"]), fold.declaration, gauge=None, version=int(plain["renderer"])
        )
    except (Damaged, NewerFormat) as error:
        fold.faults.append(PromptFault(at, str(error)))
        return fold
    if growth.digest != plain["digest"]:
        fold.faults.append(PromptFault(at, f"the cursor's digest is {plain['digest']}, not {growth.digest}"))
        return fold
    prompt = EpochPrompt(0, 0, "")
    adopt(prompt, growth)
    prompt.tokens, prompt.meter, prompt.upto = int(plain["tokens"]), str(plain["meter"]), at
    prompt.first_end, prompt.last_end = plain["ends"]
    fold.prompt = prompt
    fold.fresh = [known[position] for position in fresh]
    if gauge is not None:
        gauge.use(prompt.meter)
        gauge.measure_again(prompt)
    return fold
