"""Golden journals: what each release wrote, kept for ever, and what came of it.

`python -m tests.golden` makes those of the release at hand under `tests/journals/`, as exports with the view,
the figures and the prompt digests beside them, and notes their hashes. A folder whose release is out is never
made again and never edited: `tests/test_golden.py` holds every later release to it.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from shiftbook import Store, canonical, open_store, post, start
from shiftbook._version import VERSION
from shiftbook.codec import draft, seal
from shiftbook.entries import (
    LimitReached,
    LineStruck,
    ModelAsked,
    PlanChanged,
    PlanItem,
    Recalled,
    ReportAnswered,
    ReportAsked,
    ReportFailed,
    ReportLine,
    ReportWritten,
    RuleSet,
    RunEnded,
    StatementMade,
    TallyChanged,
    Warned,
    What,
)
from shiftbook.journal.promises import Commit
from shiftbook.messages import Text, Usage
from shiftbook.projections.view import view_to_plain
from shiftbook.prompt.report_request import digested_request
from shiftbook.providers.scripted import call, say
from shiftbook.testing.clock import SimulatedClock
from shiftbook.testing.ground import elsewhere
from shiftbook.transfer import export_run
from shiftbook.views import entries_of, run_figures, standing_of
from tests import records

JOURNALS = Path(__file__).parent / "journals"
HASHES = JOURNALS / "SHA256SUMS"
FOLDER = JOURNALS / VERSION.rpartition(".")[0]

REST: Sequence[What] = (
    RuleSet("units", "Boxes, never pallets.", "author"),
    RuleSet("units", "Boxes, never pallets.", "person", withdrawn=True),
    StatementMade("gate", "closed", "fact", "tool", sources=(3,), about="yard"),
    StatementMade("gate", {"open": True, "by": b"\x00"}, "decision", "model", sources=(3,), supersedes=5),
    PlanChanged((PlanItem("1", "Count A", "done"), PlanItem("2", "Count B", "open")), "model", sources=(3,)),
    TallyChanged("boxes", "set", 7, "tool", place="A", sources=(3,)),
    TallyChanged("boxes", "add", Decimal("1.50"), "observer"),
    ReportAsked((3, 6), "scripted", 900, "", 1_200, "o200k", keep=40),
    ReportFailed(1, "overloaded", 1_767_348_000_000, 529, "[{"),
    ReportAnswered((Text('[{"text": "The gate is closed.", "cites": [3]}]'),), "end", Usage(output=3)),
    ReportWritten(1, 3, (ReportLine("The gate is closed.", (3, 5)),), "rule", Usage(output=3)),
    LineStruck(ReportLine("There are 9 boxes.", (3,)), "9 is in none of the entries that it cites"),
    Recalled("the gate", (5, 6), "model"),
    LimitReached("turns", 10, 10),
    Warned("reply cut", "The reply of turn 1 was cut at the output limit."),
    RunEnded("cancelled", "by a person"),
)
"""The kinds that no engine of this release writes by itself, and some that it seldom writes."""


async def warehouse(store: Store, clock: SimulatedClock) -> str:
    """Everything that the engine writes."""
    return await records.warehouse(store, clock, "warehouse")


async def open_call(store: Store, clock: SimulatedClock) -> str:
    """A process died in the middle of a call, and a message waits."""
    run = "open-call"
    script = [call("count", {"place": "A"}), say("One.")]
    async with await start(store, records.agent(script), "Count.", clock=clock, run=run):
        pass
    await records.die_in_a_call(store, run, clock, script)
    await post(store, run, "Well?", clock=clock)
    return run


async def every_kind(store: Store, clock: SimulatedClock) -> str:
    """A short run, and behind it an entry of each kind that it lacks."""
    run = "every-kind"
    script = [say("Nothing to do.")]
    async with await start(store, records.agent(script), "Hello.", clock=clock, run=run) as handle:
        await handle.finish()
    rest = [await with_digest(store, run, what) for what in REST]
    lease = await store.leases.take(run, elsewhere(), 1_000)
    head = await store.entries.head(run)
    sealed = seal(
        [draft(what) for what in rest],
        after=head.position,
        head=head.head,
        at_ms=[clock.now_ms()] * len(rest),
        epoch=lease.epoch,
        token=clock.token,
    )
    await store.entries.append(Commit(run, head.position, lease.epoch, sealed.rows, sealed.blobs))
    await store.leases.give_back(lease)
    return run


async def with_digest(store: Store, run: str, what: What) -> What:
    """A report's request with its digest, on the prompt of the run's last turn."""
    if not isinstance(what, ReportAsked):
        return what
    entries = {entry.position: entry async for entry in entries_of(store, run)}
    before = [entry.what.digest for entry in entries.values() if isinstance(entry.what, ModelAsked)]
    return replace(what, digest=digested_request(what, entries, before[-1]))


MAKERS = (warehouse, open_call, every_kind)


@asynccontextmanager
async def in_memory(clock: SimulatedClock, name: str) -> AsyncIterator[Store]:
    """An empty store that nobody else has."""
    store = await open_store(f":memory:golden {name}", clock=clock)
    try:
        yield store
    finally:
        await store.close()


async def told(store: Store, run: str) -> dict[str, Any]:
    """What comes of a journal: its kinds, its view, its figures and its prompts' digests."""
    entries = [entry async for entry in entries_of(store, run)]
    return {
        "kinds": [entry.kind for entry in entries],
        "view": view_to_plain(await standing_of(store, run)),
        "figures": await run_figures(store, run),
        "prompts": [entry.what.digest for entry in entries if isinstance(entry.what, ModelAsked)],
    }


async def made() -> dict[str, str]:
    """The files of this release's folder, by name."""
    files = {}
    for seed, make in enumerate(MAKERS):
        clock = SimulatedClock(seed)
        async with in_memory(clock, make.__name__) as store:
            run = await make(store, clock)
            files[f"{run}.jsonl"] = "".join([line async for line in export_run(store, run)])
            files[f"{run}.told.json"] = canonical.encode(await told(store, run)) + "\n"
    return files


def hashes() -> str:
    """A line for each file, as `sha256sum` writes and checks them."""
    files = sorted(path for path in JOURNALS.rglob("*.json*") if path.is_file())
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(JOURNALS).as_posix()}\n"
        for path in files
    ]
    return "".join(lines)


def main() -> None:
    """Make the folder of the release at hand; an earlier one is left alone."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in asyncio.run(made()).items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")
    HASHES.write_text(hashes(), encoding="utf-8", newline="\n")
    sys.stdout.write(f"{FOLDER.name}: {len(MAKERS)} journals\n")


if __name__ == "__main__":
    main()
