"""OpenAI's two wires by tables: what a request becomes, what a completion or a response means."""

from __future__ import annotations

import json

import pytest

from shiftbook.messages import (
    Call,
    CallDelta,
    Reasoning,
    ReasoningDelta,
    Reply,
    ReplyEvent,
    Text,
    TextDelta,
    Usage,
)
from shiftbook.providers import openai_chat_wire, openai_responses_wire
from shiftbook.providers.capabilities import UNKNOWN, capabilities
from shiftbook.providers.openai_chat_wire import ChatSettings
from shiftbook.providers.openai_responses_wire import ResponsesSettings
from shiftbook.providers.openai_stream import CompletionAssembly, ResponseAssembly
from tests.providers.wires import CHAT, IMAGE, RESPONSES, assistant, markers, request, result, unmarked, user

CALL = Call("12.1", "lookup", {"id": 7})
PAIR = [user("a"), assistant("so", CALL), user(result("12.1", "x"), "and")]
REASONED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xx"}


def chat(model: str, blocks, **more):
    return openai_chat_wire.body(request(blocks), capabilities(model), ChatSettings(model, **more), {})


def test_a_chat_body_for_an_unknown_endpoint_holds_nothing_that_is_not_in_the_plain_protocol():
    assert chat("some-model", PAIR, max_tokens=9) == {
        "model": "some-model",
        "max_tokens": 9,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "lookup",
                    "description": "Looks a number up.",
                    "parameters": {
                        "properties": {"id": {"type": "integer"}},
                        "required": ["id"],
                        "type": "object",
                    },
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "a"},
            {
                "role": "assistant",
                "content": "so",
                "tool_calls": [
                    {
                        "id": "call_12_1",
                        "type": "function",
                        "function": {"name": "lookup", "arguments": '{"id":7}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_12_1", "content": "x"},
            {"role": "user", "content": "and"},
        ],
    }


def test_a_chat_body_for_openai_has_the_cache_key_and_breakpoints_where_the_model_takes_them():
    old, new = chat("gpt-5.1", PAIR, max_tokens=9), chat("gpt-6-sol", PAIR, max_tokens=9)
    for made in (old, new):
        assert made["prompt_cache_key"] == "run7"
        assert made["max_completion_tokens"] == 9
        assert made["messages"][0]["role"] == "developer"
    assert "prompt_cache_options" not in old
    assert not markers(old)
    assert new["prompt_cache_options"] == {"mode": "explicit"}
    assert [each["text"] for each in markers(new)] == ["Be brief.", "and"]
    marked = openai_chat_wire.body(
        request([*PAIR, assistant("b"), user("c")], marks=(1, 3)),
        capabilities("gpt-6-sol"),
        ChatSettings("gpt-6-sol"),
        {},
    )
    assert [each["text"] for each in markers(marked)] == ["Be brief.", "a", "and", "c"]


def test_images_of_an_answer_follow_the_last_answer_of_their_batch():
    two = [CALL, Call("12.2", "lookup", {"id": 8})]
    said = [user("a"), assistant(*two), user(result("12.1", IMAGE), result("12.2", "x"), "and")]
    messages = unmarked(chat("gpt-6-sol", said))["messages"]
    assert [message["role"] for message in messages[3:]] == ["tool", "tool", "user"]
    assert [part["type"] for part in messages[-1]["content"]] == ["text", "image_url", "text"]
    assert messages[-1]["content"][0]["text"] == "[Images or files of answer call_12_1:]"


@pytest.mark.parametrize(
    ("model", "field"),
    [("deepseek-v4", "reasoning_content"), ("moonshotai/kimi-k3", "reasoning_content"), ("gpt-6-sol", None)],
)
def test_reasoning_of_chat_goes_back_under_its_field_where_the_vendor_wants_it(model, field):
    thought = Reasoning("hm", {"wire": "openai-chat", "field": "reasoning_content"})
    live = Call("1.1", "lookup", {"id": 7}, None, {"wire": "openai-chat", "id": "call_a"})
    messages = chat(model, [user("a"), assistant(thought, live), user(result("1.1", "x"))])["messages"]
    assert messages[2].get("reasoning_content") == ("hm" if field else None)
    assert messages[2]["content"] is None


def test_deepseek_is_told_of_calls_whose_reasoning_is_gone():
    messages = chat("deepseek-v4", PAIR)["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[3]["content"] == (
        '[Record: call 12.1 of lookup:]\n{"id":7}\n\n[Record: answer to call 12.1, done:]\n\nx\n\nand'
    )


def test_mistral_gets_ids_of_nine_letters_and_digits():
    calls = chat("mistral-large", PAIR)["messages"][2]["tool_calls"]
    assert [len(call["id"]) for call in calls] == [9]
    assert calls[0]["id"].isalnum()
    assert chat("mistral-large", PAIR)["messages"][3]["tool_call_id"] == calls[0]["id"]


def completion(message, finish="stop", **more):
    return {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}


def function(name, arguments, id="call_1"):  # noqa: A002 - the wire's word
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("given", "parts", "stop"),
    [
        (completion({"content": "Hi"}), (Text("Hi"),), "end"),
        (completion({"content": [{"type": "text", "text": "Hi"}]}), (Text("Hi"),), "end"),
        (completion({"content": None, "refusal": "No."}), (Text("No."),), "refusal"),
        (completion({"content": "Hi"}, "length"), (Text("Hi"),), "length"),
        (completion({"content": ""}, "content_filter"), (), "refusal"),
        (completion({"content": "Hi"}, "insufficient_system_resource"), (Text("Hi"),), "other"),
        (
            completion({"content": "", "reasoning_content": "hm", "reasoning": "hm"}),
            (Reasoning("hm", {"wire": "openai-chat", "field": "reasoning_content"}),),
            "end",
        ),
        (
            completion({"tool_calls": [function("f", '{"a":1}')]}, "stop"),
            (Call("call_1", "f", {"a": 1}, None, {"wire": "openai-chat", "id": "call_1"}),),
            "calls",
        ),
        (
            completion({"tool_calls": [function("f", '{"a": 1')]}, "length"),
            (Call("call_1", "f", None, '{"a": 1', {"wire": "openai-chat", "id": "call_1"}),),
            "length",
        ),
        (
            completion({"tool_calls": [function("f", {"a": 1}, "")]}, "tool_calls"),
            (Call("", "f", {"a": 1}, None, None),),
            "calls",
        ),
    ],
)
def test_completions(given, parts, stop):
    reply = openai_chat_wire.reply_of(given, UNKNOWN)
    assert (reply.parts, reply.stop, reply.usage) == (parts, stop, Usage())


def test_k2_usage_comes_in_one_form_whoever_reports_it():
    openai = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    deepseek = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_cache_hit_tokens": 60,
        "prompt_cache_miss_tokens": 40,
    }
    responses = {
        "input_tokens": 100,
        "output_tokens": 20,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        "output_tokens_details": {"reasoning_tokens": 5},
    }
    said = completion({"content": "x"}, usage=openai)
    wanted = Usage(10, 60, 30, 0, 20, 5)
    assert openai_chat_wire.reply_of(said, capabilities("gpt-6-sol")).usage == wanted
    assert openai_responses_wire.reply_of({"output": [], "usage": responses}).usage == wanted
    other = completion({"content": "x"}, usage=deepseek)
    assert openai_chat_wire.reply_of(other, capabilities("deepseek-v4")).usage == Usage(40, 60, 0, 0, 20)


