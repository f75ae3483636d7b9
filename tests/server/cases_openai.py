"""Sound and unsound bodies of OpenAI's two wires, under the rule that tells them apart."""

from __future__ import annotations

from typing import Any

from tests.server.bodies import (
    OLD_GPT,
    PNG,
    assistant,
    but,
    calling,
    chat,
    flat_function,
    function,
    function_call,
    message,
    output,
    reasoning,
    responses,
    text,
    told,
    tool,
    tool_call,
    user,
)

Case = tuple[str, dict[str, Any], dict[str, Any]]
DATA_URL = f"data:image/png;base64,{PNG}"
CHAT_PAIR = (user(), calling(tool_call()), told())
TWO_CALLS = calling(tool_call("a"), tool_call("b"))
SPOT = {"type": "text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}}


def picture(address: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": address}}


CHAT_CASES: list[Case] = [
    ("field", chat(seed=1), chat(top_k=1)),
    ("field", chat(n=1), chat(n=2)),
    ("field", chat(), but(chat(), model=None)),
    ("message field", chat(), but(chat(), messages=[])),
    (
        "message field",
        chat({"role": "developer", "content": "Be brief."}, user()),
        chat({"role": "robot"}, user()),
    ),
    (
        "message field",
        chat(user(), assistant(), user()),
        chat(user(), {**assistant(), "reasoning_content": "hm"}),
    ),
    ("message field", chat(user(picture(DATA_URL))), chat(*CHAT_PAIR[:2], told(content=[picture(DATA_URL)]))),
    ("message field", chat(*CHAT_PAIR), chat(user(), calling({"id": "a", "type": "function"}))),
    ("tool field", chat(tools=[function()]), chat(tools=[])),
    ("tool field", chat(tools=[function()]), chat(tools=[tool()])),
    (
        "empty message",
        chat(user(), assistant(), user()),
        chat(user(), {"role": "assistant", "content": None}, user()),
    ),
    ("empty message", chat(*CHAT_PAIR), chat(user(), calling(content="x"), user())),
    (
        "text too long",
        chat({"role": "user", "content": "a" * 10_485_760}),
        chat({"role": "user", "content": "a" * 10_485_761}),
    ),
    (
        "call id unusable",
        chat(user(), calling(tool_call("a" * 40)), told("a" * 40)),
        chat(user(), calling(tool_call("a" * 41)), told("a" * 41)),
    ),
    ("call id unusable", chat(*CHAT_PAIR), chat(user(), calling(tool_call("")), told(""))),
    (
        "call id not unique",
        chat(user(), TWO_CALLS, told("a"), told("b")),
        chat(user(), calling(tool_call("a"), tool_call("a")), told("a")),
    ),
    ("call name unusable", chat(*CHAT_PAIR), chat(user(), calling(tool_call(name="a b")), told())),
    ("answer without call", chat(*CHAT_PAIR), chat(user(), told())),
    ("answer without call", chat(*CHAT_PAIR, user()), chat(*CHAT_PAIR, user(), told())),
    (
        "second answer",
        chat(user(), TWO_CALLS, told("b"), told("a")),
        chat(user(), TWO_CALLS, told("a"), told("a"), told("b")),
    ),
    ("call without answer", chat(*CHAT_PAIR), chat(*CHAT_PAIR[:2])),
    (
        "call without answer",
        chat(user(), TWO_CALLS, told("b"), told("a")),
        chat(user(), TWO_CALLS, told("b"), user()),
    ),
    ("tool name unusable", chat(tools=[function("a" * 64)]), chat(tools=[function("a" * 65)])),
    (
        "tool declared twice",
        chat(tools=[function("a"), function("b")]),
        chat(tools=[function("a"), function("a")]),
    ),
    ("tool schema", chat(tools=[function()]), chat(tools=[function(parameters={"type": "string"})])),
    ("tool choice", chat(tools=[function()], tool_choice="required"), chat(tool_choice="required")),
    (
        "tool choice",
        chat(tools=[function()], tool_choice="auto"),
        chat(tools=[function()], tool_choice="any"),
    ),
    (
        "tool choice",
        chat(tools=[function()], tool_choice={"type": "function", "function": {"name": "lookup"}}),
        chat(tools=[function()], tool_choice={"type": "function", "function": {"name": "look"}}),
    ),
    ("output limit", chat(max_completion_tokens=5), chat(max_tokens=5)),
    ("output limit", chat(model=OLD_GPT, max_tokens=5), chat(max_completion_tokens=0)),
    (
        "stream settings",
        chat(stream=True, stream_options={"include_usage": True}),
        chat(stream_options={"include_usage": True}),
    ),
    ("media", chat(user(picture(DATA_URL))), chat(user(picture("image.png")))),
    (
        "media",
        chat(user(picture("https://example.com/a.png"))),
        chat(user(picture(f"data:image/bmp;base64,{PNG}"))),
    ),
    ("media", chat(user(picture(DATA_URL))), chat(user(picture("data:image/png;base64,%")))),
    ("cache settings", chat(user(SPOT)), chat(user(SPOT), model=OLD_GPT)),
    ("cache settings", chat(prompt_cache_options={"ttl": "30m"}), chat(prompt_cache_options={"ttl": "12h"})),
    ("cache settings", chat(prompt_cache_retention="24h"), chat(prompt_cache_retention="25h")),
]

OWNED = {"id": f"fc_r{'a' * 24}_1"}
CALLED = (function_call(), output())


def shown(address: str) -> dict[str, Any]:
    return user({"type": "input_image", "detail": "auto", "image_url": address})


RESPONSES_CASES: list[Case] = [
    ("field", responses(store=False), responses(messages=[])),
    ("field", responses(), responses(input=[])),
    ("nothing kept", responses(), responses(previous_response_id="resp_1")),
    ("nothing kept", responses(background=False), responses(background=True)),
    (
        "item field",
        responses(user(), message(), user()),
        responses(user(), {"type": "item_reference", "id": "rs_1"}),
    ),
    (
        "item field",
        responses({"role": "user", "content": [{"type": "input_text", "text": "x"}]}),
        responses(user(text())),
    ),
    ("item field", responses(*CALLED), responses({"type": "function_call", "call_id": "a"})),
    (
        "item field",
        responses({"type": "web_search_call", "id": "ws_1", "status": "completed"}, user()),
        responses({"role": "tool", "content": "x"}),
    ),
    (
        "item field",
        responses(reasoning(), message()),
        responses({**reasoning(), "summary": ["x"]}, message()),
    ),
    ("tool field", responses(tools=[flat_function()]), responses(tools=[function()])),
    ("text too long", responses(user()), responses({"role": "user", "content": "a" * 10_485_761})),
    (
        "item id unusable",
        responses(function_call(id="fc_1"), output()),
        responses(function_call(id="call_1"), output()),
    ),
    (
        "item id unusable",
        responses(function_call(), output(id="fco_1")),
        responses(function_call(), output(id="fcx_1")),
    ),
    ("item id unusable", responses(message(id="msg_" + "a" * 60)), responses(message(id="msg_" + "a" * 61))),
    (
        "item twice",
        responses(message(id="msg_1"), message(id="msg_2")),
        responses(message(id="msg_1"), message(id="msg_1")),
    ),
    (
        "call id unusable",
        responses(function_call("a" * 64), output("a" * 64)),
        responses(function_call("a" * 65), output("a" * 65)),
    ),
    ("call id not unique", responses(*CALLED, function_call("b"), output("b")), responses(*CALLED, *CALLED)),
    ("call name unusable", responses(*CALLED), responses(function_call(name="a.b"), output())),
    ("answer without call", responses(*CALLED), responses(user(), output())),
    ("answer without call", responses(*CALLED), responses(output(), function_call())),
    ("second answer", responses(*CALLED), responses(*CALLED, output())),
    ("call without answer", responses(*CALLED), responses(user(), function_call())),
    ("reasoning alone", responses(reasoning(), *CALLED), responses(user(), reasoning())),
    ("reasoning alone", responses(reasoning(), message()), responses(reasoning(), user(), message())),
    (
        "reasoning alone",
        responses(reasoning(), {**function_call(), **OWNED}, output()),
        responses(reasoning("rs_" + "b" * 24), reasoning(), function_call(id=f"fc_r{'b' * 24}_1"), output()),
    ),
    (
        "reasoning gone",
        responses(reasoning(), {**function_call(), **OWNED}, output()),
        responses({**function_call(), **OWNED}, output()),
    ),
    ("reasoning gone", responses(*CALLED), responses(message(id=f"msg_r{'a' * 24}_1"), user())),
    (
        "reasoning not kept",
        responses(reasoning(), message()),
        responses(reasoning(encrypted=None), message()),
    ),
    ("tool name unusable", responses(tools=[flat_function("a-b")]), responses(tools=[flat_function("a b")])),
    (
        "tool declared twice",
        responses(tools=[flat_function("a"), flat_function("b")]),
        responses(tools=[flat_function("a"), flat_function("a")]),
    ),
    (
        "tool schema",
        responses(tools=[flat_function()]),
        responses(tools=[flat_function(parameters={"type": "array"})]),
    ),
    ("tool choice", responses(tools=[flat_function()], tool_choice="auto"), responses(tool_choice="auto")),
    (
        "tool choice",
        responses(tools=[flat_function()], tool_choice={"type": "function", "name": "lookup"}),
        responses(tools=[flat_function()], tool_choice={"type": "function", "name": "look"}),
    ),
    ("output limit", responses(max_output_tokens=16), responses(max_output_tokens=15)),
    ("media", responses(shown(DATA_URL)), responses(shown("image.png"))),
    (
        "media",
        responses(function_call(), output(content=[{"type": "input_image", "image_url": DATA_URL}])),
        responses(function_call(), output(content=[{"type": "input_image", "image_url": "x"}])),
    ),
    (
        "cache settings",
        responses(prompt_cache_options={"ttl": "12h"}),
        responses(prompt_cache_options={"ttl": "1h"}),
    ),
    (
        "cache settings",
        responses(user({**SPOT, "type": "input_text"})),
        responses(user({**SPOT, "type": "input_text"}), model=OLD_GPT),
    ),
]
