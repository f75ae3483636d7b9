"""Who has a run at work, told to people: a run that is `running` in the journal may be in nobody's hands.

The journal cannot say that a process died: it says what happened, and nothing did. The lease tells.
"""

from __future__ import annotations

from typing import Literal

from shiftbook.clock import is_alive
from shiftbook.journal.promises import Store

Hold = Literal["held", "expired", "queued", "free"]
"""`held`: a process has it at work. `expired`: whoever had it is gone, or was not heard of for a whole lease.
`queued`: it waits for a worker. `free`: it was given back, and nobody has it."""


async def hold_of(store: Store, run: str) -> tuple[Hold, str | None]:
    """Who has a run, by its lease: how, and the process as HOST:PID where one is named there.

    Raises `UnknownRun`, and `Damaged` for a lease that cannot be read.
    """
    lease = await store.leases.look(run)
    if lease.holder is None:
        return "free", None
    lives = lease.left_ms is None or lease.left_ms > 0
    hold: Hold = "held" if lives and is_alive(lease.holder) is not False else "expired"
    return hold, f"{lease.holder.host}:{lease.holder.pid}"


def hold_told(hold: Hold, holder: str | None) -> str:
    """The same in a few words."""
    match hold:
        case "held":
            return str(holder)
        case "expired":
            return f"nobody ({holder} is gone or silent)"
        case "queued":
            return "nobody (waits for a worker)"
    return "nobody"