def test_chat_streams_of_odd_endpoints_add_up():
    def delta(**fields):
        return {"model": "m", "choices": [{"index": 0, "delta": fields}]}

    def piece(**fields):
        return delta(tool_calls=[fields])

    chunks = [
        delta(role="assistant", content="", reasoning_content="h"),
        delta(reasoning_content="m"),
        delta(content="So"),
        delta(content="."),
        piece(index=0, id="a", function={"name": "f", "arguments": ""}),
        piece(index=0, id="a", function={"arguments": '{"x"'}),
        piece(index=1, id="b", function={"name": "g", "arguments": {"y": 2}}),
        piece(index=0, function={"arguments": ":1}"}),
        piece(id="c", function={"name": "h", "arguments": "{"}),
        piece(function={"arguments": "}"}),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    ]
    assembly = CompletionAssembly()
    events: list[ReplyEvent] = []
    for number, chunk in enumerate(chunks):
        assert assembly.is_whole == (number > 10)
        events += assembly.take(chunk)
    reply = openai_chat_wire.reply_of(assembly.completion(), UNKNOWN)
    assert [part.arguments for part in reply.parts if isinstance(part, Call)] == [{"x": 1}, {"y": 2}, {}]
    assert reply.parts[:2] == (
        Reasoning("hm", {"wire": "openai-chat", "field": "reasoning_content"}),
        Text("So."),
    )
    assert reply.usage.output == 4
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "So."
    opened = [event.tool for event in events if isinstance(event, CallDelta) and not event.arguments_text]
    assert opened == ["f", "g", "h"]


# --- Responses -------------------------------------------------------------------------------------


def responses(model: str, blocks, **more):
    return openai_responses_wire.body(
        request(blocks), capabilities(model), ResponsesSettings(model, **more), {"include": ["x"]}
    )


