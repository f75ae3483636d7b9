"""The providers over the official SDKs against the provider server: one request each, every fault told."""

from __future__ import annotations

import asyncio
import gc
import json
from dataclasses import replace
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from shiftbook.errors import AgentUnusable, ProviderFault
from shiftbook.messages import (
    Call,
    CallDelta,
    Reasoning,
    ReasoningDelta,
    ReplyEvent,
    Text,
    TextDelta,
)
from shiftbook.providers import anthropic_wire, clients, openai_chat_wire, openai_responses_wire
from shiftbook.providers.anthropic_provider import Anthropic
from shiftbook.providers.openai_provider import OpenAIChat, OpenAIResponses
from shiftbook.providers.scripted import call, calls, say
from shiftbook.testing.server import (
    Breaks,
    Cuts,
    Drops,
    Fails,
    Garbles,
    Gate,
    Holds,
    Mistypes,
    ProviderServer,
    Resets,
    think,
    vendor_block,
)
from tests.providers.wires import ANTHROPIC, CHAT, RESPONSES, WIRES, ask, own, request, result, user

KEY = "sk-test-key-1234"
EACH = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
FULL = think("hm hm", calls(call("lookup", {"id": 7}), call("lookup", raw='{"id":  8}'), text="Let me look."))


@EACH
def test_a_reply_streams_as_events_and_comes_back_whole_with_its_usage(wire):
    events: list[ReplyEvent] = []
    with ProviderServer([FULL]) as server:
        reply = ask(wire.at(server), request([user("Go.")]), events)
    (exchange,) = server.exchanges
    assert exchange.refusal is None
    assert exchange.count is not None
    assert exchange.output is not None
    assert exchange.streams
    assert reply.stop == "calls"
    assert "".join(each.text for each in events if isinstance(each, TextDelta)) == "Let me look."
    assert [part.text for part in reply.parts if isinstance(part, Text)] == ["Let me look."]
    made = [part for part in reply.parts if isinstance(part, Call)]
    assert [part.arguments for part in made] == [{"id": 7}, {"id": 8}]
    written = [each for each in events if isinstance(each, CallDelta)]
    assert [each.tool for each in written if not each.arguments_text] == ["lookup", "lookup"]
    assert "".join(each.arguments_text for each in written) == '{"id":7}{"id":  8}'
    assert reply.usage.prompt == exchange.count.prompt
    assert (reply.usage.output, reply.usage.reasoning) == (exchange.output.total, exchange.output.reasoning)
    if wire is not CHAT:
        assert "".join(each.text for each in events if isinstance(each, ReasoningDelta)) == "hm hm"
        assert any(isinstance(part, Reasoning) and part.opaque for part in reply.parts)


@EACH
def test_streamed_is_what_unstreamed_would_have_been(wire):
    with ProviderServer([FULL]) as server:
        provider = wire.at(server)
        reply = ask(provider, request([user("Go.")]))
        whole = server.exchanges[0].answer
    assert whole is not None
    other = {
        "anthropic": lambda: anthropic_wire.reply_of(whole, ttl="5m"),
        "openai-chat": lambda: openai_chat_wire.reply_of(whole, provider.row),
        "openai-responses": lambda: openai_responses_wire.reply_of(whole),
    }[wire.name]()

    def without_letters(part):
        return replace(part, raw=None) if isinstance(part, Call) else part

    assert tuple(map(without_letters, reply.parts)) == tuple(map(without_letters, other.parts))
    assert (reply.stop, reply.usage, reply.model) == (other.stop, other.usage, other.model)


@EACH
def test_j_reasoning_that_the_server_signed_is_accepted_turn_after_turn(wire):
    blocks = [user("Go.")]
    script = [think(f"because {n}", calls(call("lookup", {"id": n}), call("lookup"))) for n in range(4)]
    with ProviderServer([*script, think("done", say("Seven."))]) as server:
        provider = wire.at(server)
        for turn in range(1, 6):
            marks = (1, max(1, len(blocks) - 2)) if turn > 1 else ()
            reply = ask(provider, request(blocks, marks=marks))
            answers = [result(f"{turn}.{n}", "ok") for n in (1, 2)] if turn < 5 else ["thanks"]
            blocks += [own(reply, turn), user(*answers)]
    assert [each.refusal for each in server.exchanges] == [None] * 5
    told = json.dumps(server.exchanges[-1].body)
    assert ("because 0" in told) == (wire is not CHAT)


