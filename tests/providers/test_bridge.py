"""The bridge over pydantic-ai: what is sent and what comes back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.usage import RequestUsage

import shiftbook
from shiftbook.economics.cache_rules import MarkerRule
from shiftbook.economics.cache_vendors import cache_rule
from shiftbook.messages import Call, CallDelta, Reasoning, ReasoningDelta, Text, TextDelta, Usage
from shiftbook.providers import bridge_wire
from shiftbook.providers.capabilities import UNKNOWN, capabilities
from shiftbook.providers.scripted import call, calls, say
from shiftbook.testing.server import (
    ProviderServer,
    think,
)
from tests.providers.over import CHAT, CLAUDE, RESPONSES, Over
from tests.providers.wires import IMAGE, LOOKUP, ask, assistant, leaves, own, request, result, user

EACH = pytest.mark.parametrize("over", [CLAUDE, CHAT, RESPONSES], ids=lambda over: over.reference)


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
        kept = replace(
            own(first, 1),
            parts=tuple(replace(p, vendor=None) for p in own(first, 1).parts if isinstance(p, Call)),
        )
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
        said = [leaves(dict(each.said)) for each in server.exchanges]
    for earlier, later in pairwise(said):
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
    rule = cache_rule("claude-sonnet-5-5")
    assert isinstance(rule, MarkerRule)
    rule = replace(rule, minimum=1)
    blocks = [user("Go. " * 200)]
    with ProviderServer([call("lookup", {"id": number}) for number in range(5)], rule=rule) as server:
        bridge = CLAUDE.at(server)
        usages = []
        for turn in range(1, 6):
            reply = ask(bridge, request(blocks))
            usages.append(reply.usage)
            blocks += [own(reply, turn), user(result(f"{turn}.1", "seven " * 50))]
        counts = [dict(each.answer or {})["usage"] for each in server.exchanges]
    for usage, count in zip(usages, counts, strict=True):
        written = count["cache_creation_input_tokens"]
        assert usage.prompt == count["input_tokens"] + count["cache_read_input_tokens"] + written
        assert usage.cache_read == count["cache_read_input_tokens"]
        assert (usage.cache_write_5m, usage.cache_write_1h) == (written, 0)
        assert usage.output == count["output_tokens"]
    reads = [usage.cache_read or 0 for usage in usages]
    assert reads[0] == 0
    assert all(later > earlier for earlier, later in pairwise(reads))
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
        ask(bridge, request([user("Go. " * 2_000)]))
        usage = ask(bridge, request([user("Go. " * 2_000)])).usage
        told = dict(server.exchanges[1].answer or {})["usage"]
    prompt = told.get("prompt_tokens") or told["input_tokens"]
    details = told.get("prompt_tokens_details") or told["input_tokens_details"]
    assert usage.prompt == prompt
    assert usage.cache_read == details["cached_tokens"]
    assert usage.uncached == prompt - details["cached_tokens"] - details.get("cache_write_tokens", 0)


def test_streamed_reasoning_and_words_are_told_apart():
    events: list[Any] = []
    with ProviderServer([think("Hm.", say("Hello."))]) as server:
        ask(CLAUDE.at(server), request([user("Go.")]), events)
    assert "".join(each.text for each in events if isinstance(each, ReasoningDelta)) == "Hm."
    assert "".join(each.text for each in events if isinstance(each, TextDelta)) == "Hello."


@EACH
def test_a_whole_run_goes_over_the_bridge_and_moves_to_another_vendor(over):
    """Reasoning, ids and settings pass through the journal; the run is taken up at another vendor."""

    @shiftbook.tool(repeat="safe")
    def lookup(number: int) -> str:
        """Looks a number up."""
        return f"found {number}"

    def agent(model: Any) -> shiftbook.Agent:
        return shiftbook.Agent(name="desk", model=model, tools=[lookup], instructions="Be brief.")

    async def scenario() -> None:
        script = [
            think("Hm.", call("lookup", {"number": n})) if over is CLAUDE else call("lookup", {"number": n})
            for n in (1, 2)
        ]
        store = await shiftbook.open_store(":memory:")
        async with ProviderServer([*script, say("Done."), say("Here too.")]) as server:
            async with await shiftbook.start(store, agent(over.at(server)), "Go.") as run:
                assert (await run.finish()).state == "finished"
            other = CHAT if over is not CHAT else CLAUDE
            async with await shiftbook.resume(store, run.id, agent(other.at(server))) as again:
                await again.say("And there?")
                assert (await again.finish()).state == "finished"
            assert [each.rule for each in server.exchanges] == [None] * 4
        await store.close()

    asyncio.run(scenario())
