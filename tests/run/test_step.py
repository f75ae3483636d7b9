"""`step` alone: what is next, from a view and a situation, without a database or a clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shiftbook.messages import Usage
from shiftbook.projections.view import OpenAsk, OpenCall, RunView, view_to_plain
from shiftbook.run.limits import Limits
from shiftbook.run.step import (
    Ask,
    AskAgain,
    Dispatch,
    DropAsk,
    EndPause,
    MoveMail,
    Nothing,
    Reconcile,
    Rest,
    Settle,
    Situation,
    Stop,
    ToolFacts,
    step,
)

TOOLS = {
    "safe": ToolFacts("safe", "s1"),
    "keyed": ToolFacts("keyed", "k1"),
    "reconcile": ToolFacts("reconcile", "r1"),
    "ask": ToolFacts("ask", "a1"),
}
NOW = Situation(epoch=2, tools=TOOLS)
LIMITS = Limits(parallel=2, attempts=3)


def open_call(tool: str, number: int = 1, **changes: Any) -> OpenCall:
    contract = TOOLS[tool].contract if tool in TOOLS else ""
    return OpenCall(
        **({"call": f"1.{number}", "tool": tool, "arguments": {}, "contract": contract} | changes)
    )


def with_calls(*calls: OpenCall) -> RunView:
    return RunView(run="r", turn=1, answers=1, owed=True, calls={each.call: each for each in calls})


def test_a_new_run_with_words_in_it_asks_and_one_without_waits_for_a_person() -> None:
    assert step(RunView(owed=True), NOW, LIMITS) == Ask(1)
    assert step(RunView(), NOW, LIMITS) == Rest("waiting", "person")


def test_a_reply_without_a_call_ends_the_task_unless_the_agent_converses() -> None:
    view = RunView(turn=1, answers=1)
    assert step(view, NOW, LIMITS) == Rest("finished", "")
    assert step(view, replace(NOW, conversational=True), LIMITS) == Rest("waiting", "person")


@pytest.mark.parametrize(
    ("tool", "attempt", "act"),
    [
        ("safe", 0, Dispatch((("1.1", 1),))),
        ("ask", 0, Dispatch((("1.1", 1),))),
        ("safe", 1, Dispatch((("1.1", 2),))),
        ("keyed", 2, Dispatch((("1.1", 3),))),
        ("reconcile", 1, Reconcile("1.1")),
        ("ask", 1, "unknown"),
        ("safe", 3, "unknown"),
        ("keyed", 3, "unknown"),
        ("gone", 0, "failed"),
        ("gone", 1, "unknown"),
    ],
)
def test_what_is_done_with_a_call_by_policy_and_attempt(tool: str, attempt: int, act: Any) -> None:
    found = step(with_calls(open_call(tool, attempt=attempt)), NOW, LIMITS)
    if isinstance(act, str):
        assert isinstance(found, Settle)
        assert (found.call, found.outcome) == ("1.1", act)
    else:
        assert found == act


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"contract": "other"}, "cancelled"),
        ({"contract": ""}, "cancelled"),
        ({"contract": "other", "attempt": 1}, "unknown"),
        ({"arguments": None}, "failed"),
        ({"withheld": True}, "failed"),
    ],
)
def test_a_call_that_must_not_be_started_is_settled(changes: dict[str, Any], outcome: str) -> None:
    found = step(with_calls(open_call("safe", **changes)), NOW, LIMITS)
    assert isinstance(found, Settle)
    assert found.outcome == outcome


def test_calls_go_out_in_groups_after_everything_that_is_settled() -> None:
    view = with_calls(*(open_call("safe", number) for number in (1, 2, 3)), open_call("gone", 4))
    first = step(view, NOW, LIMITS)
    assert isinstance(first, Settle)
    assert first.call == "1.4"
    del view.calls["1.4"]
    assert step(view, NOW, LIMITS) == Dispatch((("1.1", 1), ("1.2", 1)))


def test_open_calls_come_before_mail_and_mail_before_the_next_request() -> None:
    mail = replace(NOW, mail=True)
    assert isinstance(step(with_calls(open_call("safe")), mail, LIMITS), Dispatch)
    assert step(RunView(turn=1, answers=1, owed=True), mail, LIMITS) == MoveMail()
    assert step(RunView(turn=1, answers=1, state="finished"), mail, LIMITS) == MoveMail()
    assert step(RunView(turn=1, answers=1, state="cancelled"), mail, LIMITS) == MoveMail()


def test_an_open_request_is_sent_again_until_the_retries_are_used_up() -> None:
    view = RunView(turn=3, ask=OpenAsk(3, failures=4, tried=1, retry_at_ms=500, wait_ms=70))
    assert step(view, NOW, LIMITS) == AskAgain(3, 5, 500, 70)
    for ask in (OpenAsk(3, tried=LIMITS.retries + 1), OpenAsk(3, gave_up=True)):
        found = step(replace(view, ask=ask), NOW, LIMITS)
        assert isinstance(found, Rest)
        assert found.state == "failed"


def test_a_refused_continuation_ends_the_pause_and_a_model_that_cannot_be_had_does_not() -> None:
    paused = replace(NOW, is_paused=True)
    refused = RunView(turn=3, ask=OpenAsk(3, gave_up=True, status=400))
    assert step(refused, paused, LIMITS) == EndPause(3)
    assert isinstance(step(refused, NOW, LIMITS), Rest)
    for ask in (OpenAsk(3, gave_up=True, status=401), OpenAsk(3, tried=LIMITS.retries + 1, status=529)):
        assert isinstance(step(RunView(turn=3, ask=ask), paused, LIMITS), Rest)


def test_replies_cut_off_one_after_another_end_the_shift() -> None:
    view = RunView(turn=5, answers=1, owed=True, interruptions=LIMITS.interruptions)
    assert step(view, NOW, LIMITS) == Ask(6)
    found = step(replace(view, interruptions=LIMITS.interruptions + 1), NOW, LIMITS)
    assert isinstance(found, Rest)
    assert found.state == "failed"


def test_a_wish_to_cancel_answers_everything_that_is_open_and_rests() -> None:
    now = replace(NOW, wish="cancel", why="enough")
    view = with_calls(open_call("safe", 1, attempt=1), open_call("safe", 2))
    outcomes = []
    while isinstance(found := step(view, now, LIMITS), Settle):
        outcomes.append(found.outcome)
        del view.calls[found.call]
    assert outcomes == ["unknown", "cancelled"]
    assert found == Rest("cancelled", "enough")
    assert step(RunView(turn=2, ask=OpenAsk(2)), now, LIMITS) == DropAsk(2, "enough")


@pytest.mark.parametrize("state", ["finished", "waiting", "cancelled"])
def test_a_run_that_rests_has_nothing_to_do(state: Any) -> None:
    assert step(RunView(turn=1, answers=1, state=state), NOW, LIMITS) == Nothing()


def test_a_wish_to_stop_leaves_what_is_open_for_later() -> None:
    now = replace(NOW, wish="stop", why="a pause")
    assert step(with_calls(open_call("safe")), now, LIMITS) == Rest("paused", "a pause")
    assert step(RunView(state="paused", owed=True), now, LIMITS) == Nothing()
    assert step(RunView(state="paused", owed=True), NOW, LIMITS) == Ask(1)


@pytest.mark.parametrize(
    ("limits", "stop"),
    [
        (Limits(turns=3), Stop("turns", 3, 3)),
        (Limits(tokens=100), Stop("tokens", 110, 100)),
        (Limits(wall_ms=1_000), Stop("wall_ms", 1_500, 1_000)),
    ],
)
def test_w2_a_limit_that_is_reached_is_named_with_its_numbers(limits: Limits, stop: Stop) -> None:
    view = RunView(
        turn=3,
        answers=3,
        owed=True,
        at_ms=2_500,
        opened_ms=1_000,
        used=Usage(uncached=60, cache_read=40, output=10),
    )
    assert step(view, NOW, LIMITS) == Ask(4)
    assert step(view, NOW, limits) == stop


def test_step_changes_nothing_and_says_the_same_again() -> None:
    view = with_calls(open_call("keyed", attempt=1), open_call("safe", 2))
    before = view_to_plain(view)
    assert step(view, NOW, LIMITS) == step(view, NOW, LIMITS)
    assert view_to_plain(view) == before
