"""The vendors' own clients talk to the server unchanged: plain, streamed, calls, reasoning, figures."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import openai
import pytest

from shiftbook.economics.usage_forms import anthropic as anthropic_usage
from shiftbook.economics.usage_forms import openai_chat, openai_responses
from shiftbook.messages import Reply, StopReason, Text
from shiftbook.providers.scripted import call, calls, say
from shiftbook.testing.server import ProviderServer, think, vendor_block
from tests.server.bodies import CLAUDE, GPT, flat_function, function, tool
from tests.server.clients import claude, gpt

LONG = "It was seven, and it has been seven ever since the first of the month."
TWO = calls(call("lookup", {"id": 7}), call("lookup", {"id": "\u00fc"}), text="I look twice.")


def ask_claude(client, messages, *, streamed: bool):
    asked = {"model": CLAUDE, "max_tokens": 500, "messages": messages, "tools": [tool()]}
    if not streamed:
        return client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        return stream.get_final_message()


@pytest.mark.parametrize("streamed", [False, True])
def test_anthropic_goes_through_a_tool_loop_with_reasoning(streamed: bool) -> None:
    script = [think("Two of them, then.", TWO), think("", say(LONG), redacted=True), say("Yes.")]
    with ProviderServer(script) as server, claude(server) as client:
        messages: list[Any] = [{"role": "user", "content": "How many?"}]
        first = ask_claude(client, messages, streamed=streamed)
        assert [block.type for block in first.content] == ["thinking", "text", "tool_use", "tool_use"]
        assert first.content[0].thinking == "Two of them, then."
        assert [block.input for block in first.content[2:]] == [{"id": 7}, {"id": "\u00fc"}]
        assert first.stop_reason == "tool_use"
        results = [{"type": "tool_result", "tool_use_id": b.id, "content": "7"} for b in first.content[2:]]
        messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
        second = ask_claude(client, messages, streamed=streamed)
        assert [block.type for block in second.content] == ["redacted_thinking", "text"]
        assert second.content[1].text == LONG
        messages += [{"role": "assistant", "content": second.content}, {"role": "user", "content": "Sure?"}]
        third = ask_claude(client, messages, streamed=streamed)
        assert third.content[0].text == "Yes."
        assert third.stop_reason == "end_turn"
    assert [exchange.rule for exchange in server.exchanges] == [None, None, None]
    assert [exchange.ended for exchange in server.exchanges] == ["whole"] * 3
    for reply, exchange in zip((first, second, third), server.exchanges, strict=True):
        assert anthropic_usage(reply.usage.model_dump(exclude_none=True)) == exchange.usage


@pytest.mark.parametrize("streamed", [False, True])
def test_chat_goes_through_a_tool_loop(streamed: bool) -> None:
    with ProviderServer([think("Hm.", TWO), say(LONG)]) as server, gpt(server) as client:
        messages = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "How many?"}]
        first, usage = ask_chat(client, messages, streamed=streamed)
        assert first["content"] == "I look twice."
        assert [each["function"]["arguments"] for each in first["tool_calls"]] == [
            '{"id":7}',
            '{"id":"\\u00fc"}',
        ]
        assert usage.completion_tokens_details.reasoning_tokens == 3
        messages.append(first)
        messages += [{"role": "tool", "tool_call_id": c["id"], "content": "7"} for c in first["tool_calls"]]
        second, usage = ask_chat(client, messages, streamed=streamed)
        assert second["content"] == LONG
    assert openai_chat(usage.model_dump()) == server.exchanges[1].usage


def ask_chat(client, messages, *, streamed: bool):
    asked = {"model": GPT, "messages": messages, "tools": [function()]}
    if not streamed:
        reply = client.chat.completions.create(**asked)
        return reply.choices[0].message.model_dump(exclude_none=True, exclude={"annotations"}), reply.usage
    with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
        reply = stream.get_final_completion()
    kept = {"role", "content", "tool_calls"}
    told = reply.choices[0].message.model_dump(exclude_none=True, include=kept)
    for each in told.get("tool_calls", []):
        each.pop("index", None)
        each["function"].pop("parsed_arguments", None)
    return told, reply.usage


@pytest.mark.parametrize("streamed", [False, True])
def test_responses_goes_through_a_tool_loop_with_reasoning(streamed: bool) -> None:
    script = [think("Two of them.", TWO), think("", say(LONG), redacted=True), say("Yes.")]
    with ProviderServer(script) as server, gpt(server) as client:
        items = [{"role": "user", "content": "How many?"}]
        first = ask_responses(client, items, streamed=streamed)
        assert [item.type for item in first.output] == [
            "reasoning",
            "message",
            "function_call",
            "function_call",
        ]
        assert first.output[0].summary[0].text == "Two of them."
        items += first.output
        items += [
            {"type": "function_call_output", "call_id": item.call_id, "output": "7"}
            for item in first.output[2:]
        ]
        second = ask_responses(client, items, streamed=streamed)
        assert [item.type for item in second.output] == ["reasoning", "message"]
        assert second.output_text == LONG
        items += [*second.output, {"role": "user", "content": "Sure?"}]
        third = ask_responses(client, items, streamed=streamed)
        assert third.output_text == "Yes."
    assert openai_responses(third.usage.model_dump()) == server.exchanges[2].usage


def ask_responses(client, items, *, streamed: bool):
    asked = {"model": GPT, "input": items, "tools": [flat_function()], "store": False}
    if not streamed:
        return client.responses.create(**asked)
    with client.responses.create(**asked, stream=True) as stream:
        events = list(stream)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    told = [event.item for event in events if event.type == "response.output_item.done"]
    assert told == events[-1].response.output
    return events[-1].response


STOPS: list[tuple[StopReason, str, str, str]] = [
    ("end", "end_turn", "stop", "completed"),
    ("length", "max_tokens", "length", "incomplete"),
    ("refusal", "refusal", "stop", "completed"),
    ("pause", "pause_turn", "stop", "completed"),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("stop", "on_claude", "on_chat", "on_responses"), STOPS)
def test_why_a_reply_ended_reads_as_each_vendor_says_it(
    stop: StopReason, on_claude: str, on_chat: str, on_responses: str, streamed: bool
) -> None:
    with ProviderServer([say("No.", stop=stop)] * 3) as server, claude(server) as one, gpt(server) as other:
        hello = [{"role": "user", "content": "Hello."}]
        assert ask_claude(one, hello, streamed=streamed).stop_reason == on_claude
        if streamed:
            with other.chat.completions.create(model=GPT, messages=hello, stream=True) as chunks:
                deltas = [chunk.choices[0] for chunk in chunks]
            finish, refusal = deltas[-1].finish_reason, "".join(each.delta.refusal or "" for each in deltas)
        else:
            choice = other.chat.completions.create(model=GPT, messages=hello).choices[0]
            finish, refusal = choice.finish_reason, choice.message.refusal or ""
        assert finish == on_chat
        assert refusal == ("No." if stop == "refusal" else "")
        reply = ask_responses(other, hello, streamed=streamed)
        assert reply.status == on_responses
        assert reply.output[0].content[0].type == ("refusal" if stop == "refusal" else "output_text")


@pytest.mark.parametrize("streamed", [False, True])
def test_a_reply_may_hold_nothing(streamed: bool) -> None:
    empty = Reply((), "end")
    with ProviderServer([empty] * 3) as server, claude(server) as one, gpt(server) as other:
        hello = [{"role": "user", "content": "Hello."}]
        assert ask_claude(one, hello, streamed=streamed).content == []
        assert ask_chat(other, hello, streamed=streamed)[0].get("content") in ("", None)
        assert ask_responses(other, hello, streamed=streamed).output == []


def test_arguments_that_are_no_json_arrive_letter_by_letter() -> None:
    with ProviderServer([call("lookup", raw='{"id": 7')] * 2) as server, gpt(server) as client:
        hello = [{"role": "user", "content": "Hello."}]
        reply = client.chat.completions.create(model=GPT, messages=hello)
        assert reply.choices[0].message.tool_calls[0].function.arguments == '{"id": 7'
        assert client.responses.create(model=GPT, input=hello).output[0].arguments == '{"id": 7'


def test_a_paused_reply_is_gone_on_with_and_no_other() -> None:
    used = vendor_block(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    )
    script = [Reply((Text("I search."), used), "pause"), say("Found.")]
    with ProviderServer(script) as server, claude(server) as client:
        messages = [{"role": "user", "content": "Search."}]
        first = ask_claude(client, messages, streamed=False)
        with pytest.raises(anthropic.BadRequestError, match="prefill"):
            ask_claude(client, [*messages, {"role": "assistant", "content": "I search."}], streamed=False)
        messages.append({"role": "assistant", "content": first.content})
        assert ask_claude(client, messages, streamed=False).content[0].text == "Found."
    assert [e.rule for e in server.exchanges] == [None, "last message the assistant's", None]


def test_asynchronous_clients_are_served_alike() -> None:
    asyncio.run(_served_alike())


async def _served_alike() -> None:
    hello: Any = [{"role": "user", "content": "Hello."}]
    async with ProviderServer([say("One."), say("Two."), say("Three.")]) as server:
        async with (
            anthropic.AsyncAnthropic(base_url=server.anthropic_url, api_key="any", max_retries=0) as one,
            one.messages.stream(model=CLAUDE, max_tokens=9, messages=hello) as stream,
        ):
            assert [text async for text in stream.text_stream] == ["On", "e."]
        async with openai.AsyncOpenAI(base_url=server.openai_url, api_key="any", max_retries=0) as other:
            assert (await other.responses.create(model=GPT, input="Hello.")).output_text == "Two."
            reply = await other.chat.completions.create(model=GPT, messages=hello)
            assert reply.choices[0].message.content == "Three."
