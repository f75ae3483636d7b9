"""What the tests of `mcp` stand on: a shop in a process of its own, and runs that buy there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shiftbook.entries import ActionFinished
from shiftbook.mcp import HttpServer, McpTools, StdioServer
from shiftbook.messages import Text
from shiftbook.providers.scripted import Scripted
from shiftbook.run.agent import Agent
from shiftbook.run.loop import start
from shiftbook.run.summary import Summary
from shiftbook.testing.validator import check_request
from tests.run.desk import Desk

RUN = "buying"
PLACE = {"place": "A"}
SHOP = Path(__file__).with_name("shop.py")
RAW = Path(__file__).with_name("raw.py")


def shop(place: Path, *flags: str, name: str = "shop") -> StdioServer:
    """The shop as a program that the engine starts."""
    return StdioServer(name, sys.executable, [str(SHOP), str(place), "stdio", *flags])


def raw(*script: Any, stray: bool = False) -> StdioServer:
    """A server that answers calls with these results, letter by letter."""
    return StdioServer("raw", sys.executable, [str(RAW), json.dumps(script), "stray" if stray else ""])


@contextmanager
def http_shop(place: Path, *flags: str, port: int = 0) -> Iterator[tuple[HttpServer, int, int]]:
    """The shop on loopback: how to reach it, its port and its process id."""
    command = [sys.executable, str(SHOP), str(place), "http", *flags]
    environment = os.environ | {"PORT": str(port)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            number = int(process.stdout.readline())
            yield HttpServer("shop", f"http://127.0.0.1:{number}/mcp"), number, process.pid
        finally:
            process.kill()


def arrived(place: Path) -> list[dict[str, Any]]:
    """What the shop was asked and told, in order."""
    file = place / "arrived"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def buyer(script: Any, box: McpTools, **changes: Any) -> Agent:
    """An agent with the tools of a toolbox."""
    values: dict[str, Any] = {"name": "buyer", "cap": 60_000} | changes
    return Agent(model=Scripted(script, check=check_request), toolboxes=[box], **values)


async def bought(ground: Desk, script: Any, box: McpTools, **changes: Any) -> Summary:
    """A run of one message, to its rest."""
    async with await start(
        ground.store, buyer(script, box, **changes), "Buy.", run=RUN, clock=ground.clock
    ) as run:
        return await run.finish()


async def answers(ground: Desk) -> list[tuple[str, str]]:
    """The outcome and the words of each answer, in order."""
    return [
        (what.outcome, "".join(part.text for part in what.content if isinstance(part, Text)))
        for what in await ground.whats(RUN, ActionFinished)
    ]
