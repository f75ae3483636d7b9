"""The bridge over pydantic-ai: one HTTP request for one failed call, and what cannot be had."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import Any

import pytest
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel

from shiftbook.errors import AgentMistake, AgentUnusable, ProviderFault
from shiftbook.messages import Text, TextDelta
from shiftbook.providers.bridge import Bridge
from shiftbook.providers.scripted import say
from shiftbook.testing.server import (
    Breaks,
    Cuts,
    Drops,
    Fails,
    Gate,
    Holds,
    Mistypes,
    ProviderServer,
    Resets,
)
from tests.providers.over import CHAT, CLAUDE, COMPATIBLE, KEY, RESPONSES
from tests.providers.wires import ask, request, user

EACH = pytest.mark.parametrize("over", [CLAUDE, CHAT, RESPONSES], ids=lambda over: over.reference)


@EACH
@pytest.mark.parametrize(
    ("status", "retryable"), [(400, False), (401, False), (429, True), (500, True), (503, True), (529, True)]
)
def test_one_failed_call_is_one_http_request(over, status, retryable):
    with ProviderServer([Fails(status, retry_after_s=7 if status in (429, 529) else None)]) as server:
        with pytest.raises(ProviderFault, match=f"answered {status}") as caught:
            ask(over.at(server), request([user("Go.")]))
        assert len(server.exchanges) == 1
    assert caught.value.retryable is retryable
    assert caught.value.status == status
    assert caught.value.retry_after_ms == (7_000 if status in (429, 529) else None)


@EACH
@pytest.mark.parametrize("trouble", [Resets(), Drops(say("x")), Mistypes(say("x")), Cuts(say("x"), "text")])
def test_a_broken_connection_is_one_request_too(over, trouble):
    with ProviderServer([trouble]) as server:
        with pytest.raises(ProviderFault) as caught:
            ask(over.at(server), request([user("Go.")]))
        assert len(server.exchanges) == 1
    assert caught.value.retryable


@EACH
def test_a_reply_that_ends_before_its_end_is_no_reply(over):
    with ProviderServer([Cuts(say("x"), "end")]) as server, pytest.raises(ProviderFault) as caught:
        ask(over.at(server), request([user("Go.")]))
    assert caught.value.retryable


@EACH
def test_an_error_within_a_stream_has_its_words_and_what_came_before(over):
    events: list[Any] = []
    with ProviderServer([Breaks(say("Hello there."), "text", 529, "try later")]) as server:
        with pytest.raises(ProviderFault, match="try later") as caught:
            ask(over.at(server), request([user("Go.")]), events)
        assert len(server.exchanges) == 1
    assert caught.value.retryable
    assert any(isinstance(each, TextDelta) for each in events)


def test_a_model_object_with_retries_of_its_own_does_not_use_them():
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    with ProviderServer([Fails(500), say("x")]) as server:

        async def scenario() -> None:
            async with AsyncOpenAI(api_key=KEY, base_url=server.openai_url, max_retries=5) as client:
                model = OpenAIChatModel("gpt-4.1", provider=OpenAIProvider(openai_client=client))
                bridge = Bridge(model)
                with pytest.raises(ProviderFault, match="answered 500"):
                    await bridge.reply(request([user("Go.")]), lambda _: None)
                assert len(server.exchanges) == 1
                assert (await bridge.reply(request([user("Go.")]), lambda _: None)).parts == (Text("x"),)
                assert bridge.name == "bridge:openai:gpt-4.1"

        asyncio.run(scenario())


def test_a_second_request_that_the_library_itself_sends_is_stopped():
    """pydantic-ai asks a Claude again, by itself, without reasoning that the vendor calls stale."""
    stale = "messages.1.content.0: The block is bound to a different conversation"
    with ProviderServer([Fails(400, stale), say("x")]) as server:
        with pytest.raises(ProviderFault, match="own second one was stopped") as caught:
            ask(CLAUDE.at(server), request([user("Go.")]))
        assert len(server.exchanges) == 1
    assert not caught.value.retryable


@EACH
def test_a_key_is_in_no_message_and_in_no_setting(over):
    with ProviderServer([say("x")], keys=["sk-right"]) as server:
        bridge = over.at(server, settings={"extra_headers": {"x-secret": "hush"}})
        with pytest.raises(ProviderFault, match="answered 401") as caught:
            ask(bridge, request([user("Go.")]))
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert "hush" not in str(bridge.settings)
    assert KEY not in str(bridge.settings)
    assert "127.0.0.1" not in str(bridge.settings)


@EACH
def test_cancellation_goes_through_and_closes_the_connection(over):
    gate = Gate()
    with ProviderServer([Holds(say("x"), gate)]) as server:
        bridge = over.at(server)

        async def scenario() -> None:
            task = asyncio.create_task(bridge.reply(request([user("Go.")]), lambda _: None))
            await asyncio.to_thread(gate.arrived.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(scenario())
        gate.open()
    assert len(server.exchanges) == 1


@EACH
def test_one_bridge_serves_several_loops_and_leaves_nothing_open(over):
    with ProviderServer(lambda _: say("x")) as server:
        bridge = over.at(server)
        for _ in range(2):
            assert ask(bridge, request([user("Go.")])).parts[-1] == Text("x")

        async def both() -> None:
            await asyncio.gather(*(bridge.reply(request([user("Go.")]), lambda _: None) for _ in range(3)))
            await bridge.close()
            await bridge.reply(request([user("Go.")]), lambda _: None)

        asyncio.run(both())
        gc.collect()  # an unclosed connection would be told here, and warnings are errors
    assert len(server.exchanges) == 6


# --- what cannot be had ----------------------------------------------------------------------------


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_ai.exceptions", None)
    with pytest.raises(AgentUnusable, match=r"needs pydantic-ai: install shiftbook\[bridge\]"):
        Bridge("google:gemini-3").check()


def test_a_missing_sdk_of_a_vendor_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "anthropic", None)
    monkeypatch.delitem(sys.modules, "pydantic_ai.providers.anthropic", raising=False)
    with pytest.raises(AgentUnusable, match=r"needs the SDK of its vendor .*pydantic-ai-slim\[anthropic\]"):
        Bridge("anthropic:claude-sonnet-5-5", api_key=KEY).check()


def test_a_missing_key_is_one_sentence(monkeypatch):
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    with pytest.raises(AgentUnusable, match=r"cannot be had: .*DEEPSEEK_API_KEY") as caught:
        Bridge(COMPATIBLE.reference).check()
    assert str(caught.value).count(". ") == 0
    with pytest.raises(AgentUnusable, match="set MY_KEY in the environment"):
        Bridge(COMPATIBLE.reference, key_env="MY_KEY").check()


def test_a_vendors_key_is_not_sent_to_another_address(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-vendor")
    with ProviderServer([say("x")]) as server:
        ask(CHAT.at(server, api_key=None), request([user("Go.")]))
    assert "sk-of-the-vendor" not in str(dict(server.exchanges[0].headers))


@pytest.mark.parametrize("reference", ["gemini-3", ":x", "x:", ""])
def test_a_reference_without_vendor_or_model_is_a_mistake(reference):
    with pytest.raises(AgentMistake, match="write VENDOR:MODEL"):
        Bridge(reference)


def test_an_unknown_vendor_is_one_sentence():
    with pytest.raises(AgentUnusable, match="cannot be had"):
        Bridge("nobody:model").check()


def test_a_model_that_asks_several_is_refused():
    async def answer(messages: Any, info: Any) -> Any:
        yield "x"

    one = FunctionModel(stream_function=answer)
    with pytest.raises(AgentMistake, match="would ask several models"):
        Bridge(FallbackModel(one, one)).check()
    assert ask(Bridge(one), request([user("Go.")])).parts == (Text("x"),)


def test_a_model_whose_client_repeats_is_refused():
    class Repeating(FunctionModel):
        unsupported_settings = frozenset({"max_retries"})

    async def answer(messages: Any, info: Any) -> Any:
        yield "x"

    with pytest.raises(AgentMistake, match="repeats failed requests and no setting stops it"):
        Bridge(Repeating(stream_function=answer)).check()


def test_retries_are_not_for_settings_to_turn_on():
    with pytest.raises(AgentMistake, match="'max_retries' is filled"):
        Bridge("google:gemini-3", settings={"max_retries": 3})
    with ProviderServer([say("x")]) as server:
        bridge = CHAT.at(server)
        with pytest.raises(AgentMistake, match="'max_retries' is filled"):
            ask(bridge, request([user("Go.")], parameters={"max_retries": 3}))
    assert not server.exchanges