@EACH
@pytest.mark.parametrize(
    ("turn", "status", "retryable", "wait_ms"),
    [
        (Fails(400), 400, False, None),
        (Fails(403), 403, False, None),
        (Fails(404), 404, False, None),
        (Fails(413), 413, False, None),
        (Fails(429, retry_after_s=7), 429, True, 7_000),
        (Fails(429, retry_after_s=90, as_date=True), 429, True, 90_000),
        (Fails(500), 500, True, None),
        (Fails(503, retry_after_s=0.5), 503, True, 500),
        (Fails(529), 529, True, None),
        (Resets(), None, True, None),
        (Drops(say("x")), None, True, None),
        (Cuts(FULL, "start"), None, True, None),
        (Cuts(FULL, "text"), None, True, None),
        (Cuts(FULL, "call"), None, True, None),
        (Cuts(FULL, "end"), None, True, None),
        (Garbles(FULL, "text"), None, True, None),
        (Mistypes(say("x")), None, True, None),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "__slots__") else str(value),
)
def test_b18_every_failure_is_one_http_request_and_one_fault(wire, turn, status, retryable, wait_ms):
    with ProviderServer([turn, say("after")]) as server:
        provider = wire.at(server)
        with pytest.raises(ProviderFault) as caught:
            ask(provider, request([user("Go.")]))
        assert len(server.exchanges) == 1
        assert server.exchanges[0].retry_count in (0, None)
        fault = caught.value
        assert (fault.status, fault.retryable) == (status, retryable)
        if turn == Fails(429, retry_after_s=90, as_date=True):
            assert fault.retry_after_ms is not None
            assert 88_000 <= fault.retry_after_ms <= 91_000, "a date has whole seconds"
        else:
            assert fault.retry_after_ms == wait_ms
        assert provider.name in str(fault)
        assert KEY not in str(fault)
        assert "\n" not in str(fault)
        if retryable:
            assert ask(provider, request([user("Go.")])).parts == (Text("after"),)


@EACH
@pytest.mark.parametrize("where", ["start", "text", "call"])
@pytest.mark.parametrize(("status", "retryable"), [(529, True), (500, True), (429, True)])
def test_an_error_in_the_middle_of_a_stream_is_told_by_its_kind(wire, where, status, retryable):
    events: list[ReplyEvent] = []
    with ProviderServer([Breaks(FULL, where, status, "try later")]) as server:
        with pytest.raises(ProviderFault, match="try later") as caught:
            ask(wire.at(server), request([user("Go.")]), events)
        assert len(server.exchanges) == 1
    assert caught.value.retryable is retryable
    assert bool([each for each in events if isinstance(each, TextDelta)]) == (where != "start")


@EACH
def test_a_wrong_key_is_one_clear_sentence_without_the_key(wire):
    sentence = pytest.raises(ProviderFault, match=r"answered 401: .* The key was not accepted")
    with ProviderServer([say("x")], keys=["sk-right"]) as server, sentence as caught:
        ask(wire.at(server), request([user("Go.")]))
    assert caught.value.status == 401
    assert not caught.value.retryable
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert "request" not in vars(caught.value)


@EACH
def test_an_unknown_model_is_one_clear_sentence(wire):
    sentence = pytest.raises(ProviderFault, match=r"answered 404: .*model.* Check the model's name")
    with ProviderServer([say("x")], models=["another"]) as server, sentence as caught:
        ask(wire.at(server), request([user("Go.")]))
    assert not caught.value.retryable


@EACH
def test_nobody_listening_is_a_fault_that_a_retry_may_mend(wire):
    with ProviderServer([say("x")]) as server:
        provider = wire.at(server)
        with server.refusing(), pytest.raises(ProviderFault, match="the connection failed") as caught:
            ask(provider, request([user("Go.")]))
        assert caught.value.retryable
        assert ask(provider, request([user("Go.")])).parts == (Text("x"),)


