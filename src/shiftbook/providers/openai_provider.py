"""OpenAI and all that speak its wires over the official SDK: one request, streamed, the SDK's retries off.

    OpenAIResponses("gpt-6-sol")
    OpenAIChat("qwen3-coder", base_url="http://localhost:8000/v1")

The SDK is imported when a provider is first used, so that an agent's file is read without it. What is sent
beside the prompt stands in `settings` and is written down with the agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shiftbook.clock import Clock, SystemClock
from shiftbook.errors import AgentMistake, AgentUnusable
from shiftbook.messages import Emit, Json, Reply, Request
from shiftbook.providers import openai_chat_wire as chat_wire
from shiftbook.providers import openai_responses_wire as responses_wire
from shiftbook.providers.capabilities import capabilities
from shiftbook.providers.clients import Clients
from shiftbook.providers.faults import cut_short, fault_of, reported
from shiftbook.providers.keys import checked_address, find_key
from shiftbook.providers.openai_stream import CompletionAssembly, ResponseAssembly
from shiftbook.providers.pace import Pace, pace_of
from shiftbook.providers.runs import refuse_reserved

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class _Endpoint:
    """How an endpoint is reached, and what both wires have in common."""

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None,
        api_key: str | None,
        key_env: str | None,
        client: AsyncOpenAI | None,
        clock: Clock | None,
        pace: Pace | None,
    ) -> None:
        self.name = name
        self._base_url, self._api_key, self._key_env = checked_address(base_url), api_key, key_env
        self._given = client
        self._clients: Clients[AsyncOpenAI] = Clients(self._make)
        self._clock = clock or SystemClock()
        self._pace = pace

    @property
    def pace(self) -> Pace:
        """The gate that its requests go through."""
        return self._pace or pace_of(self.name, self._base_url, self._secret())

    def check(self) -> None:
        """Raise `AgentUnusable` when the SDK or the key is missing; nothing is sent."""
        try:
            import openai  # noqa: F401 - only whether it is there
        except ImportError:
            raise AgentUnusable(
                f"The model {self.name} needs the OpenAI SDK: install shiftbook[openai]."
            ) from None
        if self._given is None:
            self._key()

    async def client(self) -> AsyncOpenAI:
        """The client for the running loop, its own retries off."""
        if self._given is not None:
            return self._given.with_options(max_retries=0)
        return await self._clients.get()

    async def close(self) -> None:
        """Close the running loop's connections."""
        await self._clients.close()

    def fault(self, error: Exception) -> Exception:
        """What an exception of the SDK means, without the key."""
        return fault_of(error, self.name, secrets=[self._secret()], now_ms=self._clock.now_ms())

    def _secret(self) -> str:
        return self._key() if self._given is None else self._given.api_key

    def _make(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI

        return AsyncOpenAI(api_key=self._key(), base_url=self._base_url, max_retries=0)

    def _key(self) -> str:
        return find_key(
            self.name,
            given=self._api_key,
            variable=self._key_env,
            usual="OPENAI_API_KEY",
            base_url=self._base_url,
        )


class OpenAIChat:
    """A model by Chat Completions: OpenAI's, or any endpoint that speaks it, by `base_url`.

    `max_tokens` limits the answer (None: the vendor's limit); `parameters` go out as they are, the agent's
    own above them. With a `base_url` no key is taken from the environment unless `key_env` names one.
    `client` is an `AsyncOpenAI` of your own.
    """

    def __init__(
        self,
        model: str,
        *,
        max_tokens: int | None = None,
        parameters: Mapping[str, Json] | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        key_env: str | None = None,
        client: AsyncOpenAI | None = None,
        clock: Clock | None = None,
        pace: Pace | None = None,
    ) -> None:
        _refuse_limit(max_tokens)
        self.name = f"openai-chat:{model}"
        self.row = capabilities(model)
        self._asks = chat_wire.ChatSettings(model, max_tokens)
        self._parameters = dict(parameters or {})
        refuse_reserved(self._parameters, chat_wire.RESERVED)
        self._endpoint = _Endpoint(
            self.name,
            base_url=base_url,
            api_key=api_key,
            key_env=key_env,
            client=client,
            clock=clock,
            pace=pace,
        )

    @property
    def pace(self) -> Pace:
        """The gate that this provider's requests go through."""
        return self._endpoint.pace

    @property
    def settings(self) -> Mapping[str, Json]:
        """Everything that goes out beside the prompt, as plain JSON, without keys and addresses."""
        return {
            "wire": "openai-chat",
            "max_tokens": self._asks.max_tokens,
            "parameters": self._parameters,
        }

    def check(self) -> None:
        """Raise `AgentUnusable` when the SDK or the key is missing; nothing is sent."""
        self._endpoint.check()

    async def reply(self, request: Request, emit: Emit) -> Reply:
        """Ask once. Raises `ProviderFault`, `AgentUnusable`, `AgentMistake`; lets cancellation through."""
        self.check()
        sent = chat_wire.body(request, self.row, self._asks, self._parameters)
        try:
            completion = await self._completion(sent, emit)
            return chat_wire.reply_of(completion, self.row)
        except Exception as error:  # noqa: BLE001 - whatever an SDK raises is the provider's fault
            raise self._endpoint.fault(error) from None

    async def close(self) -> None:
        """Close the running loop's connections; they close by themselves when the loop ends."""
        await self._endpoint.close()

    async def _completion(self, sent: dict[str, Json], emit: Emit) -> dict[str, Any]:
        client = await self._endpoint.client()
        assembly = CompletionAssembly()
        # The body goes out as it was rendered: the SDK's own walk over its types adds and takes nothing.
        stream = await client.chat.completions.create(
            model=sent["model"],
            messages=[],
            stream=True,
            extra_body={**sent, "stream_options": {"include_usage": True}},
        )
        async with stream:
            async for chunk in stream:
                for told in assembly.take(chunk.to_dict(warnings=False)):
                    emit(told)
        if not assembly.is_whole:
            raise cut_short(self.name)
        return assembly.completion()


class OpenAIResponses:
    """A model by the Responses API, with nothing stored at the vendor.

    `max_tokens` limits answer and reasoning together (None: the vendor's limit); `parameters` go out as they
    are (reasoning, text, ...), the agent's own above them; `server_tools` are tools that the vendor runs, as
    it declares them. With a `base_url` no key is taken from the environment unless `key_env` names one.
    """

    def __init__(
        self,
        model: str,
        *,
        max_tokens: int | None = None,
        parameters: Mapping[str, Json] | None = None,
        server_tools: Sequence[Mapping[str, Json]] = (),
        base_url: str | None = None,
        api_key: str | None = None,
        key_env: str | None = None,
        client: AsyncOpenAI | None = None,
        clock: Clock | None = None,
        pace: Pace | None = None,
    ) -> None:
        _refuse_limit(max_tokens)
        self.name = f"openai:{model}"
        self.row = capabilities(model)
        tools = tuple(dict(tool) for tool in server_tools)
        self._asks = responses_wire.ResponsesSettings(model, max_tokens, tools)
        self._parameters = dict(parameters or {})
        refuse_reserved(self._parameters, responses_wire.RESERVED)
        self._endpoint = _Endpoint(
            self.name,
            base_url=base_url,
            api_key=api_key,
            key_env=key_env,
            client=client,
            clock=clock,
            pace=pace,
        )

    @property
    def pace(self) -> Pace:
        """The gate that this provider's requests go through."""
        return self._endpoint.pace

    @property
    def settings(self) -> Mapping[str, Json]:
        """Everything that goes out beside the prompt, as plain JSON, without keys and addresses."""
        return {
            "wire": "openai-responses",
            "max_tokens": self._asks.max_tokens,
            "server_tools": [dict(tool) for tool in self._asks.server_tools],
            "parameters": self._parameters,
        }

    def check(self) -> None:
        """Raise `AgentUnusable` when the SDK or the key is missing; nothing is sent."""
        self._endpoint.check()

    async def reply(self, request: Request, emit: Emit) -> Reply:
        """Ask once. Raises `ProviderFault`, `AgentUnusable`, `AgentMistake`; lets cancellation through."""
        self.check()
        sent = responses_wire.body(request, self.row, self._asks, self._parameters)
        try:
            return responses_wire.reply_of(await self._response(sent, emit))
        except Exception as error:  # noqa: BLE001 - whatever an SDK raises is the provider's fault
            raise self._endpoint.fault(error) from None

    async def close(self) -> None:
        """Close the running loop's connections; they close by themselves when the loop ends."""
        await self._endpoint.close()

    async def _response(self, sent: dict[str, Json], emit: Emit) -> dict[str, Any]:
        client = await self._endpoint.client()
        assembly = ResponseAssembly()
        # The body goes out as it was rendered: the SDK's own walk over its types adds and takes nothing.
        stream = await client.responses.create(model=sent["model"], input=[], stream=True, extra_body=sent)
        async with stream:
            async for event in stream:
                told = assembly.take(event.to_dict(warnings=False))
                if told is not None:
                    emit(told)
        if assembly.failure is not None:
            raise reported(assembly.failure, self.name)
        if not assembly.is_whole:
            raise cut_short(self.name)
        return assembly.response()


def _refuse_limit(max_tokens: int | None) -> None:
    if max_tokens is not None and max_tokens < 1:
        raise AgentMistake(f"max_tokens is {max_tokens}: it has to be at least 1, or None.")
