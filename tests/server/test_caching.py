"""Cache figures are earned by the blocks and markers of the requests themselves, under the vendors' rules."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook.economics.cache_rules import BreakpointRule, MarkerRule
from shiftbook.messages import Reply
from shiftbook.providers.scripted import call, calls, say
from shiftbook.testing.server import ProviderServer, anthropic_pieces, chat_pieces, responses_pieces
from tests.server.bodies import OLD_GPT, image, marker, text, tool, user
from tests.server.clients import claude
from tests.server.talk import Talk, marked

RULE = MarkerRule(1000)


def many(number: int) -> Reply:
    return calls(*[call("lookup", {"n": n}) for n in range(number)])


def loop(calls_a_turn: int, turns: int, *, previous_marked: bool = True, ttl: str | None = None) -> list[Any]:
    """A tool loop on Anthropic's wire with the markers of design section 7; its exchanges."""
    talk = Talk("anthropic", [many(calls_a_turn)] * turns)
    talk.say("Begin.")
    found, previous = [], None
    for _ in range(turns):
        length = len(talk.said)
        found.append(talk.turn(partial(marked, previous=previous if previous_marked else None, ttl=ttl)))
        previous = length
        talk.clock.advance(10_000)
    return found


@pytest.mark.parametrize("calls_a_turn", [1, 5, 25])
def test_a_marker_on_the_previous_end_reads_all_of_the_previous_request(calls_a_turn: int) -> None:
    found = loop(calls_a_turn, 6)
    for before, after in pairwise(found):
        assert after.usage.cache_read == before.usage.prompt
        assert after.usage.cache_write_5m == 2 * calls_a_turn * 1000
        assert after.usage.uncached == 0


def test_without_it_the_look_back_misses_behind_25_calls() -> None:
    found = loop(25, 4, previous_marked=False)
    assert [each.usage.cache_read for each in found[1:]] == [2000] * 3, "only tools and instructions are hit"
    near = loop(5, 4, previous_marked=False)
    assert [e.usage.cache_read for e in near[1:]] == [e.usage.prompt for e in near[:-1]]


def test_the_wire_says_what_was_earned_with_its_split_by_life() -> None:
    talk = Talk("anthropic", [say("One."), say("Two.")])
    talk.say("Begin.")
    first = talk.turn(lambda body: marked(body, None, ttl="1h"))
    talk.say("Go on.")
    second = talk.turn(lambda body: marked(body, 1, ttl="1h"))
    assert first.answer["usage"] == {
        "input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 3000,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 3000},
        "output_tokens": 1000,
        "output_tokens_details": {"thinking_tokens": 0},
        "service_tier": "standard",
    }
    assert second.answer["usage"]["cache_read_input_tokens"] == 3000
    assert second.answer["usage"]["cache_creation"]["ephemeral_1h_input_tokens"] == 2000


@pytest.mark.parametrize(
    ("ttl", "gap_s", "read"), [(None, 299, 3000), (None, 301, 0), ("1h", 3599, 3000), ("1h", 3601, 0)]
)
def test_a_life_ends_by_the_clock(ttl: str | None, gap_s: int, read: int) -> None:
    talk = Talk("anthropic", [say("One."), say("Two.")])
    talk.say("Begin.")
    talk.turn(lambda body: marked(body, None, ttl=ttl))
    talk.clock.advance(gap_s * 1000)
    talk.say("Go on.")
    assert talk.turn(lambda body: marked(body, 1, ttl=ttl)).usage.cache_read == read


