"""A prompt that begins with a brief is made again from what stands, without reading the journal again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from shiftbook.entries import (
    ActionFinished,
    AgentDeclared,
    Entry,
    EpochOpened,
    ModelAnswered,
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
from shiftbook.messages import Call, Text
from shiftbook.projections.knowledge import learn_all
from shiftbook.prompt.brief import BRIEF_KINDS
from shiftbook.prompt.grow import opened
from shiftbook.prompt.pending import pending_pick
from shiftbook.verify.prompts import Prompts


def journal(rebuilds: int, change: Callable[[Pick], Pick] = lambda pick: pick) -> list[Entry]:
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
        happen(ModelAnswered(number, (Call(f"{number}.1", "pay", {"n": number}),), "calls"))
        happen(ActionFinished(f"{number}.1", "unknown", ()))
        last = len(entries)
        known = {entry.position: entry for entry in entries}
        pending = pending_pick(learn_all(entries).pending, last)
        assert pending is not None
        head = (*(Pick(1, last, form) for form in BRIEF_KINDS), change(pending))
        recipe = (*head, Pick(last - 2, last, "kept"))
        digest = opened(recipe, known, number, "d" * 64, None).digest
        happen(EpochOpened(number, "the cap is near", head))
        happen(ModelAsked(number, (Pick(last - 2, last, "kept"),), digest, 1, "m"))
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


def test_p5_a_brief_that_leaves_out_what_is_open_is_a_fault_though_its_bytes_are_right() -> None:
    def forgets(pick: Pick) -> Pick:
        return replace(pick, of=pick.of[3:]) if len(pick.of) > 6 else pick

    entries = journal(3, forgets)

    async def main() -> list[Any]:
        prompts = Prompts(cast(Store, Counted(entries)), "run")
        return [fault for entry in entries for fault in await prompts.take(entry)]

    faults = asyncio.run(main())
    opened_at = [entry.position for entry in entries if isinstance(entry.what, EpochOpened)]
    assert [fault.position for fault in faults] == opened_at[2:]
    assert "as open; those that are open are" in faults[0].what
