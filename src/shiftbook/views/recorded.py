"""Our own journal among the formats that can be measured: one session a run, one row a model request.

It stands here, not with the other readers, because a journal is read by its store: a format of ours needs
no second reader. A turn's usage is what its provider reported. Where that is missing the row is estimated:
the prompt's tokens by our own exact meter; a bound in bytes that the journal may hold instead is no size. A
rebuilt prompt is marked as a compaction, with the engine's reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from shiftbook.entries import EpochOpened, ModelAnswered, ModelAsked, ModelInterrupted
from shiftbook.errors import SessionUnreadable, ShiftbookError
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Store
from shiftbook.messages import Usage
from shiftbook.sessions.format import Format
from shiftbook.sessions.formats import FORMATS
from shiftbook.sessions.normal import RecordedUsage
from shiftbook.sessions.requests import RecordedRequests
from shiftbook.sessions.rows import RowDraft, Seen, recorded
from shiftbook.sessions.source import Source
from shiftbook.sessions.streaming import Faults
from shiftbook.views.figures import PromptSizes
from shiftbook.views.rows import entries_of

NAME = "shiftbook"

_COLUMNS = {"id", "kind", "version", "at_ms", "epoch", "salt", "payload", "head"}
_PAGE = 100


def recognise(sample: Sequence[Mapping[str, object]]) -> bool:
    """The tables of our own database."""
    return any(
        isinstance(columns, list) and set(columns) >= _COLUMNS and "leases" in names
        for names in sample
        for columns in (names.get("entries"),)
    )


def requests(source: Source, seen: Seen) -> Iterator[RecordedRequests]:
    """One session a run, oldest first. Not to be called from a running event loop."""
    with asyncio.Runner() as runner:
        try:
            store = runner.run(open_store(source.path, create=False, read_only=True))
        except ShiftbookError as problem:
            raise SessionUnreadable(
                source.path, 0, f"is a journal that cannot be opened: {problem}"
            ) from None
        try:
            for run in reversed(runner.run(_runs(store))):
                yield runner.run(_run(store, source.path, run))
        finally:
            runner.run(store.close())


async def _runs(store: Store) -> list[str]:
    found: list[str] = []
    while True:
        page = await store.catalogue.runs(after=found[-1] if found else None, limit=_PAGE)
        found += [row.run for row in page]
        if len(page) < _PAGE:
            return found


async def _run(store: Store, path: str, run: str) -> RecordedRequests:
    draft = RowDraft(NAME, path, run, Faults())
    sizes = PromptSizes(store, run)
    ours: int | None = None
    before: int | None = None
    try:
        async for entry in entries_of(store, run):
            await sizes.take(entry)
            what = entry.what
            if isinstance(what, EpochOpened) and before is not None:
                draft.mark("compaction", entry.position, at_ms=entry.at_ms, tokens=before, by=what.reason)
            elif isinstance(what, ModelAsked):
                ours = before = sizes.requests[-1]
            elif isinstance(what, (ModelAnswered, ModelInterrupted)):
                usage = what.usage if isinstance(what, ModelAnswered) else Usage()
                told = usage != Usage()
                before = usage.prompt if told else ours
                draft.row(
                    recorded(usage, undivided=usage.prompt) if told else RecordedUsage(undivided=ours),
                    entry.position,
                    at_ms=entry.at_ms,
                    model=what.model if isinstance(what, ModelAnswered) else None,
                    request=f"{run}/{what.turn}",
                    source=None if told or ours is None else "estimated",
                )
    except ShiftbookError as problem:
        draft.faults.add(0, f"the run cannot be read further: {problem}")
    return draft.closed()


JOURNAL = Format(
    name=NAME,
    title="a Shiftbook journal",
    recognise=recognise,
    requests=requests,
    container="sqlite",
)
MEASURED: tuple[Format, ...] = (*FORMATS, JOURNAL)
"""Every format that can be measured."""
