"""The cap is hard whatever comes: the inputs that people reported, by the real meter where it matters."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pytest

from shiftbook.entries import ActionFinished, ModelAnswered, ModelInterrupted, PersonSaid
from shiftbook.errors import BadInput, CapTooSmall, Damaged
from shiftbook.messages import Call, Reasoning, Result, Text
from shiftbook.policies import POLICIES, Masking, Transcript, Window, policy_named
from shiftbook.prompt.epoch import Extend, Rebuild
from shiftbook.prompt.measure import Gauge
from shiftbook.tokens import BpeMeter
from tests.prompt import invariants
from tests.prompt.shift import Shift
from tests.strategies import TOOLS


def said(text: str) -> PersonSaid:
    return PersonSaid((Text(text),))


def answered(turn: int, *calls: Mapping[str, object], text: str = "") -> ModelAnswered:
    parts = [Call(f"{turn}.{n}", "read_file", arguments) for n, arguments in enumerate(calls, 1)]
    return ModelAnswered(turn, (*([Text(text)] if text else []), *parts), "calls" if calls else "end")


def done(call: str, text: str) -> ActionFinished:
    return ActionFinished(call, "done", (Text(text),))


def holds(shift: Shift) -> None:
    for check in invariants.INVARIANTS:
        check(shift)


def begun(policy, cap: int = 8_000, mark: int = 3_200, **rest) -> Shift:
    shift = Shift(policy, cap=cap, mark=mark, **rest)
    shift.happen(said("Begin."))
    assert shift.ask() is not None
    return shift


each = pytest.mark.parametrize(
    "policy", [make() for make in POLICIES.values()], ids=lambda policy: policy.name
)


@each
def test_h6_one_huge_result_is_cut_before_it_enters_a_prompt(policy):
    shift = begun(policy, meter=BpeMeter())
    shift.happen(answered(1, {"path": "big"}), done("1.1", "0123456789 abcdef\n" * 290_000))
    asked = shift.ask()
    assert asked is not None
    assert isinstance(asked.choice, Extend), "what was there before is not given up for one huge result"
    holds(shift)
    result = asked.blocks[-1].parts[0]
    assert isinstance(result, Result)
    assert isinstance(result.content[0], Text)
    assert "characters left out; the whole is entry" in result.content[0].text
    assert asked.blocks[-2].parts[0] == Call("1.1", "read_file", {"path": "big"}), "the small one is whole"
    shift.happen(answered(2, text="I saw enough."), said("Go on."))
    assert shift.ask() is not None
    holds(shift)


@each
def test_h11_the_newest_is_the_big_one(policy):
    shift = begun(policy)
    for turn in (1, 2, 3):
        shift.happen(answered(turn, {}), done(f"{turn}.1", "x" * 40))
        shift.ask()
    shift.happen(answered(4, {}), done("4.1", "x" * 360_000))
    asked = shift.ask()
    assert asked is not None
    assert {
        entry.position for entry in shift.journal if isinstance(entry.what, ActionFinished)
    } <= asked.shown
    holds(shift)


@each
def test_forty_parallel_results_are_lowered_to_one_height(policy):
    shift = begun(policy)
    sizes = [20, 60, *range(2_000, 21_000, 500)]
    shift.happen(answered(1, *({"n": n} for n in range(40))))
    shift.happen(*(done(f"1.{n}", "y" * size) for n, size in enumerate(sizes, 1)))
    asked = shift.ask()
    assert asked is not None
    keeps = {pick.keep for pick in asked.choice.picks if pick.form == "cut"}
    assert len(keeps) == 1, "one height"
    whole = [pick for pick in asked.choice.picks if pick.form in ("whole", "kept")]
    assert sum(pick.last - pick.first + 1 for pick in whole) >= 3, "the reply and the small results stay"
    holds(shift)


def test_more_parallel_results_than_fit_even_when_cut():
    calls = [{"n": n} for n in range(900)]
    for policy in (Transcript(), Window(), Masking()):
        shift = begun(policy)
        shift.happen(answered(1, *calls), *(done(f"1.{n}", "z" * 500) for n in range(1, 901)))
        asked = shift.ask()
        holds(shift)
        if policy.name == "transcript":
            assert asked is None, "transcript says that it is full, and drops nothing"
            assert shift.full is not None
        else:
            assert asked is not None
            assert [block.kind for block in asked.blocks] == ["dropped"]
            assert "is not shown" in asked.warned


@each
def test_a_hundred_kilobytes_of_a_persons_words_are_cut_last_and_with_a_warning(policy):
    shift = Shift(policy, cap=8_000, mark=3_200)
    shift.happen(said("word " * 20_000))
    asked = shift.ask()
    assert asked is not None
    assert "a person's own words" in asked.warned
    assert "entry 3 of this run" in next(iter(invariants.texts_of(asked.blocks[-1])))
    holds(shift)


@each
def test_a_persons_words_stay_whole_while_results_can_be_cut(policy):
    shift = begun(policy)
    shift.happen(answered(1, {}), done("1.1", "r" * 200_000), said("w " * 4_000))
    asked = shift.ask()
    assert asked is not None
    assert asked.warned == ""
    assert "w " * 4_000 in list(invariants.texts_of(asked.blocks[-1]))
    holds(shift)


def test_window_goes_on_through_many_tiny_turns_with_few_rebuilds():
    shift = begun(Window())
    for turn in range(1, 401):
        shift.happen(answered(turn, {"n": turn}), done(f"{turn}.1", f"ok {turn}"))
        assert shift.ask() is not None
    holds(shift)
    rebuilds = [n for n, asked in enumerate(shift.asked) if isinstance(asked.choice, Rebuild)]
    assert 3 < len(rebuilds) < 20
    gaps = [after - before for before, after in pairwise(rebuilds)]
    assert min(gaps) > 20, "after a rebuild there is room again"
    for at in rebuilds:
        assert shift.asked[at].tokens <= shift.mark


def test_transcript_stops_at_the_cap_with_the_number_and_goes_on_under_a_higher_one():
    shift = begun(Transcript(), cap=2_000)
    while shift.full is None:
        shift.happen(answered(shift.turn, {}), done(f"{shift.turn}.1", "ok " * 50))
        shift.ask()
    assert shift.full.tokens > 2_000
    waiting = list(shift.fresh)
    shift.cap = 4_000
    asked = shift.ask()
    assert asked is not None
    assert set(asked.batch) == {entry.position for entry in waiting}
    assert shift.prompt.epoch == 1
    shift.full = None
    holds(shift)


@each
@pytest.mark.parametrize(
    "reply",
    [
        ModelAnswered(1, (Text("long " * 20_000), Call("1.1", "order", {"n": 1})), "calls"),
        ModelAnswered(1, (Call("1.1", "order", {"path": "a.py", "content": "line\n" * 20_000}),), "calls"),
        ModelAnswered(1, (Call("1.1", "order", {f"k{n}" * 9: n for n in range(3_000)}),), "calls"),
        ModelAnswered(1, (Call("1.1", "order", None, "not json " * 10_000),), "calls"),
        ModelAnswered(1, (Call("1.1", "no such tool " * 9_000, {}),), "calls"),
        ModelInterrupted(1, (Text("half " * 20_000),), "the connection broke"),
    ],
    ids=["text", "arguments", "argument names", "unparsed", "tool name", "cut off"],
)
def test_a_reply_larger_than_the_cap(policy, reply):
    shift = begun(policy)
    shift.happen(reply, *([done("1.1", "ok")] if isinstance(reply, ModelAnswered) else []))
    assert shift.ask() is not None
    holds(shift)


def test_small_arguments_beside_a_huge_one_are_kept():
    shift = begun(Window())
    shift.happen(answered(1, {"path": "a.py", "content": "x" * 90_000}), done("1.1", "ok"))
    asked = shift.ask()
    assert asked is not None
    call = asked.blocks[-2].parts[0]
    assert isinstance(call, Call)
    assert call.arguments is not None
    assert call.arguments["path"] == "a.py"
    assert "characters left out" in call.arguments["content"]


def test_h10_a_cap_below_the_fixed_part_is_refused_with_the_numbers():
    gauge = Gauge("word " * 1_000, TOOLS, meter=BpeMeter())
    gauge.check(6_000)
    with pytest.raises(CapTooSmall, match=r"The cap of 500 tokens .* take \d{4} tokens"):
        gauge.check(500)


@pytest.mark.parametrize("spare", range(0, 120, 7))
@each
def test_a_cap_just_above_the_fixed_part(policy, spare):
    fixed = Shift(policy).gauge.fixed
    shift = Shift(policy, cap=fixed + spare, mark=fixed)
    shift.happen(said("word " * 500))
    shift.ask()
    holds(shift)
    assert (shift.full is None) == bool(shift.asked)


def test_cut_decisions_are_made_once_and_carried_over_a_rebuild():
    shift = begun(Window())
    shift.happen(answered(1, {}), done("1.1", "x" * 100_000))
    first = shift.ask()
    assert first is not None
    cut = next(pick for pick in first.choice.picks if pick.form == "cut")
    shift.declare("e" * 64)
    again = shift.ask()
    assert again is not None
    assert isinstance(again.choice, Rebuild)
    assert cut in again.choice.head
    holds(shift)


def test_a_changed_agent_keeps_all_that_fits_and_tells_calls_of_gone_tools_as_records():
    shift = begun(Window())
    shift.happen(
        ModelAnswered(1, (Reasoning("hm"), Text("I look."), Call("1.1", "search", {"q": 1})), "calls"),
        done("1.1", "found"),
    )
    shift.ask()
    shift.declare("e" * 64, TOOLS[:1])
    asked = shift.ask()
    assert asked is not None
    assert asked.epoch == 2
    said_now = "\n".join(text for block in asked.blocks for text in invariants.texts_of(block))
    assert 'call 1.1 of "search"' in said_now
    assert "I look." in said_now
    assert "found" in said_now
    assert not any(isinstance(part, Call | Result) for block in asked.blocks for part in block.parts)
    holds(shift)


def test_the_bound_decides_while_it_fits_and_the_meter_is_not_asked():
    class Untouched:
        name = "untouched"

        def count(self, text: str):
            raise AssertionError("the tokenizer was loaded though the bound fits")

    shift = Shift(Window(), cap=20_000, mark=8_000, meter=Untouched())  # type: ignore[arg-type]
    shift.happen(said("Begin."))
    for turn in range(1, 20):
        asked = shift.ask()
        assert asked is not None
        assert asked.meter == "bytes"
        shift.happen(answered(turn, {"n": turn}), done(f"{turn}.1", "ok " * 100))
    shift.happen(said("x" * 20_000))
    with pytest.raises(AssertionError, match="tokenizer"):
        shift.ask()


def test_turning_to_the_meter_measures_the_epoch_once_and_by_one_meter():
    shift = begun(Window(), cap=4_000, mark=1_600)
    while shift.asked[-1].meter == "bytes":
        shift.happen(answered(shift.turn, {}), done(f"{shift.turn}.1", "ok " * 100))
        assert shift.ask() is not None
        assert shift.prompt.sizes == [shift.gauge.measure(block) for block in shift.prompt.blocks]
    assert shift.asked[-1].tokens < shift.asked[-2].tokens, "the bound overstates"
    assert shift.asked[-1].epoch == shift.asked[-2].epoch, "the meter found room; nothing was rebuilt"
    holds(shift)


def test_a_call_without_answer_and_a_second_answer_are_refused():
    shift = begun(Window())
    shift.happen(answered(1, {}, {}), done("1.1", "ok"))
    with pytest.raises(Damaged, match=r"Call 1\.2 of entry 6 has no answer"):
        shift.ask()
    shift.happen(done("1.2", "ok"), done("1.2", "again"))
    with pytest.raises(Damaged, match="second answer"):
        shift.ask()


def test_an_unknown_policy_is_refused_with_those_that_there_are():
    with pytest.raises(
        BadInput, match=r"no policy 'slide'; choose one of: journal, masking, notes, transcript, window"
    ):
        policy_named("slide")


def test_words_below_their_share_give_way_when_results_cannot_be_lowered_further():
    shift = begun(Window(), cap=2_000, mark=1_000)
    calls = [{"n": n} for n in range(11)]
    shift.happen(
        answered(1, *calls), *(done(f"1.{n}", "r" * 5_000) for n in range(1, 12)), said("w " * 1_500)
    )
    asked = shift.ask()
    assert asked is not None
    assert "a person's own words" in asked.warned
    assert set(asked.batch) <= asked.shown, "all of the newest batch is there"
    holds(shift)


def test_a_persons_words_below_half_of_the_room_are_not_cut_to_spare_a_rebuild():
    shift = begun(Window())
    shift.gauge.turn_exact(shift.prompt)
    while shift.prompt.tokens < 6_000:
        shift.happen(answered(shift.turn, {"n": shift.turn}), done(f"{shift.turn}.1", "ok " * 400))
        assert shift.ask() is not None
    words = "please " * 1_700
    shift.happen(answered(shift.turn, text="Yes?"), said(words))
    asked = shift.ask()
    assert asked is not None
    assert isinstance(asked.choice, Rebuild)
    assert asked.choice.warnings == ()
    assert words in "".join(invariants.texts_of(asked.blocks[-1]))
    holds(shift)
