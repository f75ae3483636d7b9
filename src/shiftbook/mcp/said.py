"""The last words that a server's program wrote to its error stream: for the sentence that says why it failed.

They come through a pipe and are kept up to a bound, so that a talkative server fills neither a disk nor the
terminal of a person.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TextIO

WORDS_BYTES_MAX = 4_096


class _Listener(asyncio.Protocol):
    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._kept = b""

    def data_received(self, data: bytes) -> None:
        self._kept = (self._kept + data)[-WORDS_BYTES_MAX:]
        self._words[:] = [self._kept.decode("utf-8", "replace")]


@asynccontextmanager
async def listening_to(words: list[str]) -> AsyncIterator[TextIO]:
    """A stream for a child's errors; the end of what comes is put into `words`."""
    read, write = os.pipe()
    with os.fdopen(write, "w") as sink:
        loop = asyncio.get_running_loop()
        source = os.fdopen(read, "rb", buffering=0)  # the transport closes it
        transport, _ = await loop.connect_read_pipe(lambda: _Listener(words), source)
        try:
            yield sink
        finally:
            transport.close()
