"""A model by its reference: "anthropic:claude-sonnet-5-5", "openai:gpt-6-sol", "bridge:google:gemini-3-pro".

The part before the first colon names the wire, the rest is the vendor's own name of the model (over the
bridge: the vendor and its name of the model). A reference is what a provider is called by in `AgentDeclared`;
how it is reached and set is not in it.
"""

from __future__ import annotations

from shiftbook.errors import AgentMistake
from shiftbook.providers.anthropic_provider import Anthropic
from shiftbook.providers.bridge import Bridge
from shiftbook.providers.openai_provider import OpenAIChat, OpenAIResponses

WIRES = ("anthropic", "openai", "openai-chat", "bridge")


def provider_named(reference: str) -> Anthropic | OpenAIChat | OpenAIResponses | Bridge:
    """The provider of a reference, with every setting as it is by default. `AgentMistake` for any other."""
    wire, colon, model = reference.partition(":")
    if not colon or not model or wire not in WIRES:
        known = ", ".join(f"{name}:MODEL" for name in WIRES)
        raise AgentMistake(f"{reference!r} names no model: write one of {known}.")
    if wire == "anthropic":
        return Anthropic(model)
    if wire == "bridge":
        return Bridge(model)
    return OpenAIResponses(model) if wire == "openai" else OpenAIChat(model)