def test_a_responses_body_keeps_nothing_at_the_vendor():
    made = unmarked(responses("gpt-6-sol", PAIR, max_tokens=99))
    assert made["store"] is False
    assert made["include"] == ["reasoning.encrypted_content", "x"]
    assert made["max_output_tokens"] == 99
    assert made["prompt_cache_key"] == "run7"
    assert made["tools"][0]["strict"] is False
    assert made["input"] == [
        {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "Be brief."}],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "so"}],
            "phase": "commentary",
        },
        {"type": "function_call", "call_id": "call_12_1", "name": "lookup", "arguments": '{"id":7}'},
        {
            "type": "function_call_output",
            "call_id": "call_12_1",
            "output": [{"type": "input_text", "text": "x"}],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and"}]},
    ]
    plain = responses("gpt-4.1", PAIR)
    assert plain["instructions"] == "Be brief."
    assert plain["include"] == ["x"]
    assert not markers(plain)


def test_reasoning_items_stand_in_front_of_what_they_led_to_or_not_at_all():
    thought = Reasoning("hm", REASONED)
    said = [
        user("a"),
        assistant(thought, CALL),
        user(result("12.1", "x")),
        assistant("b", thought),
        user("c"),
    ]
    kinds = [item["type"] for item in RESPONSES.body(request(said))["input"]]
    assert kinds == [
        "message",
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "message",
        "message",
    ]


def spoken(*parts):
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": list(parts)}


@pytest.mark.parametrize(
    ("given", "reply"),
    [
        (
            {"output": [spoken({"type": "output_text", "text": "Hi"})], "status": "completed"},
            Reply((Text("Hi"),), "end"),
        ),
        (
            {"output": [spoken({"type": "refusal", "refusal": "No."})], "status": "completed"},
            Reply((Text("No."),), "refusal"),
        ),
        (
            {
                "output": [
                    {**REASONED, "summary": [{"type": "summary_text", "text": "hm"}], "status": None},
                    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
                    {
                        "type": "function_call",
                        "id": "fc_1",
                        "call_id": "call_1",
                        "name": "f",
                        "arguments": '{"a": 1}',
                    },
                ],
                "status": "completed",
                "model": "m",
            },
            Reply(
                (
                    Reasoning("hm", {**REASONED, "summary": [{"type": "summary_text", "text": "hm"}]}),
                    Reasoning("", {"type": "web_search_call", "id": "ws_1", "status": "completed"}),
                    Call("call_1", "f", {"a": 1}, '{"a": 1}', {"wire": "openai-responses", "id": "call_1"}),
                ),
                "calls",
                model="m",
            ),
        ),
        (
            {"output": [], "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            Reply((), "length"),
        ),
        (
            {"output": [], "status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            Reply((), "refusal"),
        ),
        ({"output": [], "status": "incomplete", "incomplete_details": None}, Reply((), "other")),
    ],
)
def test_responses(given, reply):
    assert openai_responses_wire.reply_of(given) == reply


def test_a_stream_of_events_adds_up_to_items_as_each_was_last_whole():
    assembly = ResponseAssembly()
    called = {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}
    done = {**REASONED, "encrypted_content": "whole"}
    told = [
        assembly.take(event)
        for event in (
            {"type": "response.created", "response": {}},
            {"type": "response.output_item.added", "output_index": 0, "item": REASONED},
            {"type": "response.reasoning_summary_text.delta", "delta": "hm"},
            {"type": "response.output_item.done", "output_index": 0, "item": done},
            {"type": "response.output_item.added", "output_index": 1, "item": called},
            {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{}"},
            {"type": "response.output_item.done", "output_index": 1, "item": called | {"arguments": "{}"}},
        )
    ]
    assert [each for each in told if each] == [ReasoningDelta("hm"), CallDelta("f"), CallDelta("f", "{}")]
    before = assembly.is_whole
    assembly.take({"type": "response.completed", "response": {"status": "completed", "output": []}})
    assert (before, assembly.is_whole) == (False, True)
    assert assembly.response()["output"] == [done, called | {"arguments": "{}"}]


@pytest.mark.parametrize("wire", [CHAT, RESPONSES], ids=["chat", "responses"])
def test_argument_text_goes_back_as_the_model_wrote_it_where_it_parsed(wire):
    calls = (Call("1.1", "lookup", {"id": 7}, '{ "id":7 }'), Call("1.2", "lookup", None, '{"id": NaN}'))
    said = [user("a"), assistant(*calls), user(result("1.1", "x"), result("1.2", "bad"))]
    text = json.dumps(wire.body(request(said)))
    assert json.dumps('{ "id":7 }') in text
    assert json.dumps('{"unparsed_arguments":"{\\"id\\": NaN}"}') in text
