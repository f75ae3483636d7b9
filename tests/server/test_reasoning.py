"""Reasoning is taken back verbatim on its own prefix, and in no other way (J1, J2, J4)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook.messages import Reasoning, Reply
from shiftbook.providers.scripted import call, calls, say
from shiftbook.testing.server import think
from tests.server.bodies import marker
from tests.server.talk import Talk

REPLIES = [
    think("First I look.", calls(call("lookup", {"a": 1}), call("lookup", {"b": 2}), text="Looking.")),
    think("", call("lookup", {"c": 3}), redacted=True),
    Reply((Reasoning("One."), Reasoning("Two."), *call("lookup", {"d": 4}).parts), "end"),
    think("Enough.", say("It is seven.")),
    say("Yes."),
]
BOUND = ["anthropic", "responses"]


def talked(wire: str, turns: int = 4, **terms: Any) -> Talk:
    talk = Talk(wire, REPLIES, **terms)
    talk.say("How many are there?")
    for number in range(turns):
        talk.turn()
        if number == 3:
            talk.say("Sure?")
    return talk


@pytest.mark.parametrize("wire", BOUND)
def test_a_conversation_that_only_grows_keeps_its_reasoning(wire: str) -> None:
    assert talked(wire, turns=5).number == 5


@pytest.mark.parametrize("wire", BOUND)
def test_a_server_started_anew_honours_what_another_signed(wire: str) -> None:
    body = talked(wire).body()
    assert Talk(wire, [say("Yes.")]).send(body).refusal is None
    other = Talk(wire, [say("Yes.")], secret=b"another vendor").send(body)
    assert other.rule == "reasoning edited"


def test_cache_markers_and_string_content_are_no_change() -> None:
    body = talked("anthropic").body()
    body["system"][-1]["cache_control"] = marker()
    body["messages"][0] = {"role": "user", "content": [{"type": "text", "text": "How many are there?"}]}
    body["messages"][2]["content"][0]["cache_control"] = marker()
    assert Talk("anthropic", [say("Yes.")]).send(body).refusal is None


@pytest.mark.parametrize("wire", BOUND)
def test_reasoning_may_be_left_out_altogether(wire: str) -> None:
    body = talked(wire).body()
    if wire == "anthropic":
        for message in body["messages"]:
            if message["role"] == "assistant":
                message["content"] = [b for b in message["content"] if "thinking" not in b["type"]]
    else:
        kept = [item for item in body["input"] if item.get("type") != "reasoning"]
        assert Talk(wire, [say("Yes.")]).send({**body, "input": kept}).rule == "reasoning gone"
        for item in kept:
            item.pop("id", None)
        body["input"] = kept
    assert Talk(wire, [say("Yes.")]).send(body).refusal is None


def changed_prefixes(wire: str) -> dict[str, Any]:
    """Ways in which harnesses change what stands before reasoning, one function of the body each."""

    def tools(body: dict[str, Any]) -> None:
        body["tools"].append({**body["tools"][0], "name": "another"})

    def instructions(body: dict[str, Any]) -> None:
        if wire == "anthropic":
            body["system"] = "Be briefer."
        else:
            body["instructions"] = "Be briefer."

    def first_words(body: dict[str, Any]) -> None:
        said = body["messages" if wire == "anthropic" else "input"]
        said[0] = {"role": "user", "content": "A report of what was before."}

    def a_result(body: dict[str, Any]) -> None:
        if wire == "anthropic":
            body["messages"][2]["content"][0]["content"] = "[old result removed]"
        else:
            found = [item for item in body["input"] if item.get("type") == "function_call_output"]
            found[0]["output"] = "[old result removed]"

    def a_calls_arguments(body: dict[str, Any]) -> None:
        if wire == "anthropic":
            body["messages"][1]["content"][-1]["input"] = {"z": 1}
        else:
            found = [item for item in body["input"] if item.get("type") == "function_call"]
            found[0]["arguments"] = '{"z":1}'

    def the_first_reasoning_gone(body: dict[str, Any]) -> None:
        if wire == "anthropic":
            del body["messages"][1]["content"][0]
        else:
            gone = next(n for n, item in enumerate(body["input"]) if item.get("type") == "reasoning")
            del body["input"][gone]
            for item in body["input"][:4]:
                item.pop("id", None)

    return {
        f.__name__: f
        for f in (tools, instructions, first_words, a_result, a_calls_arguments, the_first_reasoning_gone)
    }


@pytest.mark.parametrize("change", changed_prefixes(""))
@pytest.mark.parametrize("wire", BOUND)
def test_reasoning_on_another_prefix_is_refused_or_withheld(wire: str, change: str) -> None:
    body = talked(wire).body()
    changed_prefixes(wire)[change](body)
    refused = Talk(wire, [say("Yes.")]).send(copy.deepcopy(body))
    assert refused.rule == "reasoning of other prefix"
    assert refused.refusal is not None
    assert refused.refusal.status == 400
    withheld = Talk(wire, [say("Yes.")], stale_reasoning="dropped").send(body)
    assert withheld.refusal is None
    assert {each.why for each in withheld.withheld} == {"other prefix"}
    if wire == "responses":
        assert withheld.answer is not None
        told = withheld.answer["input_transformations"]
        assert [each["reason"] for each in told] == ["prefix_mismatch"] * len(withheld.withheld)


def test_a_request_may_ask_for_bound_blocks_to_be_dropped() -> None:
    talk = talked("anthropic")
    body = {**talk.body(), "system": "Be briefer."}
    body["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert talk.send(body).rule == "field", "the setting needs a beta header"
    talk.headers["anthropic-beta"] = "thinking-binding-controls-2026-08-01"
    found = talk.send(body)
    assert found.refusal is None
    assert [each.why for each in found.withheld] == ["other prefix"] * 5
    body["messages"][1]["content"][0]["signature"] += "x"
    assert talk.send(body).rule == "reasoning edited"


@pytest.mark.parametrize("wire", BOUND)
def test_an_edit_that_decodes_to_the_same_bytes_is_an_edit(wire: str) -> None:
    body = talked(wire).body()
    block = reasoning_places(wire, body)[0]
    name = "signature" if wire == "anthropic" else "encrypted_content"
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    last = block[name][-3]
    block[name] = block[name][:-3] + letters[letters.index(last) + 1] + "=="
    assert Talk(wire, [say("Yes.")]).send(body).rule == "reasoning edited"


@pytest.mark.parametrize("wire", BOUND)
def test_reasoning_of_another_model_is_refused_or_withheld(wire: str) -> None:
    body = {**talked(wire).body(), "model": "another-model"}
    assert Talk(wire, [say("Yes.")]).send(body).rule == "reasoning of other model"
    withheld = Talk(wire, [say("Yes.")], stale_reasoning="dropped").send(body)
    assert [each.why for each in withheld.withheld] == ["other model"] * 5


def test_ids_of_the_vendor_do_not_survive_without_their_reasoning() -> None:
    """J4: a rebuilt prompt that keeps the id of an item whose reasoning it dropped is refused."""
    body = talked("responses", turns=1).body()
    body["input"] = [item for item in body["input"] if item.get("type") != "reasoning"]
    assert Talk("responses", [say("Yes.")]).send(body).rule == "reasoning gone"


def reasoning_places(wire: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    if wire == "responses":
        return [item for item in body["input"] if item.get("type") == "reasoning"]
    blocks = [b for m in body["messages"] if m["role"] == "assistant" for b in m["content"]]
    return [block for block in blocks if "thinking" in block["type"]]


def fields_of(block: dict[str, Any]) -> list[str]:
    return [name for name in ("thinking", "signature", "data", "encrypted_content") if block.get(name)]


TALKS = {wire: talked(wire).body() for wire in BOUND}


@given(st.data())
def test_edited_reasoning_is_always_refused(data: st.DataObject) -> None:
    """Any change of any character of any reasoning field, any block put for another: never a reply."""
    wire = data.draw(st.sampled_from(BOUND))
    body = copy.deepcopy(TALKS[wire])
    blocks = reasoning_places(wire, body)
    block = data.draw(st.sampled_from(blocks))
    if data.draw(st.booleans()):
        name = data.draw(st.sampled_from(fields_of(block)))
        text = block[name]
        place = data.draw(st.integers(0, len(text) - 1))
        put = data.draw(st.text(st.characters(codec="utf-8"), max_size=3))
        edited = text[:place] + put + text[place + 1 :]
        if edited == text:
            return
        block[name] = edited
    else:
        other = data.draw(st.sampled_from([each for each in blocks if each is not block]))
        if {k: v for k, v in block.items() if k != "id"} == {k: v for k, v in other.items() if k != "id"}:
            return
        kept = dict(block)
        block.update({k: v for k, v in other.items() if k != "id"})
        for name in kept.keys() - other.keys():
            block.pop(name)
    found = Talk(wire, [say("Yes.")]).send(body)
    assert found.refusal is not None
    assert found.refusal.status in (400, 404)
    assert found.reply is None


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zs")), min_size=1, max_size=5)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("words"), WORDS),
        st.tuples(st.just("calls"), st.integers(1, 4)),
        st.tuples(st.just("resume"), st.just("")),
        st.tuples(st.just("rebuild"), WORDS),
    ),
    min_size=1,
    max_size=8,
)


@given(st.sampled_from(BOUND), ACTS)
def test_growing_resuming_and_rebuilding_without_reasoning_is_always_taken(wire: str, acts: Any) -> None:
    replies: list[Reply] = []
    talk = Talk(wire, lambda _exchange: replies[-1])
    talk.say("Begin.")
    for kind, what in acts:
        if kind == "resume":
            fresh = Talk(wire, lambda _exchange: replies[-1])
            fresh.said, fresh.number = talk.said, talk.number
            talk = fresh
        elif kind == "rebuild":
            talk.said = [{"role": "user", "content": f"Report: {what}"}]
        else:
            reply = say(what) if kind == "words" else calls(*[call("lookup", {"n": n}) for n in range(what)])
            replies.append(think("Hm.", reply))
            talk.turn()
            if kind == "words":
                talk.say("Go on.")
