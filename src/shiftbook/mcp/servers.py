"""How a server is reached: a program that speaks on its standard streams, or an address.

A value names a server and holds nothing open. Secrets belong into `env` and `headers`: neither is declared,
shown in a message, or written down.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shiftbook.errors import AgentMistake

CONNECT_MS = 30_000
"""How long a server may take to start and to tell its tools."""

TIMEOUT_MS = 300_000
"""How long one call may take unless the author says otherwise: five minutes."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A program on this machine. It is started with `env` on top of PATH, HOME and a few more."""

    name: str
    command: str
    arguments: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    directory: str | Path | None = None
    connect_ms: int = CONNECT_MS

    def __post_init__(self) -> None:
        _check(self.name)


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server at an address that speaks streamable HTTP; `headers` go with every request."""

    name: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_ms: int = CONNECT_MS

    def __post_init__(self) -> None:
        _check(self.name)
        if not self.url.startswith(("http://", "https://")):
            raise AgentMistake(
                f"MCP server {self.name!r}: its address has to begin with http:// or https://."
            )


Server = StdioServer | HttpServer


def _check(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise AgentMistake(f"The MCP server name {name!r} has to be 1 to 32 letters, digits, _ and -.")