CHANGES: dict[str, tuple[dict[str, Any], int]] = {
    "nothing": ({}, 3000),
    "tools": ({"tools": [tool("other")]}, 0),
    "a tool's key order": ({"tools": [tool(input_schema={"properties": {}, "type": "object"})]}, 0),
    "system": ({"system": [text("Be long.", cache_control=marker())]}, 1000),
    "tool choice": ({"tool_choice": {"type": "any"}}, 2000),
    "thinking": ({"thinking": {"type": "adaptive"}}, 2000),
    "model": ({"model": "claude-sonnet-5"}, 0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_spoils_what_comes_behind_it(change: str) -> None:
    fields, read = CHANGES[change]
    talk = Talk("anthropic", [say("One."), say("Two.")])
    talk.say("Begin.")

    def tools_marked(body: dict[str, Any]) -> dict[str, Any]:
        body = {**marked(body, None), **fields_now}
        body["tools"] = [{**body["tools"][0], "cache_control": marker()}]
        return body

    fields_now: dict[str, Any] = {}
    talk.send(tools_marked(talk.body()))
    fields_now = fields
    assert talk.send(tools_marked(talk.body())).usage.cache_read == read


def test_an_image_spoils_the_messages_and_a_marker_on_the_body_falls_on_the_last_block() -> None:
    talk = Talk("anthropic", [say("One.")] * 3)
    talk.said = [user(text("Begin."))]
    talk.turn(lambda body: {**body, "cache_control": marker()})
    talk.said.append(user(text("Go on.")))
    assert talk.turn(lambda body: {**body, "cache_control": marker()}).usage.cache_read == 3000
    talk.said.append(user(image()))
    assert talk.turn(lambda body: {**body, "cache_control": marker()}).usage.cache_read == 0


def test_what_is_refused_or_fails_leaves_the_cache_alone() -> None:
    talk = Talk("anthropic", [say("One.")])
    talk.say("Begin.")
    assert talk.send({**marked(talk.body(), None), "top_q": 1}).rule == "field"
    assert talk.send(marked(talk.body(), None)).usage.cache_read == 0


def test_accounts_share_no_cache() -> None:
    asked = {"model": "claude-opus-5", "max_tokens": 9, "cache_control": marker()}
    words = [{"role": "user", "content": "Begin. " * 200}]
    with ProviderServer([say("Yes.")] * 3) as server:
        for key in ("one", "one", "two"):
            with claude(server, api_key=key) as client:
                client.messages.create(messages=words, **asked)
    read = [each.usage is not None and each.usage.cache_read for each in server.exchanges]
    assert [bool(each) for each in read] == [False, True, False]


@pytest.mark.parametrize("wire", ["anthropic", "chat", "responses"])
def test_who_says_a_thing_is_part_of_it(wire: str) -> None:
    pieces = {"anthropic": anthropic_pieces, "chat": chat_pieces, "responses": responses_pieces}[wire]
    said = [{"role": "user", "content": "Yes."}, {"role": "assistant", "content": "Yes."}]
    first, second = pieces({"messages": said, "input": said})
    assert first.digest != second.digest


# OpenAI


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_the_vendors_own_breakpoint_reads_a_growing_tool_loop(wire: str) -> None:
    talk = Talk(wire, [many(5)] * 4)
    talk.say("Begin.")
    found = [talk.turn() for _ in range(4)]
    for before, after in pairwise(found):
        assert after.usage.cache_read == before.usage.prompt
        usage = after.answer["usage"]
        names = ("prompt_tokens", "prompt_tokens_details")
        total, details = names if wire == "chat" else ("input_tokens", "input_tokens_details")
        assert usage[total] == after.usage.prompt
        assert usage[details]["cached_tokens"] == before.usage.prompt
        assert usage[details]["cache_write_tokens"] == after.usage.prompt - before.usage.prompt


def test_a_large_prefix_with_a_new_suffix_needs_a_breakpoint_of_its_own() -> None:
    """A public report: without an explicit breakpoint the vendor's own moves with the suffix, and misses."""

    def ask(talk: Talk, suffix: str, spot: dict[str, Any]) -> Any:
        large = {"type": "input_text", "text": "The manual.", **spot}
        talk.said = [{"role": "user", "content": [large, {"type": "input_text", "text": suffix}]}]
        return talk.send(talk.body()).usage.cache_read

    bare, spotted = Talk("responses", [say("Yes.")] * 2), Talk("responses", [say("Yes.")] * 2)
    spot = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    assert [ask(bare, each, {}) for each in ("one", "two")] == [0, 0]
    assert [ask(spotted, each, spot) for each in ("one", "two")] == [0, 3000]


@pytest.mark.parametrize(
    ("options", "gap_s", "read"),
    [
        ({}, 1799, True),
        ({}, 1801, False),
        ({"prompt_cache_options": {"ttl": "12h"}}, 43_199, True),
        ({"prompt_cache_options": {"mode": "explicit"}}, 1, False),
        ({"prompt_cache_key": "k"}, 1, True),
    ],
)
def test_what_a_request_asks_of_the_cache(options: dict[str, Any], gap_s: int, read: bool) -> None:
    talk = Talk("responses", [say("One."), say("Two.")])
    talk.say("Begin.")
    talk.turn(lambda body: {**body, **options})
    talk.clock.advance(gap_s * 1000)
    talk.say("Go on.")
    assert bool(talk.turn(lambda body: {**body, **options}).usage.cache_read) is read


@pytest.mark.parametrize("name", ["prompt_cache_key", "model"])
def test_another_key_or_model_shares_nothing(name: str) -> None:
    talk = Talk("chat", [say("One."), say("Two.")])
    talk.say("Begin.")
    talk.turn()
    talk.say("Go on.")
    assert talk.turn(lambda body: {**body, name: "gpt-7"}).usage.cache_read == 0


def test_an_older_model_caches_by_itself_in_steps_and_tells_no_writes() -> None:
    talk = Talk("chat", [say("One."), say("Two.")])
    talk.say("Begin.")
    talk.turn(lambda body: {**body, "model": OLD_GPT})
    talk.say("Go on.")
    found = talk.turn(lambda body: {**body, "model": OLD_GPT})
    assert found.answer["usage"]["prompt_tokens_details"] == {"cached_tokens": 1920, "audio_tokens": 0}


def test_a_model_without_a_known_rule_reads_nothing() -> None:
    talk = Talk("chat", [say("One."), say("Two.")])
    talk.say("Begin.")
    talk.turn(lambda body: {**body, "model": "somebody-else"})
    assert talk.turn(lambda body: {**body, "model": "somebody-else"}).usage.cache_read == 0


SHAPES = st.lists(st.one_of(st.integers(1, 30), st.sampled_from(["words"])), min_size=1, max_size=6)


@given(SHAPES, st.sampled_from([None, "1h"]))
def test_any_conversation_that_only_grows_is_cached_to_its_previous_end(shapes: Any, ttl: str | None) -> None:
    talk = Talk("anthropic", [say("Yes.") if each == "words" else many(each) for each in shapes], rule=RULE)
    talk.say("Begin.")
    before = None
    previous = None
    for each in shapes:
        length = len(talk.said)
        found = talk.turn(partial(marked, previous=previous, ttl=ttl))
        if before is not None:
            assert found.usage.cache_read == before
        assert found.usage.uncached == 0
        before, previous = found.usage.prompt, length
        if each == "words":
            talk.say("Go on.")
        talk.clock.advance(299_000)


@given(SHAPES, st.sampled_from(["chat", "responses"]))
def test_the_same_on_openais_wires_without_any_marker(shapes: Any, wire: str) -> None:
    talk = Talk(
        wire, [say("Yes.") if each == "words" else many(each) for each in shapes], rule=BreakpointRule()
    )
    talk.say("Begin.")
    before = 0
    for each in shapes:
        found = talk.turn()
        assert found.usage.cache_read == before
        before = found.usage.prompt
        if each == "words":
            talk.say("Go on.")
