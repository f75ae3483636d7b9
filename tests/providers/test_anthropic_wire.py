"""Anthropic Messages by tables: what a request becomes, what a message means, where markers stand."""

from __future__ import annotations

from typing import Any

import pytest

from shiftbook.errors import AgentMistake
from shiftbook.messages import Call, Missing, Reasoning, Reply, Text, Usage
from shiftbook.providers.anthropic_stream import MessageAssembly
from shiftbook.providers.anthropic_wire import MessagesSettings, body, reply_of
from shiftbook.providers.capabilities import UNKNOWN, capabilities
from tests.providers.wires import ANTHROPIC, FILE, IMAGE, assistant, markers, request, result, unmarked, user

ROW = capabilities("claude-sonnet-5-5")
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"url": "u"}]}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "sig"}
SEALED = {"type": "redacted_thinking", "data": "xx"}


def test_a_whole_body():
    asked = request([user("Go.")], parameters={"temperature": 0.2})
    made = body(asked, ROW, MessagesSettings("claude-sonnet-5-5", 500), {"top_k": 3, "temperature": 1})
    assert list(made.items()) == [
        ("model", "claude-sonnet-5-5"),
        ("max_tokens", 500),
        (
            "tools",
            [
                {
                    "name": "lookup",
                    "description": "Looks a number up.",
                    "input_schema": {
                        "properties": {"id": {"type": "integer"}},
                        "required": ["id"],
                        "type": "object",
                    },
                }
            ],
        ),
        ("system", [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]),
        (
            "messages",
            [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "Go.", "cache_control": {"type": "ephemeral"}}],
                }
            ],
        ),
        ("temperature", 0.2),
        ("top_k", 3),
    ]


CALL = Call("12.1", "lookup", {"id": 7})
ASKED = {"type": "tool_use", "id": "call_12_1", "name": "lookup", "input": {"id": 7}}


@pytest.mark.parametrize(
    ("blocks", "messages"),
    [
        pytest.param(
            [user("a"), user("b", " \n", ""), assistant("c"), assistant("d"), user("e")],
            [("user", ["a", "b"]), ("assistant", ["c", "d"]), ("user", ["e"])],
            id="neighbours joined, blank text left out",
        ),
        pytest.param(
            [user("a"), assistant(CALL), user(result("12.1", "x", ""))],
            [
                ("user", ["a"]),
                ("assistant", [ASKED]),
                ("user", [{"type": "tool_result", "tool_use_id": "call_12_1", "content": ["x"]}]),
            ],
            id="a pair under our ids",
        ),
        pytest.param(
            [user("a"), assistant(CALL), user("meanwhile", result("12.1"))],
            [
                ("user", ["a"]),
                ("assistant", [ASKED]),
                (
                    "user",
                    [
                        {"type": "tool_result", "tool_use_id": "call_12_1", "content": ["[no output]"]},
                        "meanwhile",
                    ],
                ),
            ],
            id="answers first, never empty",
        ),
        pytest.param(
            [user("a"), assistant(Call("12.1", "lookup", None, '{"id": 7')), user(result("12.1", "bad"))],
            [
                ("user", ["a"]),
                ("assistant", [{**ASKED, "input": {"unparsed_arguments": '{"id": 7'}}]),
                ("user", [{"type": "tool_result", "tool_use_id": "call_12_1", "content": ["bad"]}]),
            ],
            id="arguments that did not parse",
        ),
        pytest.param(
            [user("a", Missing("image, 12 kB")), assistant("b\ud83d"), user("c")],
            [("user", ["a", "[missing: image, 12 kB]"]), ("assistant", ["b\\ud83d"]), ("user", ["c"])],
            id="what is missing or cannot be encoded is told",
        ),
        pytest.param(
            [user("a"), assistant(Reasoning("hm", THOUGHT), Reasoning("", SEALED), "b"), user("c")],
            [("user", ["a"]), ("assistant", [THOUGHT, SEALED, "b"]), ("user", ["c"])],
            id="reasoning verbatim",
        ),
        pytest.param(
            [user("a"), assistant(Reasoning("", SEARCH), Reasoning("", FOUND), "b"), user("c")],
            [("user", ["a"]), ("assistant", [SEARCH, FOUND, "b"]), ("user", ["c"])],
            id="the vendor's own tools verbatim",
        ),
        pytest.param(
            [user("a"), assistant("b", Reasoning("", SEARCH)), user("stop")],
            [("user", ["a"]), ("assistant", ["b"]), ("user", ["stop"])],
            id="a search that was never answered is left out",
        ),
        pytest.param(
            [user("a"), assistant("b", Reasoning("", SEARCH))],
            [("user", ["a"]), ("assistant", ["b", SEARCH])],
            id="unless the turn is taken up there",
        ),
    ],
)
def test_messages(blocks, messages):
    def told(piece):
        if isinstance(piece, str):
            return {"type": "text", "text": piece}
        inner = (
            {"content": [told(each) for each in piece["content"]]} if piece["type"] == "tool_result" else {}
        )
        return {**piece, **inner}

    made = unmarked(ANTHROPIC.body(request(blocks)))["messages"]
    assert made == [{"role": role, "content": [told(each) for each in content]} for role, content in messages]


