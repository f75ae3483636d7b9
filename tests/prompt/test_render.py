"""What a model is told, entry by entry, in every form."""

from __future__ import annotations

import pytest

from shiftbook.entries import (
    ActionFinished,
    ActionStarted,
    Entry,
    LimitReached,
    ModelAnswered,
    ModelInterrupted,
    PersonSaid,
    Pick,
    Warned,
    What,
)
from shiftbook.errors import Damaged, NewerFormat
from shiftbook.messages import Block, Call, Media, Missing, Reasoning, Request, Result, Text
from shiftbook.policies import Window
from shiftbook.prompt.render import render_entry, render_pick, renderer
from shiftbook.testing.validator import check_request
from tests.prompt.shift import Shift
from tests.strategies import TOOLS, entries_of

IMAGE = Media("ab" * 32, "image/png", 12)


def blocks(what: What, form: str = "whole", keep: int | None = None) -> list[Block]:
    return render_entry(Entry(7, 0, 1, what), form, keep)


def words(block: Block) -> str:
    return "\n".join(part.text for part in block.parts if isinstance(part, Text))


def test_a8_an_unknown_outcome_claims_nothing_and_blames_nobody():
    (block,) = blocks(ActionFinished("1.1", "unknown", ()))
    result = block.parts[0]
    assert isinstance(result, Result)
    assert result.is_error
    (text,) = result.content
    assert isinstance(text, Text)
    assert text.text.startswith("The outcome of this call is unknown")
    assert "It may or may not have taken effect. Do not assume either; check before repeating" in text.text
    assert "user" not in text.text
    assert "stopped" not in text.text


def test_a8_the_words_stand_before_what_the_tool_said_even_when_that_is_cut():
    for form, keep in (("whole", None), ("cut", 5), ("cut", 0)):
        (block,) = blocks(ActionFinished("1.1", "unknown", (Text("half a line of output"),)), form, keep)
        result = block.parts[0]
        assert isinstance(result, Result)
        assert result.content[0] == Text(render_unknown())
    told = "The outcome of this call is unknown: the process died. Check."
    (block,) = blocks(ActionFinished("1.1", "unknown", (Text(told),)))
    assert block.parts == (Result("1.1", (Text(told),), is_error=True),), "not said twice"


def render_unknown() -> str:
    (block,) = blocks(ActionFinished("1.1", "unknown", ()))
    result = block.parts[0]
    assert isinstance(result, Result)
    assert isinstance(result.content[0], Text)
    return result.content[0].text


@pytest.mark.parametrize("outcome", ["done", "failed", "cancelled", "unknown"])
@pytest.mark.parametrize("content", [(), (Text(""),), (Text(" \n"),), (Missing("x"),), (IMAGE,)])
def test_an_answer_is_never_empty_and_errors_are_errors(outcome, content):
    for form, keep in (("whole", None), ("kept", None), ("cut", 0), ("quoted", None), ("quoted", 0)):
        (block,) = blocks(ActionFinished("1.1", outcome, content), form, keep)
        if form == "quoted":
            assert words(block).strip()
        else:
            (result,) = block.parts
            assert isinstance(result, Result)
            assert result.content
            assert result.is_error == (outcome != "done")


def test_l3_a_reply_that_was_cut_off_says_so_and_shows_no_call():
    half = (Text("I will now"), Call("2.1", "order", {}))
    assistant, notice = blocks(ModelInterrupted(2, half, "the connection broke"))
    assert (assistant.side, assistant.parts) == ("assistant", (Text("I will now"),))
    assert notice.side == "user"
    assert words(notice) == "[The reply above was cut off (the connection broke). No call of it was run.]"
    (only,) = blocks(ModelInterrupted(2, (Text(" "),), "e" * 5_000))
    assert only.side == "user"
    assert len(words(only)) < 500


@pytest.mark.parametrize("parts", [(), (Text(""),), (Reasoning("hm"),), (Text("\n"), Reasoning("hm"))])
def test_an_empty_reply_is_told_on_the_users_side(parts):
    for form, keep in (("whole", None), ("kept", None), ("cut", 3), ("quoted", None)):
        (block,) = blocks(ModelAnswered(1, parts, "end"), form, keep)
        assert block.side == "user"
        assert words(block) == "[The reply that came here held no text and no call.]"


def test_whole_is_verbatim_and_kept_holds_nothing_of_the_provider():
    call = Call("1.1", "order", {"a": 1}, '{ "a": 1 }', {"id": "toolu_x"})
    reply = ModelAnswered(1, (Reasoning("hm", {"sig": "x"}), Text("Yes."), call), "calls")
    assert blocks(reply)[0].parts == reply.parts
    for form in ("kept", "cut"):
        assert blocks(reply, form)[0].parts == (Text("Yes."), Call("1.1", "order", {"a": 1}))


def test_text_stands_before_calls_and_reasoning_is_never_last():
    call = Call("1.1", "order", {})
    reply = ModelAnswered(1, (Reasoning("a"), call, Text("b"), Reasoning("c")), "calls")
    assert blocks(reply)[0].parts == (Reasoning("a"), Text("b"), call)


def test_arguments_are_json_that_any_vendor_takes():
    raw = Call("1.1", "order", None, '{"a": ')
    odd = Call("1.2", "order", {"x": float("nan"), "$set": 1, "\udc88": ["\ud800", b"\x00"]})
    parts = blocks(ModelAnswered(1, (raw, odd), "calls"))[0].parts
    assert parts[0] == Call("1.1", "order", {"unparsed_arguments": '{"a": '})
    assert isinstance(parts[1], Call)
    assert parts[1].arguments == {
        "x": {"$float": "nan"},
        "$set": 1,
        "\\udc88": ["\\ud800", {"$bytes": "AA=="}],
    }


