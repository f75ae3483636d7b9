"""One server: connected by a task of its own, asked for its tools, called, and connected again when lost.

The task owns everything that is open, so that calls may come from any task and the SDK's scopes are entered
and left in one. It connects when it is asked to: by `open`, by `refresh`, by a call; a few times with a
growing wait, and then the asker is told that the server is gone. A server that nobody asks for is left alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from shiftbook.clock import Clock
from shiftbook.ending import end, tellings
from shiftbook.errors import AgentUnusable
from shiftbook.mcp.listing import Definition, read_listing
from shiftbook.mcp.servers import HttpServer, Server
from shiftbook.mcp.tool import AnswerLost, Progress, Refused, ServerGone, ToolChanged
from shiftbook.mcp.transport import check_sdk, negotiate, read_page, streams, us
from shiftbook.mcp.wire import CAUGHT, Wire
from shiftbook.messages import Json
from shiftbook.tools.contract import Repeat

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

CONNECTS = 4
"""Tries to connect for one call; the waits between them double from `WAIT_MS`."""
WAIT_MS = 200
PAGES_MAX = 100
GOODBYE_S = 20.0
"""How long a server may take to let go of a connection that is left, in seconds; then it is broken off."""
WORDS_CHARS_MAX = 2_000
"""A server's own words on an error are told up to this length."""

log = logging.getLogger("shiftbook.mcp")


