"""The only place that reads time, draws random bytes or makes ids.

Everything else is handed a `Clock`. A test hands in its own and owns time and chance with it; a rerun
hands in one that follows the recorded stamps. Order never comes from here: entries are ordered by
position, and two clocks that disagree can at worst write odd stamps.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no i, l, o, u, so that an id can be read aloud and typed."""

RUN_ID_LENGTH = 10
"""Characters of a run id: 50 bits, so that a clash needs tens of millions of runs in one store."""


class Clock(Protocol):
    """Time, waiting and chance, for whoever needs them."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC: for stamps that people read, never for order."""
        ...

    def steady_ms(self) -> float:
        """Milliseconds that never go back, from an unknown origin: for durations within a process."""
        ...

    async def sleep_ms(self, duration_ms: float) -> None:
        """Wait; a simulated clock jumps instead."""
        ...

    def token(self, size: int) -> bytes:
        """`size` unpredictable bytes, for salts."""
        ...

    def new_run_id(self) -> str:
        """A fresh run id of `RUN_ID_LENGTH` characters from `ID_ALPHABET`."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> float:
        return time.monotonic_ns() / 1e6

    async def sleep_ms(self, duration_ms: float) -> None:
        await asyncio.sleep(duration_ms / 1000)

    def token(self, size: int) -> bytes:
        return os.urandom(size)

    def new_run_id(self) -> str:
        return "".join(secrets.choice(ID_ALPHABET) for _ in range(RUN_ID_LENGTH))


@dataclass(frozen=True, slots=True)
class Holder:
    """Who takes a lease: enough to tell, on the same host, whether that process is still alive.

    `started` is the kernel's start time of the process (clock ticks since boot, from /proc) or "" where it
    cannot be read: a process id alone is handed out again.
    """

    host: str
    pid: int
    started: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def this_process() -> Holder:
    """The holder that this process is."""
    return Holder(socket.gethostname(), os.getpid(), process_start(os.getpid()))


def process_start(pid: int) -> str:
    """Start time of a process as the kernel tells it, "" when it is not running or cannot be asked."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return ""
    if not fields or fields[0] in (b"Z", b"X"):
        return ""
    return fields[19].decode("ascii")


def is_alive(holder: Holder) -> bool | None:
    """Whether the holder's process still runs: None when it lives on another host and cannot be asked."""
    if holder.host != socket.gethostname():
        return None
    if holder.started:
        return process_start(holder.pid) == holder.started
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
