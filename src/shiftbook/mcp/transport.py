"""The way to a server, as the SDK goes it: start or reach it, agree on a version, read its list of tools.

The SDK is loaded here and in the functions that need it, never when the package is. A session that an HTTP
server has forgotten is seen by the status, since the words for it differ from server to server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from shiftbook._version import VERSION
from shiftbook.errors import AgentUnusable
from shiftbook.mcp.said import listening_to
from shiftbook.mcp.servers import Server, StdioServer
from shiftbook.mcp.wire import CAUGHT
from shiftbook.messages import Json

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

ANSWER_BYTES_MAX = 64 * 1024 * 1024
"""What one event of an HTTP server may hold; the SDK's own bound of 1 MiB is below an ordinary image."""


def check_sdk() -> None:
    try:
        import mcp.client.session  # noqa: F401
    except ImportError as fault:
        raise AgentUnusable(
            "MCP servers need the MCP SDK, version 2: run `pip install 'shiftbook[mcp]'`."
        ) from fault


def us() -> Any:
    from mcp_types import Implementation

    return Implementation(name="shiftbook", version=VERSION)


async def negotiate(session: ClientSession) -> None:
    """Find a version that both speak: ask as of 2026-07-28, else shake hands as before it."""
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    try:
        await session.discover()
    except (MCPError, RuntimeError, ValidationError):
        await session.initialize()


async def read_page(session: ClientSession, cursor: Any) -> tuple[list[Mapping[str, Json]], Any]:
    """One page of a list of tools, and where the next begins."""
    from mcp_types import PaginatedRequestParams
    from pydantic import ValidationError

    caught: list[Any] = []
    token = CAUGHT.set(caught)
    try:
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
    except ValidationError:
        if not caught or not isinstance(caught[-1].get("tools"), list):
            raise
        tools = [tool for tool in caught[-1]["tools"] if isinstance(tool, Mapping)]
        return tools, caught[-1].get("nextCursor")
    finally:
        CAUGHT.reset(token)
    return [tool.model_dump(by_alias=True, exclude_unset=True) for tool in page.tools], page.next_cursor


@asynccontextmanager
async def streams(server: Server, words: list[str], forgotten: asyncio.Event) -> AsyncIterator[Any]:
    if isinstance(server, StdioServer):
        from mcp.client.stdio import StdioServerParameters, stdio_client

        parameters = StdioServerParameters(
            command=server.command,
            args=list(server.arguments),
            env=dict(server.env) or None,
            cwd=server.directory,
        )
        words.clear()
        async with listening_to(words) as errors, stdio_client(parameters, errlog=errors) as streams:
            yield streams
        return
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    limit = httpx2.Timeout(server.connect_ms / 1000, read=None)  # how long a call may take is ours to say

    async def look(response: Any) -> None:
        # The body's words differ from server to server: it is the status that tells.
        if response.status_code == 404 and "mcp-session-id" in response.request.headers:
            forgotten.set()

    async with httpx2.AsyncClient(headers=dict(server.headers), timeout=limit) as client:
        client.event_hooks["response"].append(look)
        async with streamable_http_client(
            server.url, http_client=client, max_sse_event_size=ANSWER_BYTES_MAX
        ) as streams:
            yield streams
