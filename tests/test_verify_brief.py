"""A prompt that begins with a brief is made again from what stands, without reading the journal again."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from shiftbook.entries import (
    AgentDeclared,
    Entry,
    EpochOpened,
    ModelAsked,
    PersonSaid,
    Pick,
    RuleSet,
    RunOpened,
    StatementMade,
    TallyChanged,
    What,
)
from shiftbook.journal.promises import Store
from shiftbook.messages import Text
from shiftbook.prompt.brief import BRIEF_KINDS
from shiftbook.prompt.grow import opened
from shiftbook.verify.prompts import Prompts


def journal(rebuilds: int) -> list[Entry]:
    """Rebuilds with a brief over everything before, tallies and statements between them."""
    entries: list[Entry] = []

    def happen(what: What) -> None:
        entries.append(Entry(len(entries) + 1, 1_000, 1, what))

    happen(RunOpened("run", "a", "0"))
    happen(AgentDeclared("a", "d" * 64, "m", "journal", 9_000))
    happen(RuleSet("units", "Boxes.", "author"))
    happen(RuleSet("gone", "No more.", "person"))
    happen(RuleSet("gone", "No more.", "person", withdrawn=True))
    for number in range(1, rebuilds + 1):
        for each in range(20):
            happen(TallyChanged(f"t{each % 3}", "set" if each < 3 else "add", each, "observer"))
            happen(StatementMade(f"k{each % 5}", number * each, "fact", "model"))
        happen(PersonSaid((Text(f"Message {number}."),)))
        last = len(entries)
        head = tuple(Pick(1, last, form) for form in BRIEF_KINDS)
        recipe = (*head, Pick(last, last))
        known = {entry.position: entry for entry in entries}
        digest = opened(recipe, known, number, "d" * 64, None).digest
        happen(EpochOpened(number, "the cap is near", head))
        happen(ModelAsked(number, (Pick(last, last),), digest, 1, "m"))
    return entries


class Counted:
    """A store that is asked for nothing but what it counts."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = self
        self.reads = 0

    async def read(self, run: str, after: int, limit: int) -> list[Any]:
        self.reads += 1
        return []


def test_p7_a_brief_over_the_whole_run_is_checked_from_what_stands() -> None:
    entries = journal(6)
    store = Counted(entries)

    async def main() -> tuple[list[Any], int]:
        prompts = Prompts(cast(Store, store), "run")
        faults: list[Any] = []
        held = 0
        for entry in entries:
            faults += await prompts.take(entry)
            held = max(held, prompts.held)
        assert prompts.count == 6
        return faults, held

    faults, held = asyncio.run(main())
    assert faults == []
    assert store.reads == 0
    assert held < len(entries) / 2


def test_p7_a_brief_that_does_not_say_what_stands_is_a_fault() -> None:
    entries = journal(3)
    at = next(n for n, entry in enumerate(entries) if isinstance(entry.what, TallyChanged) and n > 60)
    changed = entries[at].what
    assert isinstance(changed, TallyChanged)
    lie = TallyChanged(changed.key, "set", 999_999, changed.origin)
    entries[at] = Entry(entries[at].position, 1_000, 1, lie)

    async def main() -> list[Any]:
        prompts = Prompts(cast(Store, Counted(entries)), "run")
        return [fault for entry in entries for fault in await prompts.take(entry)]

    assert [fault.position for fault in asyncio.run(main())] == [
        entry.position for entry in entries[at:] if isinstance(entry.what, ModelAsked)
    ][:1]
