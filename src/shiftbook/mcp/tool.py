"""A tool of an MCP server, with the contract that any tool has.

The call's idempotency key goes along in the request's `_meta` under `KEY_META`; a server that honours it lets
its tool be declared "keyed" by the author. When the server is lost in the middle of a call the outcome is
unknown, and the repeat policy says what happens then; the run goes on. A server that asks back (sampling,
elicitation, roots) is refused.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from shiftbook.errors import ShiftbookError
from shiftbook.mcp.content import read_answer
from shiftbook.mcp.listing import Definition
from shiftbook.messages import Json, ToolSchema
from shiftbook.tools.contract import (
    BadArguments,
    CannotTell,
    Context,
    OutcomeUnknown,
    Output,
    Reconciled,
    Repeat,
    TryAgain,
)

KEY_META = "shiftbook/idempotency-key"
"""The name in a request's `_meta` under which a server finds the call's idempotency key."""

ATTEMPT_META = "shiftbook/attempt"
"""The name under which it finds the number of the attempt, from 1."""

PROGRESS_CHARS_MAX = 500


class ServerGone(ShiftbookError):
    """The server is not there, and the call never reached it: nothing was done."""


class ToolChanged(ShiftbookError):
    """The server has another tool under this name by now, or none: nothing was done."""


class AnswerLost(OutcomeUnknown):
    """The call was sent and no answer to it can be had."""


class AnswerLostTryAgain(TryAgain, AnswerLost):
    """The same, of a tool that may be repeated."""


class Refused(ShiftbookError):
    """The server answered with an error instead of a result."""


Progress = Callable[[float, float | None, str | None], Awaitable[None]]


class Caller(Protocol):
    """What a tool needs of the connection to its server."""

    async def call(
        self,
        definition: Definition,
        arguments: Mapping[str, Json],
        meta: Mapping[str, Json],
        progress: Progress,
    ) -> Json:
        """The answer as it came. Raises `ServerGone`, `ToolChanged`, `AnswerLost` or `Refused`."""
        ...


class McpTool:
    """One tool of a server, as it was when it was declared."""

    def __init__(
        self, name: str, definition: Definition, caller: Caller, *, timeout_ms: int | None, attempts: int
    ) -> None:
        self.name = name
        self.definition = definition
        self.schema = ToolSchema(name, definition.description, definition.parameters)
        self.repeat: Repeat = definition.repeat
        self.timeout_ms = timeout_ms
        self.attempts = attempts if definition.repeat in ("safe", "keyed") else 1
        self.ends_when_cancelled = False  # the server is told; what it does about it nobody knows
        self._caller = caller

    def __repr__(self) -> str:
        return f"<tool {self.name} of MCP server {self.definition.server}, repeat={self.repeat!r}>"

    def is_of(self, caller: Caller) -> bool:
        """Whether its calls go through this connection."""
        return self._caller is caller

    async def run(self, arguments: Mapping[str, Json], context: Context) -> Output:
        """Call the server's tool. Cancelling the task tells the server so (`notifications/cancelled`)."""
        _check_sendable(self.name, arguments)

        async def progress(done: float, total: float | None, message: str | None) -> None:
            share = f"{done:g}" if total is None else f"{done:g} of {total:g}"
            context.progress(f"{message} ({share})"[:PROGRESS_CHARS_MAX] if message else share)

        meta = {KEY_META: context.key, ATTEMPT_META: context.attempt}
        try:
            return read_answer(await self._caller.call(self.definition, dict(arguments), meta, progress))
        except AnswerLost as fault:
            if self.repeat in ("safe", "keyed"):
                raise AnswerLostTryAgain(str(fault)) from fault
            raise

    async def ask(self, arguments: Mapping[str, Json], context: Context) -> Reconciled:
        """MCP has no question for this: never "reconcile", so this is not called."""
        return CannotTell()


def _check_sendable(name: str, arguments: Mapping[str, Json]) -> None:
    try:
        json.dumps(dict(arguments), allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (TypeError, ValueError, RecursionError):
        raise BadArguments(
            f"The arguments of {name} hold what JSON cannot say to the server, such as NaN or half a "
            "surrogate pair"
        ) from None
