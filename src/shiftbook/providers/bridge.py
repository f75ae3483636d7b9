"""Any other vendor over the models of pydantic-ai: one request, streamed, with all repeating left to us.

    Bridge("google:gemini-3-pro", settings={"max_tokens": 8_000})
    Bridge(MistralModel("mistral-large-latest", provider=...))

One failed `reply` is one HTTP request: the clients' own retries are off, and a second request that an SDK or
pydantic-ai wants to send within one reply is stopped before it leaves. A model whose client cannot be told so
is refused, and so is pydantic-ai's fallback to another model, which here is a new epoch of the run.

The record covers our request; what pydantic-ai makes of it for its vendor is not in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shiftbook.clock import Clock, SystemClock
from shiftbook.errors import AgentMistake, AgentUnusable
from shiftbook.messages import Emit, Json, Reply, Request
from shiftbook.providers import bridge_wire
from shiftbook.providers.bridge_faults import bridged_fault
from shiftbook.providers.capabilities import Capabilities, capabilities
from shiftbook.providers.clients import Clients
from shiftbook.providers.faults import cut_short
from shiftbook.providers.keys import checked_address, find_key
from shiftbook.providers.once import once, watch
from shiftbook.providers.pace import Pace, pace_of
from shiftbook.providers.runs import merged_parameters, refuse_reserved

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider as Vendor

RESERVED = frozenset({"max_retries"})
"""Settings that are ours: how often a request goes out."""

SETTINGS: Mapping[str, Json] = {"cache": True, "framing_announcement": "never"}
"""Settings that hold unless others are given: the vendor's cache is asked for where pydantic-ai knows how,
and it adds no words of its own in front of a prompt, which would move what is cached."""

NO_RETRIES_OF_THEIR_OWN = frozenset({"FunctionModel", "HuggingFaceModel", "TestModel"})
"""Models that take no limit for retries because their client makes none."""

_OF_THINKING = ("thinking", "anthropic_thinking", "anthropic_effort")


class Bridge:
    """A model of pydantic-ai: its name ("vendor:model", as pydantic-ai writes it) or a model object.

    `settings` are pydantic-ai's model settings, those of the vendor included, the agent's own parameters
    above them; see `SETTINGS` for two that hold unless given. `row` says what the model takes where the
    table of `capabilities` does not know it. `base_url`, `api_key` and `key_env` (the variable to read the
    key from) say how a named vendor is reached; without them pydantic-ai reads the vendor's usual variables.
    A model object reaches its vendor by the client that it was made with, in one event loop at a time.
    """

    def __init__(
        self,
        model: Model | str,
        *,
        settings: Mapping[str, Any] | None = None,
        row: Capabilities | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        key_env: str | None = None,
        clock: Clock | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._given = model
        reference = model if isinstance(model, str) else model.model_id
        vendor, colon, of_vendor = reference.partition(":")
        if not colon or not vendor or not of_vendor:
            raise AgentMistake(f"{reference!r} names no model of the bridge: write VENDOR:MODEL.")
        if not isinstance(model, str) and any((base_url, api_key, key_env)):
            raise AgentMistake("A model object has its own client: give the address and the key to that.")
        self.name = f"bridge:{reference}"
        self.row = row or capabilities(of_vendor)
        self._settings = {**SETTINGS, **(settings or {})}
        refuse_reserved(self._settings, RESERVED)
        self._base_url, self._api_key, self._key_env = checked_address(base_url), api_key, key_env
        self._open: Clients[_Open] = Clients(lambda: _Open(self._model()))
        self._clock = clock or SystemClock()
        self._pace = pace

    @property
    def pace(self) -> Pace:
        """The gate that this provider's requests go through; a model object has one of its own."""
        if self._pace is None and not isinstance(self._given, str):
            self._pace = Pace()
        return self._pace or pace_of(self.name, self._base_url, self._api_key or self._key_env or "")

    @property
    def settings(self) -> Mapping[str, Json]:
        """Everything that goes out beside the prompt, as plain JSON; of extra headers only the names."""
        told = dict(self._settings)
        if "extra_headers" in told:
            told["extra_headers"] = sorted(told["extra_headers"])
        return {"wire": "bridge", "settings": told}

    def check(self) -> None:
        """Raise `AgentUnusable` when a package or the key is missing, `AgentMistake` if the model repeats."""
        self._model()

    async def reply(self, request: Request, emit: Emit) -> Reply:
        """Ask once. Raises `ProviderFault`, `AgentUnusable`, `AgentMistake`; lets cancellation through."""
        asks = merged_parameters(request, self._settings, RESERVED)
        held = await self._open.get()
        await held.enter()
        with once():
            watch(_client(held.model))
            try:
                return await self._reply(held.model, request, asks, emit)
            except Exception as error:  # noqa: BLE001 - whatever comes of it is the provider's fault
                secret = getattr(_client(held.model), "api_key", None)
                secrets = [secret] if isinstance(secret, str) else []
                raise bridged_fault(error, self.name, secrets, self._clock.now_ms()) from None

    async def close(self) -> None:
        """Close the running loop's connections; they close by themselves when the loop ends."""
        await self._open.close()

    async def _reply(self, model: Model, request: Request, asks: dict[str, Json], emit: Emit) -> Reply:
        from pydantic_ai.direct import model_request_stream

        quotes = self.row.kept_pairs == "quoted" or (
            self.row.kept_pairs != "native" and any(name in asks for name in _OF_THINKING)
        )
        if "max_retries" not in _innermost(model).unsupported_settings:
            asks = {**asks, "max_retries": 0}
        tools: dict[int, str] = {}
        async with model_request_stream(
            model,
            bridge_wire.messages(request, self.row, self.name, quotes=quotes),
            model_settings=asks,  # type: ignore[arg-type]
            model_request_parameters=bridge_wire.request_parameters(request),
            instrument=False,
        ) as stream:
            async for event in stream:
                if (seen := bridge_wire.told(event, tools)) is not None:
                    emit(seen)
            response = stream.get()
        is_unended = _speaks_chat(model) and "finish_reason" not in (response.provider_details or {})
        if is_unended or response.state in ("incomplete", "interrupted"):
            raise cut_short(self.name)
        return bridge_wire.reply_of(response, self.name)

    # --- the model ---------------------------------------------------------------------------------

    def _model(self) -> Model:
        try:
            from pydantic_ai.exceptions import UserError
            from pydantic_ai.models import infer_model
        except ImportError:
            raise AgentUnusable(
                f"The model {self.name} needs pydantic-ai: install shiftbook[bridge]."
            ) from None
        try:
            model = infer_model(self._given, self._vendor)
        except ImportError as error:
            vendor = self.name.split(":")[1]
            raise AgentUnusable(
                f"The model {self.name} needs the SDK of its vendor ({error.name or 'not installed'}): "
                f"install pydantic-ai-slim[{vendor}]."
            ) from None
        except (UserError, ValueError) as error:
            raise AgentUnusable(f"The model {self.name} cannot be had: {_first_sentence(error)}") from None
        _refuse_repeats(model, self.name)
        return model

    def _vendor(self, vendor: str) -> Vendor[Any]:
        from pydantic_ai.providers import infer_provider, infer_provider_class

        given: dict[str, Any] = {} if self._base_url is None else {"base_url": self._base_url}
        if given or self._api_key is not None or self._key_env is not None:
            given["api_key"] = find_key(
                self.name, given=self._api_key, variable=self._key_env, usual="", base_url=self._base_url
            )
        try:
            made = infer_provider_class(vendor)(**given) if given else infer_provider(vendor)
        except TypeError:
            raise AgentMistake(
                f"The vendor {vendor!r} takes no base_url or api_key here: give the bridge a model object."
            ) from None
        if hasattr(made.client, "max_retries"):
            made.client.max_retries = 0
        return made