@EACH
@pytest.mark.parametrize("where", [None, "text", "end"])
def test_cancellation_goes_through_and_closes_the_connection(wire, where):
    gate = Gate()
    with ProviderServer([Holds(FULL, gate, where)]) as server:
        provider = wire.at(server)

        async def scenario() -> None:
            task = asyncio.create_task(provider.reply(request([user("Go.")]), lambda _: None))
            await asyncio.to_thread(gate.arrived.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(scenario())
        gate.open()
    assert len(server.exchanges) == 1
    assert server.exchanges[0].ended in ("left", "cut")


@EACH
def test_one_provider_serves_several_loops_and_leaves_nothing_open(wire):
    with ProviderServer(lambda _: say("x")) as server:
        provider = wire.at(server)
        for _ in range(3):
            assert ask(provider, request([user("Go.")])).parts == (Text("x"),)

        async def both() -> None:
            await asyncio.gather(*(provider.reply(request([user("Go.")]), lambda _: None) for _ in range(4)))
            await provider.close()
            await provider.reply(request([user("Go.")]), lambda _: None)
            dropped = wire.at(server)
            await dropped.reply(request([user("Go.")]), lambda _: None)
            del dropped
            gc.collect()

        asyncio.run(both())
        gc.collect()  # an unclosed connection would be told here, and warnings are errors
    assert len(server.exchanges) == 9
    assert not clients._HELD


@EACH
def test_a_client_of_ones_own_is_used_with_its_retries_off(wire):
    with ProviderServer([Fails(500), say("x")]) as server:

        async def scenario() -> None:
            given: Any
            if wire is ANTHROPIC:
                given = AsyncAnthropic(base_url=server.anthropic_url, api_key=KEY, max_retries=5)
            else:
                given = AsyncOpenAI(base_url=server.openai_url, api_key=KEY, max_retries=5)
            async with given as client:
                provider = wire.provider(wire.model, client=client)
                with pytest.raises(ProviderFault):
                    await provider.reply(request([user("Go.")]), lambda _: None)

        asyncio.run(scenario())
    assert len(server.exchanges) == 1


def test_pause_and_the_vendors_own_tools_on_the_real_wire():
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    paused = replace(say("Searching."), parts=(Text("Searching."), vendor_block(search)), stop="pause")
    ended = replace(say("Found."), parts=(vendor_block(found), Text("Found.")))
    with ProviderServer([paused, ended]) as server:
        provider = ANTHROPIC.at(server, server_tools=[{"type": "web_search_20250305", "name": "web_search"}])
        first = ask(provider, request([user("Go.")]))
        assert first.stop == "pause"
        assert first.parts[1] == Reasoning("", search)
        second = ask(provider, request([user("Go."), replace(own(first, 1), parts=first.parts)]))
    assert second.parts == (Reasoning("", found), Text("Found."))
    assert [each.refusal for each in server.exchanges] == [None, None]
    assert server.exchanges[0].said["tools"][-1] == {"type": "web_search_20250305", "name": "web_search"}


VARIABLES = {Anthropic: "ANTHROPIC_API_KEY", OpenAIChat: "OPENAI_API_KEY", OpenAIResponses: "OPENAI_API_KEY"}


@pytest.mark.parametrize("kind", VARIABLES, ids=lambda kind: kind.__name__)
def test_a_missing_key_is_one_sentence_before_anything_is_sent(kind, monkeypatch):
    monkeypatch.delenv(VARIABLES[kind], raising=False)
    provider = kind("m")
    for asked in (provider.check, lambda: ask(provider, request([user("Go.")]))):
        with pytest.raises(AgentUnusable, match=f"needs a key: set {VARIABLES[kind]} in the environment"):
            asked()
    monkeypatch.setenv(VARIABLES[kind], " ")
    with pytest.raises(AgentUnusable):
        provider.check()
    monkeypatch.setenv(VARIABLES[kind], "sk-1")
    provider.check()
    with pytest.raises(AgentUnusable, match="set MY_KEY"):
        kind("m", key_env="MY_KEY").check()


@EACH
def test_a_vendors_key_in_the_environment_is_not_sent_to_another_address(wire, monkeypatch):
    monkeypatch.setenv(VARIABLES[wire.provider], "sk-of-the-vendor")
    with ProviderServer([say("x"), say("y")]) as server:
        ask(wire.at(server, api_key=None), request([user("Go.")]))
        monkeypatch.setenv("MY_KEY", "sk-mine")
        ask(wire.at(server, api_key=None, key_env="MY_KEY"), request([user("Go.")]))
    first, second = (json.dumps(dict(each.headers)) for each in server.exchanges)
    assert "sk-of-the-vendor" not in first
    assert "sk-mine" in second


@pytest.mark.parametrize(
    ("kind", "module", "extra"),
    [
        (Anthropic, "anthropic", "anthropic"),
        (OpenAIChat, "openai", "openai"),
        (OpenAIResponses, "openai", "openai"),
    ],
)
def test_a_missing_sdk_names_its_extra(kind, module, extra, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(AgentUnusable, match=rf"install shiftbook\[{extra}\]"):
        kind("m", api_key="sk-1").check()


@pytest.mark.parametrize("wire", [ANTHROPIC, RESPONSES], ids=lambda wire: wire.name)
def test_settings_hold_all_that_goes_out_beside_the_prompt_and_no_secret(wire):
    more: dict[str, Any] = {"server_tools": [{"type": "web_search_20250305", "name": "web_search"}]}
    more["parameters"] = {"temperature": 1}
    with ProviderServer([say("x")]) as server:
        provider = wire.at(server, max_tokens=77, **more)
        ask(provider, request([user("Go.")]))
    sent = server.exchanges[0].said
    told = json.dumps(provider.settings)
    assert "web_search_20250305" in told
    assert KEY not in told
    assert "127.0.0.1" not in told
    for name in sent.keys() - {"model", "messages", "input", "system", "stream", "store", "include"}:
        if name in ("tools", "prompt_cache_key", "prompt_cache_options"):
            continue  # made from the prompt and the run, by the row of the model
        assert str(sent[name]) in told, f"{name} goes out and is not written down"
