"""A network between a program and a PostgreSQL server that loses what a test wants lost.

    async with proxy(address) as line:
        line.lose_reply = b"COMMIT"     # the server does it, and the program never hears of it
        line.lose_request = b"append"   # the server never hears of it

Either cuts the connection that says so, once, and then forgets. `line.is_down` refuses new connections.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

ROUNDS = 10


@dataclass
class Line:
    """What is lost, and where to connect instead of to the server."""

    address: str = ""
    lose_reply: bytes | None = None
    lose_request: bytes | None = None
    rewrite: tuple[bytes, bytes] | None = None
    is_down: bool = False
    lost: int = 0
    """How often something was lost."""
    connections: int = 0
    on_lost: Any = None
    """An async function that is called once something is lost, before the program learns of it."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def cut(self) -> None:
        """Cut all connections, and refuse new ones until `is_down` is set back."""
        self.is_down = True
        for task in list(self.tasks):
            task.cancel()


@contextlib.asynccontextmanager
async def proxy(address: str) -> AsyncIterator[Line]:
    """A line to the server of this address (host and port), open while the block runs."""
    parts = urlsplit(address)
    line = Line()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        line.tasks.add(task)
        try:
            if not line.is_down:
                line.connections += 1
                await _carry(line, reader, writer, str(parts.hostname), int(parts.port or 5432))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            line.tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    line.address = urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}"))
    try:
        yield line
    finally:
        server.close()
        # Who has just connected gets as far as where it would close its connection again.
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        for task in list(line.tasks):
            task.cancel()
        await asyncio.gather(*line.tasks, return_exceptions=True)


async def _carry(
    line: Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
) -> None:
    there, to_there = await asyncio.open_connection(host, port)
    is_losing = False

    async def ask() -> None:
        nonlocal is_losing
        while data := await reader.read(65_536):
            if line.lose_request is not None and line.lose_request in data:
                line.lose_request = None
                await _told(line)
                return
            if line.lose_reply is not None and line.lose_reply in data:
                line.lose_reply, is_losing = None, True
            to_there.write(data)
            await to_there.drain()

    async def answer() -> None:
        while data := await there.read(65_536):
            if is_losing:
                await _told(line)
                return
            if line.rewrite is not None:
                data = data.replace(*line.rewrite)
            writer.write(data)
            await writer.drain()

    both = [asyncio.ensure_future(ask()), asyncio.ensure_future(answer())]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        to_there.close()


async def _told(line: Line) -> None:
    line.lost += 1
    if line.on_lost is not None:
        called, line.on_lost = line.on_lost, None
        await called()
