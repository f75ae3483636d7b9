"""What holds of every wire: prompts only grow, bytes are the same everywhere, every vendor takes the body."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftbook.messages import Call, Missing, Reasoning, ToolSchema
from shiftbook.policies import Transcript, Window
from tests.prompt.shift import Shift
from tests.providers.wires import (
    ALL,
    ANTHROPIC,
    CHAT,
    COMPATIBLE,
    FILE,
    IMAGE,
    RESPONSES,
    WIRES,
    assistant,
    images,
    leaves,
    markers,
    request,
    result,
    unmarked,
    user,
)
from tests.strategies import histories

IDS = [f"{wire.name} {wire.model}" for wire in ALL]


@settings(max_examples=60)
@given(history=histories(turns_max=6, huge=2_000), cap=st.sampled_from((2_500, 2_000_000)))
def test_i1_within_an_epoch_a_body_is_the_beginning_of_the_next_and_every_vendor_takes_it(history, cap):
    policy = Transcript() if cap > 10_000 else Window()
    asked = Shift(policy, cap=cap, mark=cap // 3).live(history).asked
    for wire in ALL:
        before: list = []
        epoch = 0
        for each in asked:
            made = request(each.blocks, tools=each.tools, marks=(1, max(0, len(each.blocks) - 1)))
            body = wire.body(made)
            assert wire.refusal(body) is None, wire.model
            json.dumps(body, ensure_ascii=False).encode("utf-8")
            now = leaves(body)
            if each.epoch == epoch and wire in WIRES:
                assert now[: len(before)] == before, wire.model
            before, epoch = now, each.epoch


@settings(max_examples=40)
@given(history=histories(turns_max=5, huge=500), seed=st.integers(0, 99))
def test_markers_change_nothing_but_markers(history, seed):
    draw = random.Random(seed)
    for each in Shift(Transcript(), cap=2_000_000).live(history).asked:
        count = len(each.blocks)
        marks = tuple(sorted((draw.randint(0, count), draw.randint(0, count))))
        for wire in WIRES:
            marked = wire.body(request(each.blocks, tools=each.tools, marks=marks))
            assert unmarked(marked) == unmarked(wire.body(request(each.blocks, tools=each.tools)))
            assert 1 <= len(markers(marked)) <= 4
            assert wire.refusal(marked) is None


@pytest.mark.parametrize("wire", ALL, ids=IDS)
def test_i6_registration_and_key_order_do_not_reach_the_wire(wire):
    def schema(names: list[str]) -> dict:
        return {
            "properties": {name: {"title": name, "type": "string"} for name in names},
            "type": "object",
            "required": ["query", "limit"],
        }

    names = ["query", "limit", "zone", "after"]
    tools = [ToolSchema(name, f"Does {name}.", schema(names)) for name in ("b", "a", "c")]
    first = json.dumps(wire.body(request([user("Hi")], tools=tuple(tools)), {"x": 1, "a": {"k": 2, "b": 1}}))
    for seed in range(20):
        draw = random.Random(seed)
        mixed = []
        for tool in draw.sample(tools, 3):
            shuffled = schema(draw.sample(names, 4))
            keys = draw.sample(sorted(shuffled), 3)
            mixed.append(replace(tool, parameters={key: shuffled[key] for key in keys}))
        again = wire.body(request([user("Hi")], tools=tuple(mixed)), {"a": {"k": 2, "b": 1}, "x": 1})
        assert json.dumps(again) == first
    told = json.dumps(wire.body(request([user("Hi")], tools=tuple(tools))))
    order = [told.index(f'"{name}": {{"title"') for name in ("query", "limit", "after", "zone")]
    assert order == sorted(order), "a model writes arguments as the author lists them in `required`"


CHILD = """
import hashlib, json
from tests.providers.test_wires import bodies
print(hashlib.sha256(bodies().encode("utf-8")).hexdigest())
"""


def bodies() -> str:
    """Bodies of a request with something of everything, as text."""
    thought = Reasoning("hm", {"type": "thinking", "thinking": "hm", "signature": "s"})
    call = Call("1.1", "lookup", {"b": 1, "a": {"z": 2, "c": [1.5, None]}})
    odd = Call("1.2", "lookup", None, "not json")
    said = [
        user("Begin.", IMAGE, FILE),
        assistant(thought, "So.", call, odd),
        user(result("1.1", "one", IMAGE), result("1.2", "no", error=True), Missing("image, 12 kB")),
    ]
    made = request(said, marks=(1, 1), parameters={"top_p": 0.5, "metadata": {"b": "1", "a": "2"}})
    return "\n".join(json.dumps(wire.body(made), ensure_ascii=False) for wire in ALL)


def test_bytes_are_the_same_in_every_process():
    here = hashlib.sha256(bodies().encode("utf-8")).hexdigest()
    for seed, zone in (("1", "UTC"), ("77", "Asia/Tokyo")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C"}
        done = subprocess.run(
            [sys.executable, "-c", CHILD], capture_output=True, text=True, env=environment, check=True
        )
        assert done.stdout.strip() == here


@pytest.mark.parametrize("wire", ALL, ids=IDS)
def test_e10_images_are_image_blocks_where_the_model_takes_them_and_words_elsewhere(wire):
    shots = [IMAGE] * 20
    said = [user("Look.", IMAGE), assistant(Call("1.1", "lookup", {"id": 1})), user(result("1.1", *shots))]
    body = wire.body(request(said))
    assert wire.refusal(body) is None
    text = json.dumps(body)
    data = "iVBORw0KGgo"
    if wire is COMPATIBLE or "mistral" in wire.model or "deepseek" in wire.model:
        assert data not in text
        assert text.count("not shown, this model does not take it") == 21
        return
    assert text.count(data) == 21
    found = images(body)
    assert len(found) == 21
    assert data not in json.dumps(unimaged(body)), "no image is spelled out as text"


def unimaged(value):
    if isinstance(value, dict):
        if value.get("type") in ("image", "image_url", "input_image"):
            return None
        return {key: unimaged(each) for key, each in value.items()}
    return [unimaged(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("wire", ALL, ids=IDS)
def test_a_piece_whose_bytes_are_gone_is_told_as_missing(wire):
    body = wire.body(request([user("Look.", IMAGE, FILE)], blob={}.__getitem__))
    assert wire.refusal(body) is None
    assert "shot.png, image/png, 9008 bytes" in json.dumps(body)
    assert not images(body)


FOREIGN = (
    ("anthropic", {"type": "thinking", "thinking": "hm", "signature": "sig"}),
    ("anthropic", {"type": "redacted_thinking", "data": "xx"}),
    ("openai-responses", {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xx"}),
    ("openai-chat", {"wire": "openai-chat", "field": "reasoning_content"}),
    ("none", None),
    ("none", {"sig": "x"}),
    ("none", {"type": "thinking", "thinking": "cut before it was signed"}),
    ("none", {"type": "reasoning", "id": "rs_1", "summary": []}),
)


@pytest.mark.parametrize(("maker", "block"), FOREIGN)
def test_j_reasoning_goes_back_to_its_maker_verbatim_and_to_nobody_else(maker, block):
    thought = Reasoning("because of that", block)
    said = [user("Go."), assistant(thought, "So it is."), user("Why?")]
    for wire in ALL:
        body = wire.body(request(said))
        flat = json.dumps(body)
        for message in body.get("messages", ()):
            if wire.model == "deepseek-v4":
                message.pop("reasoning_content", None)  # the server judges Chat as OpenAI does
        assert wire.refusal(body) is None
        if wire.name != maker or "local" in wire.model or "mistral" in wire.model or wire.model == "gpt-4.1":
            assert "because of that" not in flat
            assert "rs_1" not in flat
            assert "redacted" not in flat
        elif wire.name == "openai-chat":
            assert ("because of that" in flat) == (wire.model == "deepseek-v4")
        else:
            pieces = body["messages"][1]["content"] if wire.name == "anthropic" else body["input"]
            assert block in pieces


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_j4_ids_of_the_vendor_live_within_their_epoch_and_are_ours_after_it(wire):
    vendor = {"wire": wire.name, "id": "toolu_0A"}
    live = Call("3.1", "lookup", {"id": 1}, None, vendor)
    kept = replace(live, vendor=None)
    foreign = replace(live, vendor={"wire": "another", "id": "theirs_9"})
    for call, name in ((live, "toolu_0A"), (kept, "call_3_1"), (foreign, "call_3_1")):
        text = json.dumps(wire.body(request([user("Go."), assistant(call), user(result("3.1", "x"))])))
        assert text.count(f'"{name}"') == 2, "once for the call, once for its answer"
        for other in {"toolu_0A", "call_3_1", "theirs_9", "3.1"} - {name}:
            assert f'"{other}"' not in text


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_server_that_hands_out_one_id_twice_is_corrected(wire):
    vendor = {"wire": wire.name, "id": "call_0"}
    said = [user("Go.")]
    for turn in (1, 2, 3):
        calls = [Call(f"{turn}.{n}", "lookup", {"id": n}, None, vendor) for n in (1, 2)]
        said += [assistant(*calls), user(*(result(call.id, "x") for call in calls))]
    body = wire.body(request(said))
    assert wire.refusal(body) is None
    assert [json.dumps(body).count(f'"{name}"') for name in ("call_0", "call_1_2", "call_3_1")] == [2, 2, 2]


def test_a12_one_prompt_of_every_kind_is_valid_for_three_vendors_after_a_switch():
    made_by = {
        ANTHROPIC.name: Reasoning("hm", {"type": "thinking", "thinking": "hm", "signature": "sig"}),
        CHAT.name: Reasoning("hm", {"wire": "openai-chat", "field": "reasoning"}),
        RESPONSES.name: Reasoning("hm", dict(FOREIGN[2][1] or {})),
    }
    for first in WIRES:
        vendor = {"wire": first.name, "id": "id_1"}
        call = Call("1.1", "lookup", {"id": 1}, '{"id": 1}', vendor)
        said = [
            user("Go."),
            assistant(made_by[first.name], "I look.", call, Call("1.2", "lookup", None, "{cut")),
            user(result("1.1", "x", IMAGE, error=True), result("1.2", error=True), "And?"),
        ]
        for wire in ALL:
            assert wire.refusal(wire.body(request(said))) is None, f"{first.name} to {wire.model}"
