"""Vendors' models under the bridge, to be asked at the provider server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shiftbook.providers.bridge import Bridge
from shiftbook.testing.server import ProviderServer

KEY = "sk-test-key-1234"


@dataclass(frozen=True)
class Over:
    """A vendor's model under the bridge, by its name."""

    reference: str
    url: Callable[[ProviderServer], str]

    def at(self, server: ProviderServer, **more: Any) -> Bridge:
        return Bridge(self.reference, **({"base_url": self.url(server), "api_key": KEY} | more))


CLAUDE = Over("anthropic:claude-sonnet-5-5", lambda server: server.anthropic_url)
CHAT = Over("openai-chat:gpt-4.1", lambda server: server.openai_url)
RESPONSES = Over("openai-responses:gpt-6-sol", lambda server: server.openai_url)
COMPATIBLE = Over("deepseek:deepseek-v4", lambda server: server.openai_url)
