"""Which runs there are and how each stands, for `runs`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TypedDict

from shiftbook import canonical
from shiftbook.entries import State
from shiftbook.errors import Damaged, NewerFormat, NotCanonical
from shiftbook.journal.promises import RunRow, Store
from shiftbook.messages import Json
from shiftbook.projections.view import VIEW_VERSION, RunView, fold, view_from_plain
from shiftbook.run.restore import SNAPSHOT_NAME
from shiftbook.views.holding import Hold, hold_of
from shiftbook.views.reported import Prices, Reported
from shiftbook.views.rows import entries_of, stamp


class RunLine(TypedDict):
    """A run in a list. `tokens` are prompt and output tokens as its providers reported them.

    Of a running run `hold` says in whose hands it is (see `Hold`), and `holder` names the process that
    its lease names; of any other both are None. `opened` and `changed` are ISO 8601 in UTC. None is "not
    known", never zero: no report, no price, or a run whose entries cannot be read.
    """

    run: str
    agent: str
    state: State
    hold: Hold | None
    holder: str | None
    entries: int
    turns: int | None
    tokens: int | None
    cost: float | None
    tags: list[str]
    opened: str
    changed: str


async def runs_view(
    store: Store,
    *,
    state: State | None = None,
    tag: str | None = None,
    after: str | None = None,
    limit: int = 50,
    prices: Prices | None = None,
) -> list[RunLine]:
    """A page of runs, newest first; `after` is the last run of the page before.

    With `prices` each run is read from its first entry and priced as its providers reported it; without, the
    last snapshot and what came since are read, and the cost is None.
    """
    rows = await store.catalogue.runs(state=state, tag=tag, after=after, limit=limit)
    return [await _line(store, row, prices) for row in rows]


async def _line(store: Store, row: RunRow, prices: Prices | None) -> RunLine:
    turns, tokens, amount, agent = None, None, None, row.agent
    try:
        view = await standing_of(store, row.run)
        if prices is not None:
            amount = await _cost(store, row.run, prices)
    except (Damaged, NewerFormat):
        pass  # The list stays of use beside one run that cannot be read; verify tells what is wrong with it.
    else:
        turns, tokens = view.answers, _tokens(view)
        # A list that was written by an older release has the agent that the run began with.
        agent = view.agent or agent
    hold, holder = await _hold(store, row)
    return RunLine(
        run=row.run,
        agent=agent,
        state=row.state,
        hold=hold,
        holder=holder,
        entries=row.position,
        turns=turns,
        tokens=tokens,
        cost=None if amount is None else float(amount),
        tags=list(row.tags),
        opened=stamp(row.opened_ms),
        changed=stamp(row.changed_ms),
    )


async def _hold(store: Store, row: RunRow) -> tuple[Hold | None, str | None]:
    if row.state != "running":
        return None, None
    try:
        return await hold_of(store, row.run)
    except Damaged:
        return None, None


async def _cost(store: Store, run: str, prices: Prices) -> Decimal | None:
    reported = Reported(prices)
    async for entry in entries_of(store, run, 0):
        reported.take(entry)
    return reported.cost


def _tokens(view: RunView) -> int | None:
    prompt, output = view.used.prompt, view.used.output
    return None if prompt is None and output is None else (prompt or 0) + (output or 0)


async def standing_of(store: Store, run: str) -> RunView:
    """How a run stands, from its last snapshot and the entries since; the same without a snapshot."""
    view = await _snapshot(store, run) or RunView()
    async for entry in entries_of(store, run, view.position):
        fold(view, entry)
    return view


async def _snapshot(store: Store, run: str) -> RunView | None:
    snapshot = await store.cache.load(run, SNAPSHOT_NAME, VIEW_VERSION)
    if snapshot is None:
        return None
    try:
        plain: Mapping[str, Json] = canonical.decode(snapshot.text)  # type: ignore[assignment]
        view = view_from_plain(plain["view"])
    except (NotCanonical, KeyError, TypeError, ValueError):
        return None  # A snapshot is a cache: one that cannot be read is as good as none.
    return view if view.position == snapshot.position else None
