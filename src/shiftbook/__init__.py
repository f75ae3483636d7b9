"""Shiftbook: run AI agents from a journal in a database.

General layout, lowest first; a folder may import only what stands before it:
errors, clock, messages, entries, canonical, codec | tools, tokens | economics | projections | sessions |
journal | prompt | policies | providers | run | mcp | views | testing | studies, inspector, cli.

Users import from here and from `shiftbook.testing`. Heavy parts (pydantic, the command line, tokenizers) are
loaded when they are first needed, so that importing this is quick.
"""

from shiftbook._version import VERSION as __version__  # noqa: N811 - the name that tools look for
from shiftbook.clock import Clock, SystemClock
from shiftbook.entries import Entry
from shiftbook.errors import (
    AgentMistake,
    AgentUnusable,
    BadInput,
    CapTooSmall,
    Conflict,
    Damaged,
    Fenced,
    Held,
    InboxWaiting,
    NewerFormat,
    NoSession,
    NotCanonical,
    ProviderFault,
    Refused,
    RunExists,
    SessionUnreadable,
    ShiftbookError,
    StoreError,
    StoreUnusable,
    UnknownRun,
)
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Store
from shiftbook.messages import Reply, Request, Text, Usage
from shiftbook.providers.promise import Provider
from shiftbook.providers.scripted import Scripted
from shiftbook.run.agent import Agent
from shiftbook.run.desk import Watcher
from shiftbook.run.limits import Limits
from shiftbook.run.loop import Run, resume, start
from shiftbook.run.mail import post, post_rule
from shiftbook.run.summary import Summary
from shiftbook.run.sync import run_sync
from shiftbook.tools.contract import (
    CannotTell,
    Context,
    DidNotHappen,
    Happened,
    OutcomeUnknown,
    TryAgain,
)
from shiftbook.tools.function import tool
from shiftbook.vectors.static import static_vectors

__all__ = [
    "Agent",
    "AgentMistake",
    "AgentUnusable",
    "BadInput",
    "CannotTell",
    "CapTooSmall",
    "Clock",
    "Conflict",
    "Context",
    "Damaged",
    "DidNotHappen",
    "Entry",
    "Fenced",
    "Happened",
    "Held",
    "InboxWaiting",
    "Limits",
    "NewerFormat",
    "NoSession",
    "NotCanonical",
    "OutcomeUnknown",
    "Provider",
    "ProviderFault",
    "Refused",
    "Reply",
    "Request",
    "Run",
    "RunExists",
    "Scripted",
    "SessionUnreadable",
    "ShiftbookError",
    "Store",
    "StoreError",
    "StoreUnusable",
    "Summary",
    "SystemClock",
    "Text",
    "TryAgain",
    "UnknownRun",
    "Usage",
    "Watcher",
    "__version__",
    "open_store",
    "post",
    "post_rule",
    "resume",
    "run_sync",
    "start",
    "static_vectors",
    "tool",
]
