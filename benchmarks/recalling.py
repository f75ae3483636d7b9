"""What a message costs that brings older entries back, by the run's length.

`python -m benchmarks.recalling [ENTRIES ...]`. A made-up chat in a file on disk, its search index filled: a
person's message of 25 words, a reply of 120, and so on. The policy `journal` has rebuilt its prompt and gets
messages of 6 to 12 words, common and rare mixed, each asked of the same prompt: as an agent that converses
(up to 20,000 tokens come back under a cap of 22,000) and as one that works (up to 600). Printed: medians in
CPU milliseconds of the looking (search, ranking, reading what may fit, packing), of reading what was found,
and of everything else from the message to the grown prompt, the tokenizer included; of all together also the
wall, and the ratio to the shortest run. On a busy machine believe the CPU.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

from benchmarks.recall import Words
from shiftbook.clock import this_process
from shiftbook.codec import draft, genesis, seal
from shiftbook.entries import Entry, ModelAnswered, PersonSaid, What
from shiftbook.journal.index import fill
from shiftbook.journal.open import open_index, open_store
from shiftbook.journal.promises import Commit, Store
from shiftbook.messages import Text
from shiftbook.policies import decide, policy_named
from shiftbook.prompt.epoch import EpochPrompt, Extend, Full, Rebuild, RecallRoom, WantRecall, WantReport
from shiftbook.prompt.grow import adopt, first_prompt, grow, new_epoch
from shiftbook.prompt.measure import Gauge
from shiftbook.prompt.recall import recalled
from shiftbook.prompt.recall_question import CONVERSING, WORKING
from shiftbook.prompt.report import by_rule
from shiftbook.run.book import read_entries
from shiftbook.run.indexing import RunIndex

LENGTHS = (1_000, 10_000, 100_000)
CAP, MARK = 22_000, 8_800
RUN = "run"
QUESTIONS = 30
COMMIT_ENTRIES = 2_000
NEWEST = 60
"""Entries from which the prompt is rebuilt before the messages come: more than the mark holds."""


def main() -> int:
    """Measure each length that was asked for."""
    first: dict[str, float] = {}
    for entries in [int(word) for word in sys.argv[1:]] or LENGTHS:
        for told in asyncio.run(_measured(entries)):
            base = first.setdefault(str(told["agent"]), float(told["all_ms"]))
            print(json.dumps({**told, "all_ratio": round(float(told["all_ms"]) / base, 2)}), flush=True)
    return 0


async def _measured(entries: int) -> list[dict[str, float | str]]:
    words = Words()
    with tempfile.TemporaryDirectory() as folder:
        store = await open_store(str(Path(folder) / "run.db"))
        await _chat(store, entries, words)
        index = open_index(store)
        assert index is not None
        while await fill(index, store, RUN):
            pass
        await index.close()
        asked = RunIndex(store, RUN, _refuse)
        rows = [
            await _told(name, room, store, asked, entries, words)
            for name, room in (("converses", CONVERSING), ("works", WORKING))
        ]
        await asked.close()
        await store.close()
    return rows


def _refuse(what: str, why: str) -> None:
    raise AssertionError(f"{what}: {why}")


async def _chat(store: Store, entries: int, words: Words) -> None:
    """A run of so many entries."""
    lease = await store.leases.take(RUN, this_process(), 600_000, new=True)
    made, head = words.chat(), genesis(RUN)
    for after in range(0, entries, COMMIT_ENTRIES):
        whats = [_what(text, n) for n, text in enumerate(islice(made, min(COMMIT_ENTRIES, entries - after)))]
        sealed = seal(
            [draft(what) for what in whats],
            after=after,
            head=head,
            at_ms=[1_000] * len(whats),
            epoch=lease.epoch,
            token=bytes,
        )
        await store.entries.append(Commit(RUN, after, lease.epoch, sealed.rows, sealed.blobs))
        head = sealed.head


def _what(text: str, number: int) -> What:
    return ModelAnswered(1, (Text(text),), "end") if number % 2 else PersonSaid((Text(text),))


@dataclass(slots=True)
class _Costs:
    """CPU milliseconds of one message."""

    look: float = 0.0
    read: float = 0.0
    whole: float = 0.0
    wall: float = 0.0
    back: int = 0
    tokens: int = 0


async def _told(
    name: str, room: RecallRoom, store: Store, index: RunIndex, entries: int, words: Words
) -> dict[str, float | str]:
    newest = await read_entries(store, RUN, entries - NEWEST)
    costs: list[_Costs] = []
    for number in range(QUESTIONS):
        gauge = Gauge("Talk with the person.", ())
        gauge.use("o200k")
        prompt = first_prompt("d", gauge)
        await _lived(prompt, newest[:-2], gauge, RecallRoom(), store, index)
        await _lived(prompt, newest[-2:], gauge, RecallRoom(), store, index, "the cap is near")
        message = PersonSaid((Text(words.query(Random(number))),))
        costs.append(await _lived(prompt, [Entry(entries + 1, 1_000, 1, message)], gauge, room, store, index))
    middle = {
        f"{kind}_ms": round(statistics.median(getattr(each, kind) for each in costs), 1)
        for kind in ("look", "read")
    }
    rest = statistics.median(each.whole - each.look - each.read for each in costs)
    return {
        "entries": entries,
        "agent": name,
        "brought_back": statistics.median(each.back for each in costs),
        "prompt_tokens": statistics.median(each.tokens for each in costs),
        **middle,
        "build_ms": round(rest, 1),
        "all_ms": round(statistics.median(each.whole for each in costs), 1),
        "all_wall_ms": round(statistics.median(each.wall for each in costs), 1),
    }


async def _lived(
    prompt: EpochPrompt,
    fresh: list[Entry],
    gauge: Gauge,
    room: RecallRoom,
    store: Store,
    index: RunIndex,
    reason: str | None = None,
) -> _Costs:
    """The prompt takes in what is fresh, as the engine does it, without the commits."""
    costs, brought, fresh = _Costs(), dict[int, Entry](), list(fresh)
    policy = policy_named("journal")
    began, at = time.process_time(), time.perf_counter()
    while True:
        choice = decide(
            policy, prompt, fresh, gauge, cap=CAP, mark=MARK, reason=reason, recall=room, brought=brought
        )
        if isinstance(choice, WantReport):
            fresh.append(Entry(fresh[-1].position + 1, 0, 1, by_rule(choice, gauge.measure)[0]))
        elif isinstance(choice, WantRecall):
            before = time.process_time()
            what = recalled(choice, await index.recall(choice, gauge.measure))
            found = time.process_time()
            for position in what.found:
                brought.update(
                    {e.position: e for e in await read_entries(store, RUN, position - 1, position)}
                )
            fresh.append(Entry(fresh[-1].position + 1, 0, 1, what))
            costs.back = len(what.found)
            costs.look += (found - before) * 1_000
            costs.read += (time.process_time() - found) * 1_000
        else:
            break
    _grown(prompt, choice, [*fresh, *brought.values()], gauge)
    costs.whole = (time.process_time() - began) * 1_000
    costs.wall = (time.perf_counter() - at) * 1_000
    costs.tokens = prompt.tokens
    return costs


def _grown(prompt: EpochPrompt, choice: Extend | Rebuild | Full, known: list[Entry], gauge: Gauge) -> None:
    assert not isinstance(choice, Full)
    if isinstance(choice, Rebuild):
        adopt(prompt, new_epoch(prompt, choice, prompt.epoch + 1, "d", known, gauge))
    else:
        adopt(prompt, grow(prompt, choice.picks, known, gauge))


if __name__ == "__main__":
    sys.exit(main())
