"""Sound and unsound bodies of Anthropic Messages, under the rule that tells them apart."""

from __future__ import annotations

from typing import Any

from tests.server.bodies import (
    PNG,
    anthropic,
    assistant,
    but,
    image,
    marker,
    result,
    text,
    tool,
    use,
    user,
)

Case = tuple[str, dict[str, Any], dict[str, Any]]
PAIR = (user(), assistant(use()), user(result()))
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
HIDDEN = {"type": "redacted_thinking", "data": "d"}
SERVER_USE = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
SERVER_RESULT = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
MARKED = text("a", cache_control=marker())

ANTHROPIC_CASES: list[Case] = [
    ("field", anthropic(top_k=5), anthropic(top_q=5)),
    ("field", anthropic(), but(anthropic(), max_tokens=None)),
    ("field", anthropic(), anthropic(max_tokens="many")),
    ("field", anthropic(stream=True), anthropic(stream=1)),
    ("field", anthropic(thinking={"type": "disabled"}), anthropic(thinking={"type": "off"})),
    ("tool field", anthropic(tools=[tool(strict=True)]), anthropic(tools=[tool(parameters={})])),
    ("tool field", anthropic(tools=[tool()]), anthropic(tools=[{"name": "lookup"}])),
    (
        "tool field",
        anthropic(tools=[{"type": "web_search_20250305", "name": "w", "max_uses": 1}]),
        anthropic(tools=[{"type": "web_search_20250305"}]),
    ),
    ("block field", anthropic(user(text())), anthropic(user(text(txt="x")))),
    ("block field", anthropic(user(text())), anthropic(user({"type": "txt", "text": "x"}))),
    ("block field", anthropic(*PAIR), anthropic(*PAIR[:2], user(result(content=[{"type": "video"}])))),
    (
        "block field",
        anthropic(user(), assistant(THOUGHT, text()), user()),
        anthropic(user(), assistant({**THOUGHT, "cache_control": marker()}, text()), user()),
    ),
    ("block field", anthropic(), anthropic({"role": "user"})),
    ("limit", anthropic(max_tokens=0), anthropic(max_tokens=-1)),
    ("limit", anthropic(temperature=1), anthropic(temperature=1.5)),
    ("no first user message", anthropic(), anthropic(assistant(), user())),
    ("no first user message", anthropic(), but(anthropic(), messages=[])),
    (
        "role",
        anthropic(user(), {"role": "system", "content": "Be brief."}, assistant(), user()),
        anthropic(user(), {"role": "tool", "content": "x"}),
    ),
    (
        "role",
        anthropic(user(), {"role": "system", "content": "Be brief."}),
        anthropic(user(), assistant(), {"role": "system", "content": "Be brief."}),
    ),
    ("empty message", anthropic(user(), user()), anthropic(user(), {"role": "user", "content": []})),
    ("empty message", anthropic(user()), anthropic({"role": "user", "content": ""})),
    ("blank text", anthropic(user(text("."))), anthropic(user(text("")))),
    ("blank text", anthropic(user(text("."))), anthropic(user(text(" \n")))),
    ("blank text", anthropic(system=[text()]), anthropic(system=[text("")])),
    ("blank text", anthropic(*PAIR), anthropic(*PAIR[:2], user(result(content=[text("")])))),
    ("wrong side", anthropic(user(image())), anthropic(user(), assistant(image()), user())),
    ("wrong side", anthropic(*PAIR), anthropic(user(use()))),
    ("wrong side", anthropic(*PAIR), anthropic(user(), assistant(result()), user())),
    (
        "call id unusable",
        anthropic(user(), assistant(use("a-_Z9")), user(result("a-_Z9"))),
        anthropic(user(), assistant(use("a.b")), user(result("a.b"))),
    ),
    ("call id unusable", anthropic(*PAIR), anthropic(user(), assistant(use("")), user(result("")))),
    (
        "call id not unique",
        anthropic(*PAIR, assistant(use("b")), user(result("b"))),
        anthropic(*PAIR, assistant(use()), user(result())),
    ),
    (
        "answer without call",
        anthropic(*PAIR),
        anthropic(user(), assistant(use()), user(result(), result("b"))),
    ),
    ("answer without call", anthropic(*PAIR), anthropic(user(result()))),
    (
        "answer without call",
        anthropic(*PAIR, assistant(), user()),
        anthropic(*PAIR, assistant(), user(result())),
    ),
    ("second answer", anthropic(*PAIR), anthropic(user(), assistant(use()), user(result(), result()))),
    (
        "answer behind text",
        anthropic(*PAIR[:2], user(result(), text())),
        anthropic(*PAIR[:2], user(text(), result())),
    ),
    (
        "answer behind text",
        anthropic(user(), assistant(use(), use("b")), user(result(), result("b"), text())),
        anthropic(user(), assistant(use(), use("b")), user(result(), text(), result("b"))),
    ),
    ("call without answer", anthropic(*PAIR), anthropic(*PAIR[:2])),
    ("call without answer", anthropic(*PAIR), anthropic(*PAIR[:2], user(text()))),
    (
        "call without answer",
        anthropic(user(), assistant(use(), use("b")), user(result("b"), result())),
        anthropic(user(), assistant(use(), use("b")), user(result("b")), assistant(), user()),
    ),
    (
        "call without answer",
        anthropic(*PAIR[:2], user(result()), user(text())),
        anthropic(*PAIR[:2], assistant(), user(text())),
    ),
    (
        "error answer not text",
        anthropic(*PAIR[:2], user(result(content=[image()]))),
        anthropic(*PAIR[:2], user(result(content=[image()], is_error=True))),
    ),
    ("last message the assistant's", anthropic(user()), anthropic(user(), assistant())),
    (
        "last message the assistant's",
        anthropic(user(), assistant(), model="claude-haiku-4-5-20251001"),
        anthropic(user(), assistant(), model="claude-sonnet-4-6"),
    ),
    (
        "last message the assistant's",
        anthropic(user(), assistant(text("So")), model="claude-opus-4-1"),
        anthropic(user(), assistant(text("So ")), model="claude-opus-4-1"),
    ),
    (
        "reasoning misplaced",
        anthropic(user(), assistant(THOUGHT, HIDDEN, text()), user()),
        anthropic(user(), assistant(text(), THOUGHT, text()), user()),
    ),
    (
        "reasoning misplaced",
        anthropic(user(), assistant(SERVER_USE, SERVER_RESULT, THOUGHT, text()), user()),
        anthropic(user(), assistant(THOUGHT), user()),
    ),
    (
        "thinking settings",
        anthropic(thinking={"type": "enabled", "budget_tokens": 1024}),
        anthropic(thinking={"type": "enabled", "budget_tokens": 1023}),
    ),
    (
        "thinking settings",
        anthropic(thinking={"type": "enabled", "budget_tokens": 2048}),
        anthropic(thinking={"type": "enabled", "budget_tokens": 4096}),
    ),
    (
        "thinking settings",
        anthropic(thinking={"type": "adaptive"}, tools=[tool()], tool_choice={"type": "auto"}),
        anthropic(thinking={"type": "adaptive"}, tools=[tool()], tool_choice={"type": "any"}),
    ),
    (
        "thinking settings",
        anthropic(thinking={"type": "adaptive"}, temperature=1),
        anthropic(thinking={"type": "adaptive"}, temperature=0),
    ),
    ("tool name unusable", anthropic(tools=[tool("a" * 128)]), anthropic(tools=[tool("a" * 129)])),
    ("tool name unusable", anthropic(tools=[tool("a-b")]), anthropic(tools=[tool("a.b")])),
    ("tool declared twice", anthropic(tools=[tool("a"), tool("b")]), anthropic(tools=[tool("a"), tool("a")])),
    ("tool schema", anthropic(tools=[tool()]), anthropic(tools=[tool(input_schema={"type": "string"})])),
    ("tool schema", anthropic(tools=[tool()]), anthropic(tools=[tool(input_schema={"properties": {}})])),
    (
        "tool schema",
        anthropic(tools=[tool()]),
        anthropic(tools=[tool(input_schema={"type": "object", "anyOf": []})]),
    ),
    (
        "tool choice",
        anthropic(tools=[tool()], tool_choice={"type": "any"}),
        anthropic(tool_choice={"type": "any"}),
    ),
    (
        "tool choice",
        anthropic(tools=[tool()], tool_choice={"type": "tool", "name": "lookup"}),
        anthropic(tools=[tool()], tool_choice={"type": "tool", "name": "look"}),
    ),
    ("marker kind", anthropic(user(MARKED)), anthropic(user(text(cache_control={"type": "lasting"})))),
    (
        "marker kind",
        anthropic(user(text(cache_control=marker("1h")))),
        anthropic(user(text(cache_control=marker("2h")))),
    ),
    ("too many markers", anthropic(user(*[MARKED] * 4)), anthropic(user(*[MARKED] * 5))),
    (
        "too many markers",
        anthropic(user(*[MARKED] * 3, text()), cache_control=marker()),
        anthropic(user(*[MARKED] * 4, text()), cache_control=marker()),
    ),
    (
        "marker order",
        anthropic(system=[text(cache_control=marker("1h"))], messages=[user(MARKED)]),
        anthropic(system=[text(cache_control=marker())], messages=[user(text(cache_control=marker("1h")))]),
    ),
    (
        "marker order",
        anthropic(user(MARKED), cache_control=marker()),
        anthropic(user(text(cache_control=marker("1h"))), cache_control=marker()),
    ),
    ("media", anthropic(user(image())), anthropic(user(image(media_type="image/bmp")))),
    ("media", anthropic(user(image())), anthropic(user(image("not base64!")))),
    ("media", anthropic(user(image())), anthropic(user(image("")))),
    ("media", anthropic(user(image())), anthropic(user(image(media_type="image/jpeg")))),
    ("media", anthropic(user(image())), anthropic(user(image(PNG + "A" * 5 * 1024 * 1024)))),
    (
        "media",
        anthropic(*PAIR[:2], user(result(content=[image()]))),
        anthropic(*PAIR[:2], user(result(content=[image("%")]))),
    ),
]
