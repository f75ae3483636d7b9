"""What a prompt costs to build, by the run's length; `python -m benchmarks.prompts [ENTRIES ...]`.

A made-up run: a message in every tenth turn, a reply with a call and a result of a kilobyte in each, a fact
and a tally in every fifth. What stands is folded over the whole run, as the engine does it entry by entry;
each policy then lives the next turns, without a database, through some ten rebuilds. Printed for each length
and policy, in CPU milliseconds and as a ratio to the shortest run: the median of a turn that extends the
prompt and of one that rebuilds it, the report by rule included; and of the folding, microseconds an entry.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator
from itertools import islice

from benchmarks.workload import result_text
from shiftbook.entries import (
    MODEL_VISIBLE,
    ActionFinished,
    Entry,
    ModelAnswered,
    PersonSaid,
    StatementMade,
    TallyChanged,
    What,
)
from shiftbook.messages import Call, Text
from shiftbook.policies import decide, policy_named
from shiftbook.projections.knowledge import (
    Knowledge,
    knowledge_from_plain,
    knowledge_to_plain,
    learn,
    needed,
)
from shiftbook.prompt.brief import BRIEF_KINDS
from shiftbook.prompt.epoch import Full, Growth, Rebuild, WantRecall, WantReport
from shiftbook.prompt.grow import adopt, first_prompt, grow, new_epoch
from shiftbook.prompt.measure import Gauge
from shiftbook.prompt.report import by_rule

LENGTHS = (1_000, 10_000, 100_000, 1_000_000)
POLICIES = ("window", "masking", "notes", "journal")
CAP, MARK = 40_000, 16_000
TURNS_LIVED = 320
"""Of each run so many turns are lived through the policy: some ten rebuilds."""


def main() -> int:
    """Measure each length that was asked for, the shorter ones as beginnings of the longest."""
    lengths = sorted(int(word) for word in sys.argv[1:]) or LENGTHS
    first: dict[str, dict[str, float]] = {}
    made, knowledge, position, folded = turns(), Knowledge(), 0, 0.0
    for length in lengths:
        began = time.process_time()
        while position < length:
            for entry in entries_of(next(made), position):
                learn(knowledge, entry)
                position = entry.position
        folded += time.process_time() - began
        plain, coming = knowledge_to_plain(knowledge), list(islice(turns(position), TURNS_LIVED))
        for policy in POLICIES:
            extends, rebuilds = lived(policy, coming, position, knowledge_from_plain(plain))
            figures = {
                "fold_us": folded / position * 1e6,
                "extend_ms": statistics.median(extends),
                "rebuild_ms": statistics.median(rebuilds),
            }
            base = first.setdefault(policy, figures)
            ratios = {f"{name}_ratio": round(value / base[name], 2) for name, value in figures.items()}
            row = {name: round(value, 3) for name, value in figures.items()}
            told = {"entries": position, "policy": policy, **row, **ratios, "rebuilds": len(rebuilds)}
            print(json.dumps(told), flush=True)
    return 0


def lived(
    policy: str, coming: list[list[What]], position: int, knowledge: Knowledge
) -> tuple[list[float], list[float]]:
    """CPU milliseconds of each turn that extended the prompt and of each that rebuilt it."""
    gauge = Gauge("Look up every item.", ())
    gauge.use("o200k")
    prompt = first_prompt("d", gauge)
    chooses = policy_named(policy)
    extends: list[float] = []
    rebuilds: list[float] = []
    for whats in coming:
        entries = entries_of(whats, position)
        position = entries[-1].position
        for entry in entries:
            learn(knowledge, entry)
        fresh = [entry for entry in entries if type(entry.what) in MODEL_VISIBLE]
        began = time.process_time()
        while True:
            choice = decide(chooses, prompt, fresh, gauge, cap=CAP, mark=MARK, knowledge=knowledge)
            if not isinstance(choice, WantReport):
                break
            position += 1
            fresh.append(Entry(position, 0, 1, by_rule(choice, gauge.measure)[0]))
        assert not isinstance(choice, Full | WantRecall)
        growth: Growth
        if isinstance(choice, Rebuild):
            known = [*needed(knowledge, BRIEF_KINDS.values()), *fresh]
            growth = new_epoch(prompt, choice, prompt.epoch + 1, "d", known, gauge)
        else:
            growth = grow(prompt, choice.picks, fresh, gauge, choice.made)
        (rebuilds if isinstance(choice, Rebuild) else extends).append((time.process_time() - began) * 1_000)
        adopt(prompt, growth)
    return extends, rebuilds


def turns(number: int = 0) -> Iterator[list[What]]:
    """The run, a turn at a time, always the same, behind turn `number`."""
    while True:
        number += 1
        call = Call(f"{number}.1", "lookup", {"q": f"item-{number}", "path": f"yard/list_{number % 500}.txt"})
        whats: list[What] = []
        if number % 10 == 1:
            whats.append(PersonSaid((Text(f"Please go through the next ten items of list {number // 10}."),)))
        whats.append(ModelAnswered(number, (Text(f"Step {number}: I look up item {number}."), call), "calls"))
        whats.append(ActionFinished(call.id, "done", (Text(result_text(number)),)))
        if number % 5 == 0:
            whats.append(StatementMade(f"item {number % 50}", number, "fact", "tool"))
            whats.append(TallyChanged("seen", "set", number, "tool"))
        yield whats


def entries_of(whats: list[What], position: int) -> list[Entry]:
    """A turn's entries behind a position."""
    return [Entry(position + n, 1_000, 1, what) for n, what in enumerate(whats, 1)]


if __name__ == "__main__":
    sys.exit(main())
