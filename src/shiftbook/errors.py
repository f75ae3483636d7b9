"""Everything that Shiftbook raises on purpose, as one short tree.

    ShiftbookError
    |-- BadInput              what was asked cannot be done as asked          (exit code 2)
    |   |-- NotCanonical      a value or a text outside the canonical form
    |   |-- SessionUnreadable a foreign session file is broken or unknown
    |   |   `-- NoSession     it is none, or none for what was asked
    |   |-- UnknownRun        no run of that id in this store
    |   |-- RunExists         the id is taken, or a prefix fits several runs
    |   |-- CapTooSmall       the fixed part of the prompt alone passes the cap
    |   `-- AgentMistake      an agent or a tool is declared in a way that cannot work
    |-- AgentUnusable         the agent or its model cannot be had now        (exit code 3)
    |-- StoreError            the database refused, or is not ours to use   (exit code 2)
    |   |-- StoreUnusable     it cannot be opened, read or written at all     (exit code 2)
    |   |-- NewerFormat       written by a newer Shiftbook than this one      (exit code 2)
    |   |-- Damaged           what was read is not what was written           (exit code 1)
    |   `-- Refused           an append that named a stale state            (exit code 7)
    |       |-- Conflict      another append got there first
    |       |-- Fenced        the lease was taken by somebody else
    |       `-- InboxWaiting  the append asked for an empty inbox and there was mail
    |-- Held                  another process holds the run                   (exit code 7)
    `-- ProviderFault         a model request failed; says if a retry makes sense

Errors carry plain values, never live objects. The message is one sentence for a person that says
what is the matter and what to do.
"""

from __future__ import annotations


class ShiftbookError(Exception):
    """The root: catch this to catch everything that Shiftbook raises on purpose."""

    exit_code = 1


class BadInput(ShiftbookError):
    """What was asked cannot be done as asked; nothing was written."""

    exit_code = 2


class NotCanonical(BadInput):
    """A value has no canonical text, or a text is not the canonical form of any value."""


class SessionUnreadable(BadInput):
    """A foreign session file is broken or of an unknown format; `line` is 0 when no line is to blame."""

    def __init__(self, path: str, line: int, what: str) -> None:
        where = f"{path}, line {line}" if line else path
        super().__init__(f"{where}: {what}")
        self.path = path
        self.line = line
        self.what = what


class NoSession(SessionUnreadable):
    """What was read is no session of a known format, or none that can be had for what was asked."""


class UnknownRun(BadInput):
    """No run of that id, or of that prefix, is in this store."""

    def __init__(self, run: str) -> None:
        super().__init__(f"There is no run {run!r} in this store; `shiftbook runs` lists what is there.")
        self.run = run


class RunExists(BadInput):
    """The run id is taken already, or a prefix fits more than one run."""


class CapTooSmall(BadInput):
    """Instructions and tools alone take more tokens than the cap allows."""

    def __init__(self, fixed: int, cap: int) -> None:
        super().__init__(
            f"The cap of {cap} tokens is below the fixed part of the prompt: instructions and tools take "
            f"{fixed} tokens. Raise --cap or shorten them."
        )
        self.fixed = fixed
        self.cap = cap


class AgentMistake(BadInput):
    """An agent or a tool is declared in a way that cannot work."""


class AgentUnusable(ShiftbookError):
    """The agent cannot be imported, or its model cannot be reached; nothing was written."""

    exit_code = 3


class StoreError(ShiftbookError):
    """The database refused, or is not ours to use."""

    exit_code = 2


class StoreUnusable(StoreError):
    """The database cannot be opened, read or written; the message names the file and the cause."""

    exit_code = 2


class NewerFormat(StoreError):
    """The journal was written by a newer Shiftbook; update this one, the journal is left as it is."""

    exit_code = 2


class Damaged(StoreError):
    """What was read is not what was written; `shiftbook verify RUN` says where."""

    exit_code = 1


class Refused(StoreError):
    """An append named a state that no longer holds; nothing of it was written."""

    exit_code = 7


class Conflict(Refused):
    """The run has grown since the position that the append named."""

    def __init__(self, run: str, expected: int, found: int) -> None:
        super().__init__(f"Run {run} is at entry {found}, not at {expected}: another writer was first.")
        self.run = run
        self.expected = expected
        self.found = found


class Fenced(Refused):
    """The lease epoch that the append named is no longer the current one."""

    def __init__(self, run: str, epoch: int, current: int) -> None:
        super().__init__(
            f"The lease on run {run} was taken over (epoch {current}, ours was {epoch}): this writer stops."
        )
        self.run = run
        self.epoch = epoch
        self.current = current


class InboxWaiting(Refused):
    """The append asked that no message be waiting, and one is."""


class Held(ShiftbookError):
    """Another process holds the run; the message says who and until when."""

    exit_code = 7

    def __init__(self, run: str, holder: str, wait_ms: int) -> None:
        super().__init__(
            f"Run {run} is held by {holder}; its lease ends in {max(0, wait_ms) / 1000:.1f} s "
            "unless it is renewed. Wait for it, or stop that process."
        )
        self.run = run
        self.holder = holder
        self.wait_ms = wait_ms


class ProviderFault(ShiftbookError):
    """A model request failed.

    `retryable` says whether the same request may succeed later; `retry_after_ms` is the provider's own
    wish, when it named one; `status` is its HTTP status, when there was one.
    """

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        retryable: bool,
        retry_after_ms: int | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after_ms = retry_after_ms
        self.status = status
