"""A dispatcher between the SDK's session and its own: what a server answers is kept as it came.

The SDK checks an answer against its models and against the tool's output schema, and raises where it does not
fit: but the call has happened, and what it gave is to be recorded. So the raw answer is caught on its way; a
list is caught too, so that one tool that is not as it should be does not take the others along.
Text with half a surrogate pair is no JSON to the SDK's parser; such a line is read again here, by a parser
that takes it, so that its call is answered.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.shared.dispatcher import CallOptions
    from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

CAUGHT: ContextVar[list[Any] | None] = ContextVar("CAUGHT", default=None)
"""Where raw answers to the requests of this task go; None: they are not caught."""

FIRST_ID = 1_000_001
"""Ids of requests that are caught: far from those that the SDK counts, and integers as some servers want."""


class Wire:
    """Stands in for the SDK's dispatcher; `lost` is set as soon as the connection has ended."""

    def __init__(self, inner: JSONRPCDispatcher[Any]) -> None:
        self._inner = inner
        self._ids = itertools.count(FIRST_ID)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.lost = asyncio.Event()
        inner.on_stream_exception = self._unreadable

    async def run(self, *handlers: Any, **named: Any) -> None:
        """Receive until the connection ends."""
        try:
            await self._inner.run(*handlers, **named)
        finally:
            self.lost.set()

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Pass a notification on."""
        await self._inner.notify(method, params, opts)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Pass a request on, and catch its answer where that is wanted."""
        caught = CAUGHT.get()
        if caught is None:
            return await self._inner.send_raw_request(method, params, opts)
        number = next(self._ids)
        read_again = asyncio.get_running_loop().create_future()
        self._waiting[number] = read_again
        options: CallOptions = {**(opts or {}), "request_id": number}
        sent = asyncio.ensure_future(self._inner.send_raw_request(method, params, options))
        try:
            await asyncio.wait({sent, read_again}, return_when=asyncio.FIRST_COMPLETED)
            answer = sent.result() if sent.done() else read_again.result()
        finally:
            del self._waiting[number]
            read_again.cancel()
            if not sent.done():
                sent.cancel()  # tells the server so, unless it has answered
                await asyncio.wait({sent})
        caught.append(answer)
        return answer if isinstance(answer, dict) else {"content": []}

    async def _unreadable(self, fault: Exception) -> None:
        """A line that the SDK took for no message; one that is no JSON is a stray print, and passed over."""
        for message in _messages(fault):
            waiting = self._waiting.get(message["id"]) if isinstance(message.get("id"), int) else None
            if waiting is not None and not waiting.done():
                told = [{"type": "error", "error": message.get("error")}]
                failed = {"content": told, "isError": True}
                waiting.set_result(message.get("result", failed))


def _messages(fault: Exception) -> list[dict[str, Any]]:
    """The answers in what the SDK's parser complains of: the line itself, or what it was read as."""
    errors = getattr(fault, "errors", None)
    found: list[dict[str, Any]] = []
    for error in errors() if errors is not None else ():
        read = error.get("input")
        if isinstance(read, str):
            try:
                read = json.loads(read)
            except (ValueError, RecursionError):
                continue
        if isinstance(read, dict) and ("result" in read or "error" in read):
            found.append(read)
    return found