def test_images_and_files_are_base64_blocks_and_an_error_holds_text_alone():
    blocks = [user(FILE), assistant(CALL), user(result("12.1", "broke", IMAGE, error=True), "so?")]
    made = unmarked(ANTHROPIC.body(request(blocks)))["messages"]
    assert made[0]["content"][0]["type"] == "document"
    assert made[0]["content"][0]["title"] == "bill.pdf"
    answer, image, text = made[2]["content"]
    assert answer["is_error"] is True
    assert answer["content"] == [{"type": "text", "text": "broke"}]
    assert image["type"] == "image"
    assert image["source"]["media_type"] == "image/png"
    assert text["text"] == "so?"


@pytest.mark.parametrize(
    ("marks", "marked"),
    [
        ((), ["Be brief.", "6"]),
        ((1, 3), ["Be brief.", "1", "3", "6"]),
        ((3, 3), ["Be brief.", "3", "6"]),
        ((6, 0), ["Be brief.", "6"]),
        ((0, 0), ["Be brief.", "6"]),
        ((1, 5), ["Be brief.", "1", "5", "6"]),
    ],
)
def test_markers_stand_at_the_fixed_part_the_first_the_previous_and_this_end(marks, marked):
    blocks = [user("1"), assistant("2"), user("3"), assistant("4"), user("5"), user("6")]
    assert [each["text"] for each in markers(ANTHROPIC.body(request(blocks, marks=marks)))] == marked


def test_a_marker_never_falls_on_reasoning_and_has_the_life_that_was_asked_for():
    blocks = [user("1"), assistant(Reasoning("hm", THOUGHT), CALL), user(result("12.1", "x"))]
    made = body(request(blocks, marks=(1, 2)), ROW, MessagesSettings("m", 9, "1h"), {})
    assert [each["type"] for each in markers(made)] == ["text", "text", "tool_use", "tool_result"]
    assert {each["cache_control"]["ttl"] for each in markers(made)} == {"1h"}
    bare = body(request([user("1")], instructions=""), ROW, MessagesSettings("m", 9), {})
    assert [each.get("name") for each in markers(bare)] == ["lookup", None]
    assert markers(body(request(blocks), UNKNOWN, MessagesSettings("m", 9), {})) == []


def test_with_manual_thinking_a_pair_of_an_earlier_epoch_is_told_as_a_record():
    live = Call("2.1", "lookup", {"id": 8}, None, {"wire": "anthropic", "id": "toolu_8"})
    blocks = [
        user("a"),
        assistant("so", CALL),
        user(result("12.1", "seven", error=True)),
        assistant(Reasoning("hm", THOUGHT), live),
        user(result("2.1", "eight")),
    ]
    manual = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    asks = MessagesSettings("claude-sonnet-4-5", 5_000)
    made = unmarked(body(request(blocks), ROW, asks, manual))["messages"]
    assert made[1] == {"role": "assistant", "content": [{"type": "text", "text": "so"}]}
    assert [each["text"] for each in made[2]["content"]] == [
        '[Record: call 12.1 of lookup:]\n{"id":7}',
        "[Record: answer to call 12.1, failed:]",
        "seven",
    ]
    assert [each["type"] for each in made[3]["content"]] == ["thinking", "tool_use"]
    adaptive = body(request(blocks), ROW, asks, {"thinking": {"type": "adaptive"}})["messages"]
    assert adaptive[1]["content"][1]["type"] == "tool_use"