class _Open:
    """A model with its connections open for one event loop."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._entering = asyncio.Lock()
        self._is_entered = False

    async def enter(self) -> None:
        async with self._entering:
            if not self._is_entered:
                await self.model.__aenter__()
                self._is_entered = True

    async def close(self) -> None:
        if self._is_entered:
            await self.model.__aexit__(None, None, None)


def _innermost(model: Model) -> Model:
    """The model inside of pydantic-ai's wrappers."""
    while (inner := getattr(model, "wrapped", None)) is not None:
        model = inner
    return model


def _speaks_chat(model: Model) -> bool:
    """Whether a model is of OpenAI's Chat kind, for which pydantic-ai takes a stream cut short as whole.

    By name, so that the OpenAI SDK need not be there.
    """
    return any(kind.__name__ == "OpenAIChatModel" for kind in type(_innermost(model)).__mro__)


def _client(model: Model) -> Any:
    """The vendor's client of a model, None where it has none."""
    vendor = _innermost(model).provider
    return None if vendor is None else vendor.client


def _refuse_repeats(model: Model, name: str) -> None:
    from pydantic_ai.models.fallback import FallbackModel

    kind = _innermost(model)
    if isinstance(kind, FallbackModel):
        raise AgentMistake(
            f"{name} would ask several models for one reply: give one model, and the others to the agent."
        )
    if "max_retries" not in kind.unsupported_settings or type(kind).__name__ in NO_RETRIES_OF_THEIR_OWN:
        return
    config = getattr(getattr(_client(kind), "meta", None), "config", None)
    retries = getattr(config, "retries", None) or {}
    if retries.get("total_max_attempts") != 1:
        raise AgentMistake(
            f"The client of {name} repeats failed requests and no setting stops it: make it with its retries "
            "off (boto3: Config(retries={'total_max_attempts': 1})) and give the bridge the model object."
        )


def _first_sentence(error: Exception) -> str:
    sentence = " ".join(str(error).split()).partition(". ")[0]
    return sentence.removesuffix(".") + "."
