"""How a run ended: the figures on stdout for a script, a line and what to do next on stderr for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from shiftbook.cli.drive import EXIT_CODES, INTERRUPTED, drive
from shiftbook.cli.live import Live
from shiftbook.cli.output import data, line
from shiftbook.cli.words import count, ours, without_password
from shiftbook.journal.promises import Store
from shiftbook.messages import Json
from shiftbook.run.loop import Run
from shiftbook.views import OwnRequests, RunFigures, run_figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How to tell of a run's end; `more` gives fields beside the figures, `notes` lines for people.

    Where the figures are what the verb is for, they go to stdout.
    """

    db: str | None
    json: bool
    figures_are_data: bool = False
    own: OwnRequests | None = None
    """Takes the run's requests through a cache model, where no provider billed them."""
    more: Callable[[RunFigures], Mapping[str, Json]] = lambda figures: {}
    notes: Callable[[RunFigures], Sequence[str]] = lambda figures: ()


async def see_through(store: Store, handle: Run, live: Live, ending: Ending) -> int:
    """Drive the run until it rests, tell how it ended, and give the exit code."""
    rested = await drive(handle, live)
    figures = await run_figures(store, handle.id, own=ending.own)
    code = EXIT_CODES[figures["state"]] if rested else INTERRUPTED
    if ending.json:
        data({**figures, **ending.more(figures)})
    tell = line if ending.figures_are_data and not ending.json else live.note
    tell(_told(figures, rested))
    for each in ending.notes(figures):
        tell(each)
    if hint := _hint(figures, rested, ending.db):
        live.note(hint)
    return code


def _told(figures: RunFigures, rested: bool) -> str:
    parts = [
        f"run {figures['run']} {figures['state'] if rested else 'was cut off'}",
        count(figures["turns"], "turn"),
        count(figures["actions"], "action"),
    ]
    median, most = figures["prompt_tokens"]["median"], figures["prompt_tokens"]["max"]
    if median is not None and most is not None:
        parts.append(f"prompt tokens {median:,} median, {most:,} max")
    if (cached := figures["cached_share"]) is not None:
        parts.append(f"{cached:.1%} cached")
    if (cost := figures["cost"]) is not None:
        parts.append(f"${cost:,.2f}" if cost >= 0.01 else f"${cost:,.6f}")
    if figures["cut_off"]:
        parts.append(count(figures["cut_off"], "action") + " cut off")
    return " | ".join(parts)


def _hint(figures: RunFigures, rested: bool, db: str | None) -> str:
    place = [] if db is None else ["--db", without_password(db)]
    again = ours("resume", figures["run"], *place)
    state = figures["state"] if rested else "running"
    if state == "waiting":
        send = ours("send", figures["run"], "TEXT", *place)
        return f"It waits for a person: {send} and then {again}"
    if state == "limited":
        raised = "raise it (the cap by --cap, any other in the agent's Limits)"
        return f"A limit was reached: {raised} and go on with {again}"
    if state == "failed":
        return f"The model could not be had: see to it and go on with {again}"
    return f"Go on with: {again}" if state in ("paused", "running", "cancelled") else ""
