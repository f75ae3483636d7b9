"""What servers say of their tools: one order, one name, one set of bytes, whatever order it is said in."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook.errors import AgentMistake
from shiftbook.mcp import McpTools, StdioServer
from shiftbook.mcp.listing import Definition, policy_of, read_listing, tool_names

FITS = re.compile(r"[A-Za-z0-9_-]{1,64}")
SCHEMA = {
    "type": "object",
    "properties": {"b": {"type": "string"}, "a": {"enum": [1, 2]}},
    "required": ["b"],
    "$defs": {"x": {"type": "string", "minLength": 1}},
}


def listed(*tools: Any, **named: Any) -> tuple[tuple[Definition, ...], tuple[str, ...]]:
    """The definitions of these tools."""
    values: dict[str, Any] = {"repeat": {}, "trusted": True} | named
    return read_listing("shop", tools, **values)


def turned(value: Any, chance: random.Random) -> Any:
    """The same JSON with its objects' keys in another order."""
    if isinstance(value, dict):
        items = list(value.items())
        chance.shuffle(items)
        return {key: turned(item, chance) for key, item in items}
    return [turned(item, chance) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("hints", "policy"),
    [
        (None, "ask"),
        ({}, "ask"),
        ("nonsense", "ask"),
        ({"readOnlyHint": True}, "safe"),
        ({"readOnlyHint": "true"}, "ask"),
        ({"readOnlyHint": True, "destructiveHint": True}, "safe"),
        ({"idempotentHint": True, "destructiveHint": False}, "safe"),
        # By the specification a hint that is left out says "destructive".
        ({"idempotentHint": True}, "ask"),
        ({"idempotentHint": True, "destructiveHint": True}, "ask"),
        ({"destructiveHint": False}, "ask"),
        ({"openWorldHint": False}, "ask"),
    ],
)
def test_a3_hints_become_repeat_policies_by_the_defaults_of_the_specification(
    hints: Any, policy: str
) -> None:
    assert policy_of(hints) == policy


def test_a3_the_authors_word_goes_before_the_servers_and_an_untrusted_server_has_none() -> None:
    tool = {"name": "look", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
    assert listed(tool)[0][0].repeat == "safe"
    assert listed(tool, trusted=False)[0][0].repeat == "ask"
    assert listed(tool, repeat={"look": "keyed"})[0][0].repeat == "keyed"
    assert listed(tool, repeat={"look": "safe"}, trusted=False)[0][0].repeat == "safe"


@given(st.randoms(use_true_random=False))
def test_i6_any_order_of_tools_and_keys_gives_the_same_definitions_and_names(chance: random.Random) -> None:
    tools: list[Any] = [
        {"name": name, "description": "does it", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
        for name in ("b", "a.b", "a/b", "a_b", "a" * 70, "ä", "ö", "")
    ]
    tools += [{"name": "twice", "description": word, "inputSchema": SCHEMA} for word in ("one", "two")]
    plain = listed(*tools)[0]
    mixed = [turned(tool, chance) for tool in tools]
    chance.shuffle(mixed)
    again = listed(*mixed)[0]
    assert [item.text for item in again] == [item.text for item in plain]
    assert [dict(item.parameters) for item in again] == [dict(item.parameters) for item in plain]
    order = list(range(len(plain)))
    chance.shuffle(order)
    names = tool_names(plain)
    shuffled = tool_names([plain[number] for number in order])
    assert shuffled == [names[number] for number in order]


@given(
    st.lists(st.text(max_size=80), max_size=8, unique=True), st.sets(st.sampled_from(["a", "a_b", "tool"]))
)
def test_names_are_what_models_take_and_no_two_are_equal(names: list[str], taken: set[str]) -> None:
    made = listed(*({"name": name, "inputSchema": SCHEMA} for name in names))[0]
    other = read_listing(
        "other", ({"name": name, "inputSchema": SCHEMA} for name in names), {}, trusted=True
    )[0]
    given_names = tool_names([*made, *other], taken=taken)
    assert all(FITS.fullmatch(name) for name in given_names)
    assert len({*given_names, *taken}) == len(given_names) + len(taken)


def test_a_name_is_prefixed_only_where_it_clashes() -> None:
    one = listed({"name": "look", "inputSchema": SCHEMA}, {"name": "buy", "inputSchema": SCHEMA})[0]
    two = read_listing("depot", [{"name": "look", "inputSchema": SCHEMA}], {}, trusted=True)[0]
    assert tool_names([*one, *two]) == ["buy", "shop_look", "depot_look"]
    assert tool_names(one, taken=["buy"]) == ["shop_buy", "look"]


@pytest.mark.parametrize(
    "schema",
    [None, "x", {"type": "string"}, {"type": ["object", "null"]}, {"type": "object", "default": {1, 2}}],
)
def test_a_tool_without_a_usable_schema_is_left_out_and_told(schema: Any) -> None:
    made, left_out = listed({"name": "odd", "inputSchema": schema}, {"name": "good", "inputSchema": SCHEMA})
    assert [item.name for item in made] == ["good"]
    assert len(left_out) == 1
    assert "'odd'" in left_out[0]


def test_f3_half_a_surrogate_pair_in_a_description_reaches_no_model() -> None:
    made, _ = listed({"name": "look\udc88", "description": "a\udc88b", "inputSchema": SCHEMA})
    assert made[0].description == "a\ufffdb"
    assert FITS.fullmatch(tool_names(made)[0])


@pytest.mark.parametrize(
    ("servers", "repeat", "says"),
    [
        (("a", "a"), {}, "Two MCP servers are called 'a'"),
        (("a",), {"b": {"x": "safe"}}, "not among"),
        (("a",), {"a": {"x": "reconcile"}}, "may be"),
        (("bad name",), {}, "1 to 32 letters"),
    ],
)
def test_a_toolbox_that_cannot_be_meant_is_refused_in_one_sentence(
    servers: tuple[str, ...], repeat: Any, says: str
) -> None:
    with pytest.raises(AgentMistake, match=says):
        McpTools(*(StdioServer(name, "true") for name in servers), repeat=repeat)
