"""`shiftbook explain`: what each block of a turn's prompt was made of, and what was left out and why."""

from __future__ import annotations

import asyncio

from shiftbook.cli.options import Db, Json, Last, RunId, Turn, Verbose
from shiftbook.cli.output import data, line, note
from shiftbook.cli.places import journal, run_meant
from shiftbook.views import ExplainView, explain_view, one_line

ENTRIES_SHOWN = 6
LINE_CHARS = 160


def command(
    run: RunId = None,
    turn: Turn = None,
    last: Last = False,
    db: Db = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Explain the prompt of a turn: every block's entries, form and tokens, and what was left out and why."""
    view = asyncio.run(_explain(run, last, turn, db))
    if json:
        data(view)
    else:
        _tell(view)


async def _explain(run: str | None, last: bool, turn: int | None, db: str | None) -> ExplainView:
    async with journal(db, read_only=True) as store:
        return await explain_view(store, await run_meant(store, run, last), turn)


def _tell(view: ExplainView) -> None:
    bound = "at most " if view["meter"] == "bytes" else ""
    note(
        f"turn {view['turn']}: {bound}{view['tokens']:,} tokens of {view['cap']:,}, policy {view['policy']}, "
        f"epoch {view['epoch']}, opened by entry {view['opened']}: {view['reason']}"
    )
    if view["numbers"]:
        line("decided by: " + ", ".join(f"{name} {value:,}" for name, value in view["numbers"].items()))
    line(f"{view['fixed']:>8,}  instructions and tools")
    for block in view["blocks"]:
        kept = "" if block["kept"] is None else f", within {block['kept']:,} characters"
        entries = _entries(block["entries"])
        line(f"{block['tokens']:>8,}  {block['kind']} ({block['form']}{kept}) of {entries}")
    if (report := view["report"]) is not None:
        asked = ""
        if report["requests"]:
            read = "" if report["read"] is None else f", {report['read']:.0%} of them read from the cache"
            asked = f", asked in {report['requests']} of {report['tokens']:,} tokens{read}"
        line(
            f"report: entry {report['entry']} on {report['first']} to {report['last']}, "
            f"{report['lines']} lines, by {one_line(report['writer'], LINE_CHARS)}{asked}"
        )
    for back in view["recalled"]:
        line(
            f"brought back by entry {back['at']} for a {back['asked_by']}: {back['shown']:,} entries within "
            f"{back['room']:,} tokens; others are worth less for a token, or stand here already"
        )
    for left in view["left_out"]:
        line(f"left out: {left['entries']:,} of entries {left['first']} to {left['last']}: {left['why']}")
    for told in view["warnings"]:
        line(f"warned: {one_line(told, LINE_CHARS)}")
    for told in view["struck"]:
        line(f"struck from the report: {one_line(told, LINE_CHARS)}")


def _entries(positions: list[int]) -> str:
    if len(positions) <= ENTRIES_SHOWN:
        named = ", ".join(map(str, positions))
        return f"entry {named}" if len(positions) == 1 else f"entries {named}"
    return f"{len(positions):,} entries from {positions[0]} to {positions[-1]}"
