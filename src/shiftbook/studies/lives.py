"""A recorded session under a policy, and the prompts that would stand at its boundaries.

The session is rerun by the live engine in a store in memory, under a cap with room for the greatest size in
question below its mark. At a boundary the policy opens a new epoch down to each size as its mark, as it does
when an agent changes; where the newest turn alone passes that, the size is the cap as well. Nothing of that
is kept, the life goes on as if nobody had asked.
`transcript` drops nothing: of it a size holds the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shiftbook.entries import MODEL_VISIBLE, ActionFinished, Entry, ModelAnswered, ReportWritten
from shiftbook.journal.open import open_store
from shiftbook.messages import Block
from shiftbook.policies import policy_named
from shiftbook.projections.knowledge import Knowledge, learn, needed
from shiftbook.prompt.brief import BRIEF_KINDS
from shiftbook.prompt.epoch import Budget, EpochPrompt, Full, Rebuild, WantReport
from shiftbook.prompt.grow import new_epoch
from shiftbook.prompt.measure import Gauge
from shiftbook.prompt.rederive import Rederived
from shiftbook.prompt.render import render_entry
from shiftbook.prompt.report import by_rule
from shiftbook.rerun import Settings, rerun
from shiftbook.sessions import Session
from shiftbook.views import entries_of

MARK = (2, 5)
"""The mark of a life as a part of its cap: 40%, as runs have it by default."""

EVERYTHING = 100_000_000
"""A cap that no recording reaches."""

Held = Mapping[int, list[Block]]
"""The blocks of a prompt by the size it was made for."""


async def journal_of(session: Session, policy: str, largest: int) -> list[Entry]:
    """The entries of a rerun of the session under the policy, with `largest` tokens below its mark."""
    cap = EVERYTHING if policy == "transcript" else largest * MARK[1] // MARK[0]
    store = await open_store(f":memory:study {policy} {session.source}")
    try:
        made = await rerun(store, session, Settings(policy=policy, cap=cap))
        return [entry async for entry in entries_of(store, made.summary.run)]
    finally:
        await store.close()


def ends_of_turns(entries: Sequence[Entry]) -> list[int]:
    """For each turn the position at which its reply is there and all its calls are answered; 0 for turn 0."""
    ends = [0]
    for entry in entries:
        if isinstance(entry.what, ModelAnswered):
            ends.append(entry.position)
        elif isinstance(entry.what, ActionFinished):
            ends[-1] = entry.position
    return ends


def held_at(
    entries: Sequence[Entry], policy: str, turns: Sequence[int], sizes: Sequence[Sequence[int]], gauge: Gauge
) -> Iterator[Held]:
    """The prompts after each of `turns`, rising, one for each of the sizes that belong to it."""
    fold, knowledge = Rederived(), Knowledge()
    ends = ends_of_turns(entries)
    at = 0
    for turn, wanted in zip(turns, sizes, strict=True):
        end = ends[min(turn, len(ends) - 1)]
        while at < end:
            fold.take(entries[at])
            learn(knowledge, entries[at])
            at += 1
        yield {size: _blocks(fold, knowledge, policy, entries[:end], size, gauge) for size in wanted}


def _blocks(
    fold: Rederived, knowledge: Knowledge, policy: str, entries: Sequence[Entry], size: int, gauge: Gauge
) -> list[Block]:
    if policy == "transcript":
        return list(_first_blocks(entries, size, gauge))
    prompt = fold.prompt if fold.prompt is not None else EpochPrompt(0, 0, "")
    gauge.measure_again(prompt)
    blocks: list[Block] = []
    for cap in (size * MARK[1] // MARK[0], size):
        budget = Budget(cap, size, gauge.measure, None, knowledge)
        blocks = _rebuilt(prompt, fold.fresh, knowledge, policy, budget)
        if gauge.fixed + sum(map(gauge.measure, blocks)) <= size:
            break
    return blocks


def _rebuilt(
    prompt: EpochPrompt, seen: Sequence[Entry], knowledge: Knowledge, policy: str, budget: Budget
) -> list[Block]:
    fresh = list(seen)
    while True:
        choice = policy_named(policy).reopen(prompt, fresh, budget, "a size is studied")
        if not isinstance(choice, WantReport):
            break
        report, *_ = by_rule(choice, budget.measure, sorted({key for key, _ in knowledge.tallies}))
        assert isinstance(report, ReportWritten)
        last = max([prompt.upto, *(entry.position for entry in fresh)])
        fresh.append(Entry(last + 1, fresh[-1].at_ms if fresh else 0, 1, report))
    if isinstance(choice, Full):
        return []
    assert isinstance(choice, Rebuild)
    known = [*needed(knowledge, BRIEF_KINDS.values()), *fresh]
    return list(new_epoch(prompt, choice, prompt.epoch + 1, "", known, None).blocks)


def _first_blocks(entries: Sequence[Entry], size: int, gauge: Gauge) -> Iterator[Block]:
    left = size - gauge.fixed
    for entry in entries:
        if type(entry.what) in MODEL_VISIBLE:
            for block in render_entry(entry):
                left -= gauge.measure(block)
                if left < 0:
                    return
                yield block
