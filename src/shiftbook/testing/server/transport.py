"""HTTP/1.1 on one connection, as much of it as model clients speak, and the ways in which it can go wrong.

Written by hand because a server library takes care that an answer is whole, and here it must be possible for
it not to be: ended in the middle, reset, never begun. Requests come with a length or in chunks; answers go
with a length or, streams, in chunks; connections are kept for the next request.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

HEAD_BYTES_MAX = 64 * 1024
"""The longest line of a request's head, and the number of bytes that a stream reads ahead."""
_PHRASES = {529: "Overloaded"} | {each.value: each.phrase for each in HTTPStatus}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it was read; header names in small letters."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes


class Connection:
    """One client's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def request(self) -> HttpRequest | None:
        """The next request; None when the client has closed, or says nothing that is HTTP."""
        try:
            first = (await self._reader.readuntil(b"\r\n")).decode("latin-1").split()
            headers = await self._headers()
            raw = await self._content(headers)
            method, target, _version = first
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            return None
        return HttpRequest(method, target.partition("?")[0], headers, raw)

    async def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        while (line := (await self._reader.readuntil(b"\r\n")).strip()) != b"":
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        return headers

    async def _content(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("expect", "").lower() == "100-continue":
            await self._send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return await self._reader.readexactly(int(headers.get("content-length", "0")))
        content = b""
        while size := int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16):
            content += await self._reader.readexactly(size)
            await self._reader.readexactly(2)
        await self._headers()
        return content

    async def answer(
        self, status: int, headers: Mapping[str, str], content: bytes, *, promised: int | None = None
    ) -> None:
        """A whole answer; `promised` is the length that is announced where it is not the true one."""
        length = len(content) if promised is None else promised
        await self._send(_head(status, {**headers, "content-length": str(length)}) + content)

    async def begin(self, headers: Mapping[str, str]) -> None:
        """The head of a stream."""
        await self._send(_head(200, {**headers, "transfer-encoding": "chunked"}))

    async def chunk(self, content: bytes) -> None:
        """A piece of a stream; an empty one ends it."""
        await self._send(b"%x\r\n%b\r\n" % (len(content), content))

    async def left(self) -> None:
        """Wait until the client gives up."""
        while await self._reader.read(HEAD_BYTES_MAX):
            pass

    def drop(self) -> None:
        """End the connection where it is; the client has what was sent so far."""
        self._writer.close()

    def reset(self) -> None:
        """End the connection by a reset, as a crashed machine in between does."""
        own = self._writer.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def _send(self, content: bytes) -> None:
        self._writer.write(content)
        await self._writer.drain()


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
