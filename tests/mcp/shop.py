"""A server of the MCP SDK for the tests: a process of its own, over its standard streams or HTTP on loopback.

    python shop.py DIRECTORY stdio|http [old] [shuffled]

What arrives is written to DIRECTORY/arrived, one JSON a line, before anything is done; DIRECTORY/extra says
that there is one tool more, DIRECTORY/changed that "count" is described in other words. "old" answers as
servers before 2026-07-28 do. It imports nothing of the project.
"""

from __future__ import annotations

import base64
import json
import os
import random
import socket
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ToolsListChanged

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
WAV = b"RIFF\x00\x00\x00\x00WAVE" + bytes(64)
PLACE = {
    "type": "object",
    "properties": {"place": {"type": "string"}, "amount": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["place"],
}
HINTS: dict[str, dict[str, bool] | None] = {
    "count": {"readOnlyHint": True},
    "set.price": {"idempotentHint": True, "destructiveHint": False},
    "set/stock": {"idempotentHint": True},
    "order": None,
    "clear": {"destructiveHint": True, "idempotentHint": True},
    "show": {"readOnlyHint": True},
    "die": {"readOnlyHint": True},
    "die_once": {"readOnlyHint": True},
    "die_at_order": None,
    "grow": None,
    "wait": {"readOnlyHint": True},
    "refuse": {"readOnlyHint": True},
    "fault": {"readOnlyHint": True},
    "huge": {"readOnlyHint": True},
    "a" * 80: {"readOnlyHint": True},
    "наличие": {"readOnlyHint": True},
}
HERE, WAY, *FLAGS = sys.argv[1:]
BUS = InMemorySubscriptionBus()


def note(**what: Any) -> None:
    """Write down that something arrived, and have it on the disk before going on."""
    with (Path(HERE) / "arrived").open("a") as file:
        file.write(json.dumps(what | {"pid": os.getpid()}) + "\n")


def shuffled(value: Any) -> Any:
    """The same JSON with the keys of objects in another order."""
    if isinstance(value, dict):
        items = list(value.items())
        random.shuffle(items)
        return {key: shuffled(item) for key, item in items}
    return value


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    """All tools, in two pages."""
    names = [*HINTS, *(["extra"] if (Path(HERE) / "extra").exists() else [])]
    schema = PLACE
    if "shuffled" in FLAGS:
        random.Random(os.getpid()).shuffle(names)  # the same for both pages
        schema = shuffled(PLACE)
    changed = "differently" if (Path(HERE) / "changed").exists() else "well"
    half = len(names) // 2
    page, cursor = (names[half:], None) if params and params.cursor else (names[:half], "half")
    tools = [
        types.Tool.model_validate(
            {
                "name": name,
                "description": f"Does {name} {changed if name == 'count' else 'well'}.",
                "inputSchema": schema,
                "annotations": HINTS.get(name),
            }
        )
        for name in page
    ]
    return types.ListToolsResult(tools=tools, next_cursor=cursor)


async def call_tool(context: Any, params: Any) -> types.CallToolResult:
    """Do what the name says."""
    meta = {key: value for key, value in (context.meta or {}).items() if key.startswith("shiftbook/")}
    note(call=params.name, arguments=params.arguments, meta=meta)
    died = Path(HERE) / "died"
    if params.name == "die" or (params.name.startswith("die_") and not died.exists()):
        died.touch()
        os._exit(9)
    if params.name == "wait":
        await context.session.report_progress(1, 3, "begun")
        try:
            await anyio.sleep_forever()
        finally:
            note(cancelled=params.name)
    if params.name == "grow":
        (Path(HERE) / "extra").touch()
        await BUS.publish(ToolsListChanged())
        if "old" in FLAGS:
            await context.session.send_tool_list_changed()
    if params.name == "fault":
        raise MCPError(code=types.INVALID_PARAMS, message="no such shelf")
    if params.name == "huge":
        return types.CallToolResult(
            content=[types.TextContent(type="text", text="x" * params.arguments["amount"])]
        )
    if params.name == "show":
        return shown()
    text = json.dumps(params.arguments)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=params.name == "refuse"
    )


def shown() -> types.CallToolResult:
    """One of each kind of content."""

    def b64(data: bytes) -> str:
        return base64.b64encode(data).decode()

    return types.CallToolResult.model_validate(
        {
            "content": [
                {"type": "text", "text": "the shelf:"},
                {"type": "image", "data": b64(PNG), "mimeType": "image/png"},
                {"type": "audio", "data": b64(WAV), "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "file:///list.txt", "text": "12 crates"}},
                {
                    "type": "resource",
                    "resource": {"uri": "file:///a.bin", "blob": b64(b"\x00\x01"), "mimeType": "x/y"},
                },
                {
                    "type": "resource_link",
                    "uri": "file:///more.txt",
                    "name": "more",
                    "mimeType": "text/plain",
                },
            ],
            "structuredContent": {"crates": 12, "zebra": 1, "alpha": 2},
        }
    )


async def refuse_discovery(context: Any, call_next: Any) -> Any:
    """A server of before 2026-07-28 does not know the question."""
    if context.method == "server/discover":
        raise MCPError(code=types.METHOD_NOT_FOUND, message="Method not found")
    return await call_next(context)


def main() -> None:
    """Serve until the process is ended."""
    server: Any = Server(
        "shop",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=None if "old" in FLAGS else ListenHandler(BUS),
    )
    if "old" in FLAGS:
        server.middleware.append(refuse_discovery)

    async def stdio() -> None:
        async with stdio_server() as (read, write):
            if "old" in FLAGS:
                await serve_loop(server, read, write, lifespan_state={})
            else:
                await server.run(read, write, server.create_initialization_options())

    if WAY == "stdio":
        anyio.run(stdio)
        return
    listener = socket.create_server(("127.0.0.1", int(os.environ.get("PORT", "0"))))
    print(listener.getsockname()[1], flush=True)
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
