"""A request, with the parts that a test looks at, and a place for its events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from shiftbook.messages import Block, Reply, ReplyEvent, Request, Text
from shiftbook.providers.promise import Provider


def a_request(turn: int, attempt: int = 1, *, says: str = "Begin.") -> Request:
    block = Block("user", (Text(says),))
    return Request("run", turn, attempt, "model", "Be brief.", (), (block,))


def ask(
    provider: Provider, turn: int, attempt: int = 1, *, emit: Callable[[ReplyEvent], None] | None = None
) -> Reply:
    return asyncio.run(provider.reply(a_request(turn, attempt), emit or (lambda _: None)))