class Connection:
    """The connection to one server. `definitions` are its tools as it told them last."""

    def __init__(self, server: Server, repeat: Mapping[str, Repeat], clock: Clock, *, trusted: bool) -> None:
        self.server = server
        self.definitions: tuple[Definition, ...] = ()
        self.changed = False
        """The server said that its list has changed, or it was lost: there is reason to look again."""
        self._repeat, self._clock, self._trusted = repeat, clock, trusted
        self._task: asyncio.Task[None] | None = None
        self._session: ClientSession | None = None
        self._wire: Wire | None = None
        self._fault: BaseException | None = None
        self._words: list[str] = []
        self._wanted, self._settled, self._leave = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._ended = asyncio.Event()
        """Nothing of the last connection is left, and `_fault` says what its end was."""
        self._calls = 0
        self._forgotten = asyncio.Event()
        """The HTTP server does not know our session any more."""

    async def open(self) -> None:
        """Connect and learn the tools. Raises `AgentUnusable`, and then nothing is open."""
        check_sdk()
        self._leave.clear()
        self._task = asyncio.create_task(self._keep(), name=f"mcp {self.server.name}")
        await self._connect()
        if self._session is None:
            await self.close()
            raise AgentUnusable(f"The MCP server {self.server.name!r} cannot be used: {self._why()}")

    async def close(self) -> None:
        """Disconnect, and stop a program that was started."""
        self._leave.set()
        self._wanted.set()
        if self._wire is not None:
            self._wire.lost.set()
        if self._task is None:
            return
        if self._wire is not None or self._ended.is_set():
            await asyncio.wait({self._task}, timeout=GOODBYE_S)
        # Else it is still connecting, or it does not get away from a server that does not let go.
        await end(self._task)
        self._task = None

    async def refresh(self) -> None:
        """Learn the tools anew, connecting once if need be; what cannot be had stays as it was."""
        self.changed = False
        session = self._session
        if session is None:
            await self._connect()
            self.changed = self.changed or self._session is None
            return
        try:
            self.definitions = await self._list(session)
        except Exception as fault:  # noqa: BLE001 - the list that we have still stands
            self.changed = True
            log.warning("MCP server %s: its tools could not be listed (%s)", self.server.name, _told(fault))

    async def call(
        self,
        definition: Definition,
        arguments: Mapping[str, Json],
        meta: Mapping[str, Json],
        progress: Progress,
    ) -> Json:
        """Call a tool and give its answer as it came; see `Caller`."""
        for attempt in range(2):
            session = await self._connected()
            if definition not in self.definitions:
                self.changed = True
                raise ToolChanged(
                    f"The MCP server {self.server.name!r} has changed or removed its tool "
                    f"{definition.name!r}: nothing was done"
                )
            try:
                return await self._send(session, definition.name, arguments, meta, progress)
            except _Forgotten:
                # The server does not know our session any more, so it has not looked at the call.
                await self._drop(session)
                if attempt:
                    break
        raise self._gone()

    async def _send(
        self,
        session: ClientSession,
        name: str,
        arguments: Mapping[str, Json],
        meta: Mapping[str, Json],
        progress: Progress,
    ) -> Json:
        from mcp.shared.exceptions import MCPError
        from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult
        from pydantic import ValidationError

        params = CallToolRequestParams(name=name, arguments=dict(arguments), _meta=cast(Any, dict(meta)))
        caught: list[Any] = []
        token = CAUGHT.set(caught)
        self._calls += 1
        alone = self._calls == 1
        try:
            await session.send_request(
                CallToolRequest(params=params), CallToolResult, progress_callback=cast(Any, progress)
            )
        except ValidationError:
            if not caught:
                raise
        except MCPError as fault:
            if not caught:
                raise await self._fault_of(fault, session, alone=alone and self._calls == 1) from fault
        finally:
            self._calls -= 1
            CAUGHT.reset(token)
        return caught[-1]

    async def _fault_of(self, fault: Any, session: ClientSession, *, alone: bool) -> Exception:
        from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, REQUEST_TIMEOUT

        if fault.code == INVALID_REQUEST and self._forgotten.is_set():
            return _Forgotten()
        if fault.code == CONNECTION_CLOSED:
            await self._drop(session)
            if alone and _never_sent(self._fault):
                return self._gone()
            return AnswerLost(f"the connection to MCP server {self.server.name!r} ended during the call")
        name, words = self.server.name, fault.message[:WORDS_CHARS_MAX]
        if fault.code in (PARSE_ERROR, REQUEST_TIMEOUT):
            return AnswerLost(f"MCP server {name!r} gave no readable answer: {words}")
        if isinstance(self.server, HttpServer) and fault.code == INTERNAL_ERROR:
            # Also what an HTTP status of 500 and above is made into: a gateway's, after the server has acted.
            return AnswerLost(f"MCP server {name!r} failed: {words}")
        return Refused(f"MCP server {name!r} answered with error {fault.code}: {words}")

    async def _connected(self) -> ClientSession:
        """The session, connected anew if it must be. Raises `ServerGone` after `CONNECTS` tries."""
        for attempt in range(CONNECTS):
            if attempt:
                await self._clock.sleep_ms(WAIT_MS * 2 ** (attempt - 1))
            if self._session is None:
                await self._connect()
            if self._session is not None:
                return self._session
        raise self._gone()

    async def _connect(self) -> None:
        """Ask the task to connect, and wait until it has or has failed to."""
        if self._leave.is_set() or self._task is None or self._task.done():
            return
        if not self._wanted.is_set():
            self._settled.clear()
            self._wanted.set()
        await self._settled.wait()

    async def _drop(self, session: ClientSession) -> None:
        """Let the task notice that this session is of no use any more, and wait until it has."""
        ended = self._ended
        if self._session is session and self._wire is not None:
            self._wire.lost.set()
        await ended.wait()

    async def _keep(self) -> None:
        """The task: wait until the connection is wanted, connect, stay until it is lost, around again."""
        while True:
            await self._wanted.wait()
            if self._leave.is_set():
                return
            self._fault, self._ended = None, asyncio.Event()
            told = tellings()
            try:
                await self._stay()
            except asyncio.CancelledError:
                if tellings() > told:
                    raise
                self._fault = ConnectionError("the connection broke")
            except Exception as fault:  # noqa: BLE001 - whatever a server does to the SDK, the run goes on
                self._fault = fault
                log.info("MCP server %s: %s", self.server.name, _told(fault))
            finally:
                self._session, self._wire = None, None
                self.changed = True
                self._wanted.clear()
                self._settled.set()
                self._ended.set()
            if self._leave.is_set():
                return

    async def _stay(self) -> None:
        self._forgotten.clear()
        async with streams(self.server, self._words, self._forgotten) as (read, write):
            from mcp.client.session import ClientSession
            from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

            wire = Wire(JSONRPCDispatcher(read, write))
            async with ClientSession(
                dispatcher=wire, message_handler=self._heard, client_info=us()
            ) as session:
                async with asyncio.timeout(self.server.connect_ms / 1000):
                    await negotiate(session)
                    self.definitions = await self._list(session)
                self._wire, self._session, self.changed = wire, session, False
                listening = asyncio.create_task(self._listen(session))
                try:
                    self._settled.set()
                    if not self._leave.is_set():
                        await wire.lost.wait()
                finally:
                    self._session = None
                    await end(listening)

    async def _list(self, session: ClientSession) -> tuple[Definition, ...]:
        tools: list[Mapping[str, Json]] = []
        cursor: Any = None
        for _ in range(PAGES_MAX):
            page, cursor = await read_page(session, cursor)
            tools += page
            if cursor is None:
                break
        definitions, left_out = read_listing(self.server.name, tools, self._repeat, trusted=self._trusted)
        for sentence in left_out:
            log.warning("%s", sentence)
        return definitions

    async def _heard(self, message: Any) -> None:
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            self.changed = True

    async def _listen(self, session: ClientSession) -> None:
        """Servers of 2026-07-28 tell of changes only on a stream that was asked for."""
        from mcp.client.subscriptions import ListenNotSupportedError, listen

        for attempt in range(CONNECTS):
            try:
                async with listen(session, tools_list_changed=True) as events:
                    if attempt:
                        self.changed = True  # what was told in between is lost
                    async for _ in events:
                        self.changed = True
                return
            except ListenNotSupportedError:
                return
            except Exception as fault:  # noqa: BLE001 - without the stream changes are noticed at a reconnect
                log.info("MCP server %s: no news of changes (%s)", self.server.name, _told(fault))
                await self._clock.sleep_ms(WAIT_MS * 2**attempt)

    def _gone(self) -> ServerGone:
        name = self.server.name
        return ServerGone(f"The MCP server {name!r} cannot be reached ({self._why()}): nothing was done")

    def _why(self) -> str:
        told = _told(self._fault) if self._fault is not None else "it ended the connection"
        words = "".join(self._words).strip()[-500:]
        return f"{told}; it said: {words}" if words else told


class _Forgotten(Exception):
    """The server does not know our session."""


def _leaves(fault: BaseException) -> list[BaseException]:
    if isinstance(fault, BaseExceptionGroup):
        return [leaf for each in fault.exceptions for leaf in _leaves(each)]
    return [fault]


def _never_sent(fault: BaseException | None) -> bool:
    """Whether the fault says that no connection came about at all."""
    if fault is None:
        return False
    return any(type(leaf).__name__ in ("ConnectError", "ConnectTimeout") for leaf in _leaves(fault))


def _told(fault: BaseException) -> str:
    told = [f"{type(leaf).__name__}: {leaf}" if str(leaf) else type(leaf).__name__ for leaf in _leaves(fault)]
    return "; ".join(dict.fromkeys(told))[:500]
