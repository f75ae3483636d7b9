"""The tools of one or more MCP servers, kept open for the runs that use them.

The tools are in one order and have names that do not depend on which server answered first, so that the same
servers give the same declaration in every process. A server that changes its list changes the toolbox at the
next look; one that is away keeps its tools, and its calls say that it is away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType

from shiftbook.clock import Clock, SystemClock
from shiftbook.errors import AgentMistake
from shiftbook.mcp.connection import Connection
from shiftbook.mcp.listing import tool_names
from shiftbook.mcp.servers import TIMEOUT_MS, Server
from shiftbook.mcp.tool import McpTool
from shiftbook.tools.contract import Repeat

ATTEMPTS = 2
"""How often a call is tried in all, of a tool that may be repeated."""


class McpTools:
    """A toolbox of MCP servers: give it to an agent, or use it as an async context manager.

    `repeat` is the author's word on what may be done after a cut: by server name, then by the server's own
    tool name. It goes before what the server says of itself, which counts only while `trusted`; an untrusted
    server's tools are "ask". `taken` are names that the agent's own tools have. Raises `AgentMistake`.
    """

    def __init__(
        self,
        *servers: Server,
        repeat: Mapping[str, Mapping[str, Repeat]] | None = None,
        trusted: bool = True,
        timeout_ms: int | None = TIMEOUT_MS,
        attempts: int = ATTEMPTS,
        taken: Sequence[str] = (),
        clock: Clock | None = None,
    ) -> None:
        policies = repeat or {}
        names = [server.name for server in servers]
        _check(names, policies)
        self._timeout_ms, self._attempts, self._taken = timeout_ms, attempts, tuple(taken)
        self._clock = clock or SystemClock()
        self._make = [(server, policies.get(server.name, {})) for server in servers]
        self._trusted = trusted
        self._connections: list[Connection] = []
        self._users = 0
        self._turn: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None
        self._tools: tuple[McpTool, ...] = ()

    @property
    def tools(self) -> tuple[McpTool, ...]:
        """The tools as they were last found, by name."""
        return self._tools

    @property
    def stale(self) -> bool:
        """Whether a server has changed its list, or was lost, since the last look."""
        return any(connection.changed for connection in self._connections)

    async def open(self) -> None:
        """Connect to all servers; once for each `close`. Raises `AgentUnusable`, and then nothing is open."""
        async with (
            self._one_at_a_time()
        ):  # Who comes while another opens it has no tools before that is done.
            if self._users == 0:
                await self._connect()
            self._users += 1

    async def _connect(self) -> None:
        connections: list[Connection] = []
        try:
            for server, repeat in self._make:
                connections.append(Connection(server, repeat, self._clock, trusted=self._trusted))
                await connections[-1].open()
            self._connections = connections
            self._take()
        except BaseException:
            self._connections = []
            await _close(connections)
            raise

    def _one_at_a_time(self) -> asyncio.Lock:
        """The lock of this loop: one toolbox may serve several loops, one after the other."""
        loop = asyncio.get_running_loop()
        if self._turn is None or self._turn[0] is not loop:
            self._turn = loop, asyncio.Lock()
        return self._turn[1]

    async def close(self) -> None:
        """Disconnect when nobody else has it open."""
        self._users -= 1
        if self._users:
            return
        connections, self._connections = self._connections, []
        await _close(connections)

    async def refresh(self) -> None:
        """Look again at the servers that have changed."""
        for connection in self._connections:
            if connection.changed:
                await connection.refresh()
        self._take()

    def _take(self) -> None:
        found = [(item, connection) for connection in self._connections for item in connection.definitions]
        names = tool_names([item for item, _ in found], taken=self._taken)
        known = {tool.name: tool for tool in self._tools}
        made: list[McpTool] = []
        for name, (item, connection) in zip(names, found, strict=True):
            tool = known.get(name)
            if tool is None or tool.definition != item or not tool.is_of(connection):
                tool = McpTool(name, item, connection, timeout_ms=self._timeout_ms, attempts=self._attempts)
            made.append(tool)
        tools = tuple(sorted(made, key=lambda tool: tool.name))
        if tools != self._tools:
            self._tools = tools

    async def __aenter__(self) -> McpTools:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def _close(connections: Sequence[Connection]) -> None:
    """Close all, the last first, whatever comes of one."""
    async with AsyncExitStack() as stack:
        for connection in connections:
            stack.push_async_callback(connection.close)


def _check(names: Sequence[str], policies: Mapping[str, Mapping[str, Repeat]]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise AgentMistake(f"Two MCP servers are called {name!r}: give one of them another name.")
    for server, by_tool in policies.items():
        if server not in names:
            raise AgentMistake(f"`repeat` names an MCP server {server!r} that is not among {list(names)}.")
        for tool, policy in by_tool.items():
            if policy not in ("safe", "keyed", "ask"):
                raise AgentMistake(
                    f"`repeat` says {policy!r} of tool {tool!r} of MCP server {server!r}: "
                    'a server\'s tool may be "safe", "keyed" or "ask".'
                )
