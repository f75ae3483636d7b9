"""The strict validator: a sound request passes, and each fault is found in a request that has it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shiftbook.messages import (
    Block,
    Call,
    Missing,
    Part,
    Reasoning,
    Request,
    Result,
    Side,
    Text,
    ToolSchema,
)
from shiftbook.testing.validator import FAULTS, RequestRefused, check_request, request_faults

TOOL = ToolSchema("order", "Orders.", {"type": "object"})
CALL = Call("1.1", "order", {"n": 1})
OK = Result("1.1", (Text("ok"),))
HI: tuple[Side, Text] = ("user", Text("hi"))
GO: tuple[Side, Text] = ("user", Text("go on"))


def request(*said: tuple[Side, *tuple[Part, ...]], tools: tuple[ToolSchema, ...] = (TOOL,)) -> Request:
    return Request("run", 1, 1, "m", "", tools, [Block(side, tuple(parts)) for side, *parts in said])


SOUND = request(
    HI,
    ("assistant", Reasoning("hm"), Text("I order."), CALL, replace(CALL, id="1.2")),
    ("user", Result("1.2", (Text("no"),), is_error=True)),
    ("user", OK, Text("and then?")),
    ("assistant", Reasoning("hm"), replace(CALL, id="2.1")),
    ("user", replace(OK, call="2.1")),
)

BROKEN: dict[str, Request] = {
    "no message": request(),
    "first message not the user's": request(("assistant", Text("hi")), GO),
    "last message not the user's": request(HI, ("assistant", Text("hi"))),
    "empty block": request(HI, ("user",)),
    "blank text": request(("user", Text(" \n"))),
    "text not Unicode": request(("user", Text("\udc88"))),
    "part on the wrong side": request(("user", Text("hi"), Reasoning("hm"))),
    "missing part": request(("user", Text("hi"), Missing("image"))),
    "call without answer": request(HI, ("assistant", CALL), GO),
    "answer without call": request(HI, ("assistant", Text("hi")), ("user", OK)),
    "second answer": request(HI, ("assistant", CALL), ("user", OK, OK)),
    "answer behind text": request(HI, ("assistant", CALL), ("user", Text("wait"), OK)),
    "empty answer": request(HI, ("assistant", CALL), ("user", Result("1.1", ()))),
    "call id not unique": request(HI, ("assistant", CALL), ("user", OK), ("assistant", CALL), ("user", OK)),
    "call id unusable": request(HI, ("assistant", replace(CALL, id="")), ("user", replace(OK, call=""))),
    "text behind a call": request(HI, ("assistant", CALL, Text("so")), ("user", OK)),
    "arguments not an object": request(HI, ("assistant", replace(CALL, arguments=None)), ("user", OK)),
    "tool unknown": request(HI, ("assistant", replace(CALL, tool="sell")), ("user", OK)),
    "tool name unusable": request(HI, tools=(replace(TOOL, name="or der"),)),
    "tool declared twice": request(HI, tools=(TOOL, TOOL)),
    "reasoning last": request(HI, ("assistant", Text("so"), Reasoning("hm")), GO),
}


def test_a_sound_request_passes():
    check_request(SOUND)


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_each_fault_is_found_and_nothing_else(name):
    faults = request_faults(BROKEN[name])
    assert {fault.name for fault in faults} == {name}
    with pytest.raises(RequestRefused, match=name):
        check_request(BROKEN[name])


def test_reasoning_can_be_forbidden():
    assert {fault.name for fault in request_faults(SOUND, reasoning=False)} == {"reasoning not allowed"}


def test_every_name_of_a_fault_is_tried_here():
    assert BROKEN.keys() | {"reasoning not allowed"} == FAULTS


def test_an_answer_that_comes_a_message_late_is_two_faults():
    late = request(HI, ("assistant", CALL), GO, ("assistant", Text("so")), ("user", OK))
    assert [(fault.name, fault.message) for fault in request_faults(late)] == [
        ("call without answer", 1),
        ("answer without call", 4),
    ]