def test_cut_shares_what_is_kept_among_text_and_arguments():
    call = Call("1.1", "order", {"small": "s", "big": "b" * 1_000})
    reply = ModelAnswered(1, (Text("t" * 1_000), call), "calls")
    text, shown = blocks(reply, "cut", 300)[0].parts
    assert isinstance(text, Text)
    assert isinstance(shown, Call)
    assert shown.arguments is not None
    assert shown.arguments["small"] == "s"
    assert (
        text.text
        == "t" * 100 + "\n[... 850 characters left out; the whole is entry 7 of this run ...]\n" + "t" * 50
    )
    assert 100 <= shown.arguments["big"].count("b") <= 150


def test_what_is_no_longer_than_keep_is_not_cut():
    for what in (
        PersonSaid((Text("a" * 30), Text("b" * 30))),
        ActionFinished("1.1", "done", (Text("a" * 60),)),
        ModelInterrupted(1, (Text("a" * 60),), "why"),
        ModelAnswered(1, (Text("a" * 58), Call("1.1", "order", {})), "calls"),
    ):
        assert blocks(what, "cut", 60) == blocks(what, "kept")
        assert blocks(what, "cut", 59) != blocks(what, "kept")


def test_words_of_others_than_the_person_are_labelled():
    assert words(blocks(PersonSaid((Text("hi"),)))[0]) == "hi"
    assert words(blocks(PersonSaid((Text("hi"),), "author"))[0]).startswith("[From the author of this agent")
    assert words(blocks(PersonSaid((Text("hi"),), "recording"))[0]) == "[From a recording:]\nhi"


def test_missing_is_said_in_words_and_media_pass():
    (block,) = blocks(PersonSaid((Missing("image, 12 kB"), IMAGE)))
    assert block.parts == (Text("[missing: image, 12 kB]"), IMAGE)
    (cut,) = blocks(PersonSaid((Text("look"), IMAGE)), "cut", 10)
    assert cut.parts == (Text("look\n[1 image or file left out; the whole is entry 7 of this run]"),)


def test_a_reply_cut_at_the_output_limit_does_not_end_the_prompt():
    """A7: the last message must not be the assistant's."""
    for stop in ("length", "pause"):
        assistant, notice = blocks(ModelAnswered(1, (Text("and so on"),), stop))
        assert (assistant.side, notice.side) == ("assistant", "user")


def test_l6_only_kinds_for_a_model_enter_and_their_neighbours_do_not():
    whats: list[What] = [
        PersonSaid((Text("a"),)),
        Warned("w", "secret"),
        ActionStarted("1.1", "t", "k"),
        PersonSaid((Text("b"),)),
    ]
    known = {entry.position: entry for entry in entries_of(whats)}
    assert [words(block) for block in render_pick(Pick(1, 4), known)] == ["a", "b"]
    with pytest.raises(Damaged, match="entry 2, which is not there or not for a model"):
        render_pick(Pick(2, 4), known)
    with pytest.raises(Damaged, match="entry 9"):
        render_pick(Pick(4, 9), known)


def test_what_renderer_1_has_no_words_for_is_refused_by_name():
    with pytest.raises(NewerFormat, match=r"no words for entry 7 \(LimitReached\)"):
        blocks(LimitReached("turns", 1, 1))
    with pytest.raises(NewerFormat, match="no form 'poem'"):
        render_pick(Pick(1, 1, "poem"), {})
    with pytest.raises(NewerFormat, match="renderer 2"):
        renderer(2)


def test_dropped_needs_no_entries_and_names_the_range():
    (block,) = render_pick(Pick(3, 90, "dropped"), {})
    assert (block.side, block.entries) == ("user", (3, 90))
    assert words(block).startswith("[Entries 3 to 90 of this run are not shown here")


def test_a1_d1_a_cut_off_call_is_closed_in_place_though_clocks_stand_still_and_somebody_spoke():
    shift = Shift(Window())
    shift.happen(PersonSaid((Text("Order it."),)))
    shift.ask()
    shift.happen(
        PersonSaid((Text("sent while the model wrote"),)),
        ModelAnswered(1, (Call("1.1", "order", {}), Call("1.2", "order", {})), "calls"),
        ActionStarted("1.1", "order", "run-1.1"),
        PersonSaid((Text("sent while it ran"),)),
        ActionFinished("1.2", "done", (Text("ok"),)),
        PersonSaid((Text("sent after the kill"),)),
        ActionFinished("1.1", "unknown", ()),
    )
    assert len({entry.at_ms for entry in shift.journal}) == 1
    asked = shift.ask()
    assert asked is not None
    check_request(shift.request(asked))
    kinds = [block.kind for block in asked.blocks]
    assert kinds == ["PersonSaid", "ModelAnswered", "ActionFinished", "ActionFinished", *["PersonSaid"] * 3]
    assert [words(block) for block in asked.blocks[-3:]] == [
        "sent while the model wrote",
        "sent while it ran",
        "sent after the kill",
    ]


def test_a7_a_cancelled_call_alone_ends_the_prompt_with_the_user():
    shift = Shift(Window())
    shift.happen(PersonSaid((Text("Order it."),)))
    shift.ask()
    shift.happen(
        ModelAnswered(1, (Call("1.1", "order", {}),), "calls"), ActionFinished("1.1", "cancelled", ())
    )
    asked = shift.ask()
    assert asked is not None
    check_request(Request("run", 2, 1, "m", "", TOOLS, asked.blocks))
    assert "It may have taken effect in part" in str(asked.blocks[-1].parts)
