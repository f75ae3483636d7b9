"""The vendors' own clients for a server, their retries off; certificates are read once, to save time."""

from __future__ import annotations

import ssl
from typing import Any

import anthropic
import openai

from shiftbook.testing.server import ProviderServer

CONTEXT = ssl.create_default_context()


def claude(server: ProviderServer, **more: Any) -> Any:
    http = anthropic.DefaultHttpxClient(verify=CONTEXT)
    given = {
        "base_url": server.anthropic_url,
        "api_key": "any",
        "max_retries": 0,
        "http_client": http,
        **more,
    }
    return anthropic.Anthropic(**given)


def gpt(server: ProviderServer, **more: Any) -> Any:
    http = openai.DefaultHttpxClient(verify=CONTEXT)
    given = {"base_url": server.openai_url, "api_key": "any", "max_retries": 0, "http_client": http, **more}
    return openai.OpenAI(**given)
