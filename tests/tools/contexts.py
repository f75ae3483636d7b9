"""A context for a tool's call, with the parts that a test looks at."""

from __future__ import annotations

import threading
from collections.abc import Callable

from shiftbook.tools.contract import Context


def a_context(
    *, call: str = "1.1", key: str = "key-1", attempt: int = 1, report: Callable[[str], None] = print
) -> Context:
    return Context("run", call, "tool", key, attempt, lambda: 0, report, threading.Event())
