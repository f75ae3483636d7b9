"""Claude over the official SDK: one request, streamed, with the SDK's own retries off.

    Anthropic("claude-sonnet-5-5", max_tokens=8_000)

The SDK is imported when the provider is first used, so that an agent's file is read without it. What is
sent beside the prompt stands in `settings` and is written down with the agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shiftbook.clock import Clock, SystemClock
from shiftbook.economics.cache_request import Ttl
from shiftbook.errors import AgentMistake, AgentUnusable
from shiftbook.messages import Emit, Json, Reply, Request
from shiftbook.providers.anthropic_stream import MessageAssembly
from shiftbook.providers.anthropic_wire import RESERVED, MessagesSettings, body, reply_of
from shiftbook.providers.capabilities import capabilities
from shiftbook.providers.clients import Clients
from shiftbook.providers.faults import cut_short, fault_of
from shiftbook.providers.keys import checked_address, find_key
from shiftbook.providers.pace import Pace, pace_of
from shiftbook.providers.runs import refuse_reserved

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

MAX_TOKENS_DEFAULT = 16_000
"""Tokens of an answer. The wire demands a number; every model of 2026 allows this one."""


class Anthropic:
    """A Claude model by the Messages API.

    `max_tokens` limits the answer; `ttl` is the life of what is cached; `parameters` go out as they are
    (thinking, temperature, ...), the agent's own above them. `server_tools` are tools that the vendor runs,
    as it declares them; `betas` go into the `anthropic-beta` header. `base_url`, `api_key`, `key_env` (the
    variable to read the key from) and `client` (an `AsyncAnthropic` of your own) say how it is reached,
    `pace` how fast: by default all that use the same key wait when one of them is told to.
    """

    def __init__(
        self,
        model: str,
        *,
        max_tokens: int = MAX_TOKENS_DEFAULT,
        ttl: Ttl = "5m",
        parameters: Mapping[str, Json] | None = None,
        server_tools: Sequence[Mapping[str, Json]] = (),
        betas: Sequence[str] = (),
        base_url: str | None = None,
        api_key: str | None = None,
        key_env: str | None = None,
        client: AsyncAnthropic | None = None,
        clock: Clock | None = None,
        pace: Pace | None = None,
    ) -> None:
        if max_tokens < 1:
            raise AgentMistake(f"max_tokens is {max_tokens}: it has to be at least 1.")
        self.name = f"anthropic:{model}"
        self.row = capabilities(model)
        self._asks = MessagesSettings(model, max_tokens, ttl, tuple(dict(tool) for tool in server_tools))
        self._parameters = dict(parameters or {})
        refuse_reserved(self._parameters, RESERVED)
        self._betas = tuple(betas)
        self._base_url, self._api_key, self._key_env = checked_address(base_url), api_key, key_env
        self._given = client
        self._clients: Clients[AsyncAnthropic] = Clients(self._make)
        self._clock = clock or SystemClock()
        self._pace = pace

    @property
    def pace(self) -> Pace:
        """The gate that this provider's requests go through."""
        return self._pace or pace_of(self.name, self._base_url, "\n".join(self._secrets()))

    @property
    def settings(self) -> Mapping[str, Json]:
        """Everything that goes out beside the prompt, as plain JSON, without keys and addresses."""
        return {
            "wire": "anthropic",
            "max_tokens": self._asks.max_tokens,
            "ttl": self._asks.ttl,
            "server_tools": [dict(tool) for tool in self._asks.server_tools],
            "betas": list(self._betas),
            "parameters": self._parameters,
        }

    def check(self) -> None:
        """Raise `AgentUnusable` when the SDK or the key is missing; nothing is sent."""
        try:
            import anthropic  # noqa: F401 - only whether it is there
        except ImportError:
            raise AgentUnusable(
                f"The model {self.name} needs the Anthropic SDK: install shiftbook[anthropic]."
            ) from None
        if self._given is None:
            self._key()

    async def reply(self, request: Request, emit: Emit) -> Reply:
        """Ask once. Raises `ProviderFault`, `AgentUnusable`, `AgentMistake`; lets cancellation through."""
        self.check()
        sent = body(request, self.row, self._asks, self._parameters)
        try:
            message = await self._message(sent, emit)
            return reply_of(message, ttl=self._asks.ttl)
        except Exception as error:  # noqa: BLE001 - whatever an SDK raises is the provider's fault
            now_ms = self._clock.now_ms()
            raise fault_of(error, self.name, secrets=self._secrets(), now_ms=now_ms) from None

    async def close(self) -> None:
        """Close the running loop's connections; they close by themselves when the loop ends."""
        await self._clients.close()

    async def _message(self, sent: dict[str, Json], emit: Emit) -> dict[str, Any]:
        client = await self._clients.get() if self._given is None else self._given.with_options(max_retries=0)
        assembly = MessageAssembly()
        headers = {"anthropic-beta": ",".join(self._betas)} if self._betas else None
        # The body goes out as it was rendered: the SDK's own walk over its types adds and takes nothing.
        stream = await client.messages.create(
            model=sent["model"],
            max_tokens=sent["max_tokens"],
            messages=[],
            stream=True,
            extra_body=sent,
            extra_headers=headers,
        )
        async with stream:
            async for event in stream:
                told = assembly.take(event.to_dict(warnings=False))
                if told is not None:
                    emit(told)
        if not assembly.is_whole:
            raise cut_short(self.name)
        return assembly.message()

    def _make(self) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(api_key=self._key(), base_url=self._base_url, max_retries=0)

    def _key(self) -> str:
        return find_key(
            self.name,
            given=self._api_key,
            variable=self._key_env,
            usual="ANTHROPIC_API_KEY",
            base_url=self._base_url,
        )

    def _secrets(self) -> list[str]:
        given = (self._given.api_key or "", self._given.auth_token or "") if self._given is not None else ()
        return [*given, self._key() if self._given is None else ""]