@pytest.mark.parametrize("name", ["messages", "system", "tools", "model", "stream"])
def test_a_parameter_cannot_change_the_prompt(name):
    for own, agents in (({name: 1}, {}), ({}, {name: 1})):
        with pytest.raises(AgentMistake, match=f"'{name}' is filled from the run's prompt"):
            body(request([user("a")], parameters=agents), ROW, MessagesSettings("m", 9), own)


USAGE = {
    "input_tokens": 3,
    "cache_read_input_tokens": 40,
    "cache_creation_input_tokens": 5,
    "output_tokens": 7,
}


@pytest.mark.parametrize(
    ("given", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("tool_use", "calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "pause"),
        ("something new", "other"),
        (None, "other"),
    ],
)
def test_stop_reasons(given, stop):
    assert reply_of({"content": [], "stop_reason": given}).stop == stop


def test_a_reply_with_everything():
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
    message: dict[str, Any] = {
        "model": "claude-x",
        "content": [
            THOUGHT,
            SEALED,
            {"type": "text", "text": "So."},
            SEARCH,
            FOUND,
            {
                "type": "tool_use",
                "id": "toolu_1",
                "name": "lookup",
                "input": {"b": 1, "a": 2},
                "caller": caller,
            },
            {"type": "tool_use", "id": "toolu_2", "name": "lookup", "input": '{"cut', "caller": None},
            {"type": "thinking", "thinking": "unsigned"},
        ],
        "stop_reason": "tool_use",
        "usage": USAGE,
    }
    reply = reply_of(message, ttl="1h")
    assert reply == Reply(
        (
            Reasoning("hm", THOUGHT),
            Reasoning("", SEALED),
            Text("So."),
            Reasoning("", SEARCH),
            Reasoning("", FOUND),
            Call(
                "toolu_1",
                "lookup",
                {"b": 1, "a": 2},
                None,
                {"wire": "anthropic", "id": "toolu_1", "caller": caller},
            ),
            Call("toolu_2", "lookup", None, '{"cut', {"wire": "anthropic", "id": "toolu_2"}),
            Reasoning("unsigned", None),
        ),
        "calls",
        Usage(uncached=3, cache_read=40, cache_write_5m=0, cache_write_1h=5, output=7),
        "claude-x",
    )
    call = reply.parts[5]
    back = unmarked(ANTHROPIC.body(request([user("a"), assistant(call), user(result("toolu_1", "x"))])))
    assert back["messages"][1]["content"] == [message["content"][5]], "as it came, the caller included"


def test_a_stream_adds_up_and_counts_of_its_end_replace_those_of_its_start():
    assembly = MessageAssembly()
    call = {"type": "tool_use", "id": "t", "name": "lookup", "input": {}}
    events: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {"model": "m", "content": [], "usage": {**USAGE, "output_tokens": 1}},
        },
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {**THOUGHT, "thinking": "", "signature": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
        {"type": "content_block_start", "index": 1, "content_block": SEARCH | {"input": {}}},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": '{"query":'},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": '"x"}'},
        },
        {"type": "content_block_start", "index": 2, "content_block": call},
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": '{"a": 1,'},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": ' "b": 1e2}'},
        },
        {"type": "content_block_start", "index": 3, "content_block": call | {"id": "u"}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 7, "input_tokens": None},
        },
    ]
    for event in events:
        assembly.take(event)
    before = assembly.is_whole
    assembly.take({"type": "message_stop"})
    assert (before, assembly.is_whole) == (False, True)
    message = assembly.message()
    assert message["content"][:2] == [THOUGHT, SEARCH]
    assert message["content"][2]["input"] == '{"a": 1, "b": 1e2}', "kept where writing it again loses letters"
    assert message["content"][3]["input"] == {}
    assert message["usage"] == USAGE
    assert reply_of(message).parts[2] == Call(
        "t", "lookup", {"a": 1, "b": 100.0}, '{"a": 1, "b": 1e2}', {"wire": "anthropic", "id": "t"}
    )
