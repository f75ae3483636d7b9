"""The bridge over pydantic-ai: what is sent, what comes back, and that one failed call is one HTTP request."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from shiftbook.economics.cache_vendors import cache_rule
from shiftbook.errors import AgentMistake, AgentUnusable, ProviderFault
from shiftbook.messages import Call, CallDelta, Reasoning, ReasoningDelta, Text, TextDelta, Usage
from shiftbook.providers import bridge_wire
from shiftbook.providers.bridge import Bridge
from shiftbook.providers.capabilities import UNKNOWN, capabilities
from shiftbook.providers.scripted import call, calls, say
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
    think,
)
from tests.providers.wires import IMAGE, LOOKUP, ask, assistant, leaves, own, request, result, user

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
                with pytest.raises(ProviderFault):
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
def test_words_and_calls_stream_and_come_back_under_our_ids(over):
    events: list[Any] = []
    both = calls(call("lookup", {"id": 1}), call("lookup", {"id": 2}))
    with ProviderServer([both, say("Seven and nine.")]) as server:
        bridge = over.at(server)
        first = ask(bridge, request([user("Look up 1 and 2.")]), events)
        assert first.stop == "calls"
        assert [part.arguments for part in first.parts if isinstance(part, Call)] == [{"id": 1}, {"id": 2}]
        assert {each.tool for each in events if isinstance(each, CallDelta)} == {"lookup"}
        blocks = [
            user("Look up 1 and 2."),
            own(first, 1),
            user(result("1.1", "seven"), result("1.2", "no", error=True)),
        ]
        second = ask(bridge, request(blocks))
        assert [each.rule for each in server.exchanges] == [None, None]
    assert second.parts[-1] == Text("Seven and nine.")
    assert second.stop == "end"
    vendors = [part.vendor["id"] for part in first.parts if isinstance(part, Call)]
    body = str(server.exchanges[1].said)
    assert all(each in body for each in vendors)
    assert "1.1" not in body


@EACH
def test_after_a_rebuild_calls_have_our_ids_and_nothing_of_the_vendors(over):
    with ProviderServer([call("lookup", {"id": 1}), say("x")]) as server:
        bridge = over.at(server)
        first = ask(bridge, request([user("Go.")]))
        kept = replace(own(first, 1), parts=tuple(replace(p, vendor=None) for p in own(first, 1).parts))
        ask(bridge, request([user("Go."), kept, user(result("1.1", "seven"))]))
        assert [each.rule for each in server.exchanges] == [None, None]
    assert "call_1_1" in str(server.exchanges[1].said)


@pytest.mark.parametrize("over", [CLAUDE, RESPONSES], ids=lambda over: over.reference)
@pytest.mark.parametrize("redacted", [False, True])
def test_reasoning_goes_back_verbatim_and_to_no_other_model(over, redacted):
    """The server verifies the signature against the exact prefix, so what it takes came back whole."""
    script = [think("Hm, seven.", call("lookup", {"id": 1}), redacted=redacted), say("x"), say("y")]
    with ProviderServer(script) as server:
        bridge = over.at(server)
        first = ask(bridge, request([user("Go.")]))
        thought = [part for part in first.parts if isinstance(part, Reasoning) and "part" in part.opaque]
        assert len(thought) == 1
        blocks = [user("Go."), own(first, 1), user(result("1.1", "seven"))]
        ask(bridge, request(blocks))
        sent = str(server.exchanges[1].said)
        assert [each.rule for each in server.exchanges] == [None, None]
        signed = str(thought[0].opaque["part"]["signature"])
        assert signed in sent
        other = replace_model(over).at(server)
        ask(other, request(blocks))
        assert server.exchanges[2].rule is None
        assert signed not in str(server.exchanges[2].said)
        assert "Hm, seven" not in str(server.exchanges[2].said)


def replace_model(over: Over) -> Over:
    return replace(over, reference=over.reference.replace("sonnet", "opus").replace("sol", "luna"))


def test_reasoning_that_nothing_vouches_for_is_not_sent_as_words():
    response = ModelResponse([ThinkingPart("Only a thought."), TextPart("Done.")], finish_reason="stop")
    reply = bridge_wire.reply_of(response, "bridge:x:y")
    assert reply.parts == (Reasoning("Only a thought."), Text("Done."))
    asked = request([user("Go."), assistant(*reply.parts), user("On.")])
    assert "Only a thought" not in str(bridge_wire.messages(asked, UNKNOWN, "bridge:x:y", quotes=False))


def test_what_a_vendor_says_of_a_text_goes_back_with_it_or_not_at_all():
    part = TextPart("Done.", provider_name="google", provider_details={"thought_signature": "abc"})
    reply = bridge_wire.reply_of(ModelResponse([part], finish_reason="stop"), "bridge:google:g")
    asked = request([user("Go."), assistant(*reply.parts), user("On.")])
    row = replace(UNKNOWN, reasoning="signed")
    same = bridge_wire.messages(asked, row, "bridge:google:g", quotes=False)
    assert same[1].parts == [part]
    other = bridge_wire.messages(asked, row, "bridge:google:h", quotes=False)
    assert other[1].parts == [TextPart("Done.")]


def test_a_signature_on_a_call_goes_back_with_it():
    part = ToolCallPart("lookup", {"id": 1}, "c1", provider_name="google", provider_details={"t": "abc"})
    reply = bridge_wire.reply_of(ModelResponse([part], finish_reason="stop"), "bridge:google:g")
    assert reply.stop == "calls"
    row = capabilities("gemini-3")
    asked = request([user("Go."), own(reply, 1), user(result("1.1", "seven"))])
    assert bridge_wire.messages(asked, row, "bridge:google:g", quotes=False)[1].parts == [part]


def test_broken_arguments_are_kept_as_they_came():
    part = ToolCallPart("lookup", '{"id": NaN', "c1")
    (got,) = bridge_wire.reply_of(ModelResponse([part]), "b").parts
    assert isinstance(got, Call)
    assert (got.arguments, got.raw) == (None, '{"id": NaN')


@EACH
def test_the_messages_of_a_request_are_the_beginning_of_the_next_ones(over):
    script = [call("lookup", {"id": number}) for number in range(6)]
    blocks = [user("Go.", IMAGE)]
    with ProviderServer(script) as server:
        bridge = over.at(server)
        for turn in range(1, 7):
            reply = ask(bridge, request(blocks, marks=tuple({1, len(blocks)})))
            blocks += [own(reply, turn), user(result(f"{turn}.1", f"answer {turn}"))]
        said = [leaves(each.said) for each in server.exchanges]
    for earlier, later in zip(said, said[1:], strict=False):
        assert later[: len(earlier)] == earlier


def test_messages_are_a_function_of_the_request_alone():
    asked = request([user("Go."), assistant(Call("1.1", "lookup", {"id": 1})), user(result("1.1", "x"))])
    first, second = (bridge_wire.messages(asked, UNKNOWN, "b", quotes=False) for _ in range(2))
    assert first == second
    shuffled = replace(asked, tools=(replace(LOOKUP, name="z"), LOOKUP))
    turned = replace(asked, tools=(LOOKUP, replace(LOOKUP, name="z")))
    assert bridge_wire.request_parameters(shuffled) == bridge_wire.request_parameters(turned)


def test_the_vendors_cache_is_asked_for_and_its_figures_are_earned():
    """Claude under the bridge: reads grow with the prompt, and no token is counted twice."""
    rule = replace(cache_rule("claude-sonnet-5-5"), minimum=1)
    blocks = [user("Go. " * 200)]
    with ProviderServer([call("lookup", {"id": number}) for number in range(5)], rule=rule) as server:
        bridge = CLAUDE.at(server)
        usages = []
        for turn in range(1, 6):
            reply = ask(bridge, request(blocks))
            usages.append(reply.usage)
            blocks += [own(reply, turn), user(result(f"{turn}.1", "seven " * 50))]
        counts = [each.answer["usage"] for each in server.exchanges]
    for usage, count in zip(usages, counts, strict=True):
        written = count["cache_creation_input_tokens"]
        assert usage.prompt == count["input_tokens"] + count["cache_read_input_tokens"] + written
        assert usage.cache_read == count["cache_read_input_tokens"]
        assert (usage.cache_write_5m, usage.cache_write_1h) == (written, 0)
        assert usage.output == count["output_tokens"]
    reads = [usage.cache_read for usage in usages]
    assert reads[0] == 0
    assert all(later > earlier for earlier, later in zip(reads, reads[1:], strict=False))
    assert reads[-1] == usages[-2].prompt


def test_without_a_cache_setting_of_ours_none_is_asked_for():
    with ProviderServer([say("x")]) as server:
        ask(CLAUDE.at(server, settings={"cache": False}), request([user("Go.")]))
    assert "cache_control" not in str(server.exchanges[0].said)


@pytest.mark.parametrize(
    ("told", "normal"),
    [
        (RequestUsage(unmeasured_requests=1), Usage()),
        (RequestUsage(), Usage()),
        (RequestUsage(input_tokens=100, output_tokens=5), Usage(uncached=100, output=5)),
        (
            RequestUsage(input_tokens=100, cache_read_tokens=0, output_tokens=5),
            Usage(uncached=100, cache_read=0, output=5),
        ),
        (
            RequestUsage(input_tokens=100, cache_read_tokens=60, cache_write_tokens=30, output_tokens=5),
            Usage(uncached=10, cache_read=60, cache_write_5m=30, cache_write_1h=0, output=5),
        ),
        (
            RequestUsage(
                input_tokens=100, cache_write_tokens=30, cache_write_1h_tokens=20, output_reasoning_tokens=4
            ),
            Usage(uncached=70, cache_write_5m=10, cache_write_1h=20),
        ),
        (
            RequestUsage(input_tokens=100, cache_read_tokens=60, cache_write_tokens=50, output_tokens=5),
            Usage(uncached=100, output=5),
        ),
        (
            RequestUsage(input_tokens=9, output_tokens=5, details={"reasoning_tokens": 3}),
            Usage(uncached=9, output=5, reasoning=3),
        ),
    ],
)
def test_usage_has_one_normal_form(told, normal):
    assert bridge_wire.usage_of(told) == normal


@pytest.mark.parametrize("over", [CHAT, RESPONSES], ids=lambda over: over.reference)
def test_usage_over_the_wire_counts_cached_tokens_once(over):
    with ProviderServer([say("x"), say("y")]) as server:
        bridge = over.at(server)
        for _ in range(2):
            usage = ask(bridge, request([user("Go. " * 2_000)])).usage
        told = server.exchanges[1].answer["usage"]
    prompt = told.get("prompt_tokens") or told["input_tokens"]
    details = told.get("prompt_tokens_details") or told["input_tokens_details"]
    assert usage.prompt == prompt
    assert usage.cache_read == details["cached_tokens"]
    assert usage.uncached == prompt - details["cached_tokens"] - details.get("cache_write_tokens", 0)


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
        del bridge
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            gc.collect()
    assert len(server.exchanges) == 6


def test_streamed_reasoning_and_words_are_told_apart():
    events: list[Any] = []
    with ProviderServer([think("Hm.", say("Hello."))]) as server:
        ask(CLAUDE.at(server), request([user("Go.")]), events)
    assert "".join(each.text for each in events if isinstance(each, ReasoningDelta)) == "Hm."
    assert "".join(each.text for each in events if isinstance(each, TextDelta)) == "Hello."


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


@pytest.mark.parametrize("where", ["settings", "parameters"])
def test_retries_are_not_for_settings_to_turn_on(where):
    with pytest.raises(AgentMistake, match="'max_retries' is filled"):
        if where == "settings":
            Bridge("google:gemini-3", settings={"max_retries": 3})
        else:
            with ProviderServer([say("x")]) as server:
                ask(CHAT.at(server), request([user("Go.")], parameters={"max_retries": 3}))
