"""Each rule of each wire lets a sound body through and refuses its unsound neighbour, under its own name."""

from __future__ import annotations

from typing import Any

import pytest

from shiftbook.economics.cache_vendors import cache_rule
from shiftbook.providers.scripted import say
from shiftbook.testing.server import ANTHROPIC_RULES, CHAT_RULES, RESPONSES_RULES, Known, first_refusal
from tests.server.bodies import anthropic, responses, user
from tests.server.cases_anthropic import ANTHROPIC_CASES
from tests.server.cases_openai import CHAT_CASES, RESPONSES_CASES
from tests.server.talk import Talk

WIRES = {
    "anthropic": (ANTHROPIC_RULES, ANTHROPIC_CASES),
    "chat": (CHAT_RULES, CHAT_CASES),
    "responses": (RESPONSES_RULES, RESPONSES_CASES),
}
EVERY = [
    pytest.param(wire, *case, id=f"{wire}-{case[0]}-{number}")
    for wire, (_rules, cases) in WIRES.items()
    for number, case in enumerate(cases)
]


def judged(wire: str, body: dict[str, Any]) -> str | None:
    found = first_refusal(WIRES[wire][0], body, Known(cache=cache_rule(body.get("model", ""))))
    return f"{found.rule}: {found.message}" if found else None


@pytest.mark.parametrize(("wire", "rule", "sound", "unsound"), EVERY)
def test_a_rule_takes_the_sound_body_and_refuses_the_unsound(
    wire: str, rule: str, sound: dict[str, Any], unsound: dict[str, Any]
) -> None:
    assert judged(wire, sound) is None
    assert (judged(wire, unsound) or "").startswith(f"{rule}: ")


@pytest.mark.parametrize("wire", WIRES)
def test_every_rule_has_a_case(wire: str) -> None:
    rules, cases = WIRES[wire]
    assert set(rules) == {rule for rule, _sound, _unsound in cases}


def test_a_waived_rule_is_not_asked_and_the_others_are() -> None:
    script = [say("Yes."), say("Yes.")]
    unlisted = responses(user(), client_metadata={"installed": "1"})
    assert Talk("responses", script).send(unlisted).rule == "field"
    talk = Talk("responses", script, waived=frozenset({"field"}))
    assert talk.send(unlisted).rule is None
    assert talk.send({**unlisted, "max_output_tokens": 1}).rule == "output limit"


def test_what_is_beta_is_refused_without_the_beta() -> None:
    body = anthropic(context_management={"edits": []}, thinking={"type": "adaptive", "block_binding": {}})
    assert first_refusal(ANTHROPIC_RULES, body, Known())
    assert first_refusal(ANTHROPIC_RULES, body, Known(betas=frozenset({"some-beta"}))) is None
