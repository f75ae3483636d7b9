"""Masking: words and replies stay, old results give way to handles, in one go, and the newest stay whole."""

from __future__ import annotations

from itertools import pairwise

from shiftbook.entries import ActionFinished, RuleSet
from shiftbook.messages import Result
from shiftbook.policies import Masking
from shiftbook.policies.cold import TTL_MS
from shiftbook.prompt.epoch import Extend, Rebuild
from tests.policies.test_cap import answered, begun, done, holds, said
from tests.prompt import invariants
from tests.prompt.shift import Asked, Shift


def worked(shift: Shift, number: int, text: str) -> Asked:
    shift.happen(answered(shift.turn, {"n": number}), done(f"{shift.turn}.1", text))
    asked = shift.ask()
    assert asked is not None
    return asked


def results(asked: Asked) -> list[str]:
    """What each result shows, in the prompt's order."""
    return [
        "\n".join(invariants.texts_of(block))
        for block in asked.blocks
        if any(isinstance(part, Result) for part in block.parts)
    ]


def rebuilds(shift: Shift) -> list[int]:
    return [n for n, asked in enumerate(shift.asked) if isinstance(asked.choice, Rebuild)]


def test_old_results_become_handles_in_one_go_and_the_newest_stay_whole():
    shift = begun(Masking())
    while not rebuilds(shift):
        worked(shift, shift.turn, f"result {shift.turn}: " + "ok " * 500)
    asked = shift.asked[-1]
    shown = results(asked)
    assert len(shown) == shift.turn - 1, "no turn is dropped"
    bare = [text for text in shown if "characters left out; the whole is entry" in text]
    assert 3 < len(bare) < len(shown)
    assert shown[: len(bare)] == bare, "the oldest"
    assert all(len(text) < 120 and "result" not in text for text in bare), "a handle is one line"
    assert all(text.startswith(f"result {n}") for n, text in enumerate(shown[len(bare) :], len(bare) + 1))
    assert asked.tokens <= shift.mark
    holds(shift)


def test_masking_is_rare_and_what_is_masked_stays_so():
    shift = begun(Masking())
    for number in range(120):
        worked(shift, number, "ok " * 300)
    at = rebuilds(shift)
    assert 2 < len(at) < 15
    assert min(after - before for before, after in pairwise(at)) > 4
    holds(shift)
    handles = [
        {text for text in results(shift.asked[n]) if "the whole is entry" in text} for n in (at[0], at[0] + 1)
    ]
    assert handles[0] <= handles[1]


def test_words_and_replies_stay_until_they_alone_do_not_fit_then_the_oldest_go_in_a_block():
    shift = begun(Masking())
    for number in range(200):
        shift.happen(said(f"word {number}: " + "please " * 30))
        worked(shift, number, "ok " * 100)
    holds(shift)
    asked = next(each for each in reversed(shift.asked) if isinstance(each.choice, Rebuild))
    assert asked.blocks[0].kind == "dropped"
    assert asked.tokens <= shift.mark
    whole = [text for text in results(asked) if text.startswith("ok")]
    assert len(whole) > 3, "where turns have to go, the newest results still have a part of the room"


def test_a_standing_rule_is_in_every_prompt_however_old():
    shift = begun(Masking())
    shift.happen(RuleSet("units", "Boxes, never pallets.", "author"))
    for number in range(400):
        asked = worked(shift, number, "ok " * 200)
        text = "\n".join(text for block in asked.blocks for text in invariants.texts_of(block))
        assert text.count("Boxes, never pallets.") == 1
    assert any(block.kind == "dropped" for block in shift.prompt.blocks)
    holds(shift)


def test_a_cold_cache_is_the_moment_to_mask():
    shift = begun(Masking())
    while shift.prompt.meter == "bytes" or shift.prompt.tokens < 2.3 * shift.mark:
        assert isinstance(worked(shift, shift.turn, "ok " * 300).choice, Extend)
    shift.gap_ms = TTL_MS + 1
    asked = worked(shift, shift.turn, "ok")
    assert isinstance(asked.choice, Rebuild)
    assert asked.choice.reason == "the cache is cold"
    assert asked.choice.numbers["masked"] > 0
    holds(shift)


def test_a_result_that_is_shorter_than_its_handle_is_not_masked():
    shift = begun(Masking())
    shift.happen(answered(1, {}, {}), done("1.1", "yes"), done("1.2", "x" * 4_000))
    shift.ask()
    while not rebuilds(shift):
        worked(shift, shift.turn, "ok " * 700)
    first = results(shift.asked[-1])[:2]
    assert first[0] == "yes"
    assert first[1].startswith("[... 4000 characters left out; the whole is entry")


def test_an_unknown_outcome_is_still_told_when_its_answer_is_masked():
    shift = begun(Masking())
    shift.happen(answered(1, {}), ActionFinished("1.1", "unknown", (said("x" * 4_000).content[0],)))
    shift.ask()
    while len(rebuilds(shift)) < 2:
        worked(shift, shift.turn, "ok " * 700)
    assert "The outcome of this call is unknown" in results(shift.asked[-1])[0]
    holds(shift)
