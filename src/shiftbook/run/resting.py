"""Coming to rest: what the journal says when nothing is left to do for now, or a limit is reached."""

from __future__ import annotations

from shiftbook.entries import LimitReached, RunRested
from shiftbook.run.desk import Desk
from shiftbook.run.step import Rest, Stop


async def rest(desk: Desk, act: Stop | Rest) -> bool:
    """Rest, unless a message came in the meantime; True when the run rests."""
    if isinstance(act, Stop):
        desk.note(LimitReached(act.limit, act.value, act.allowed))
        desk.note(RunRested("limited", f"{act.limit}: {act.why}" if act.why else act.limit))
        await desk.book.commit()
        return True
    rested = RunRested(act.state, act.why)
    if act.state not in ("finished", "waiting"):
        desk.note(rested)
        await desk.book.commit()
        return True
    entries = await desk.book.commit_unless_mail([rested])
    if entries is None:
        desk.mail = True
        return False
    for entry in entries:
        desk.take(entry)
    return True
