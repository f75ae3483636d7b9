"""What survives a compaction: identifiers, what was needed, and the figures, all counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook.sessions import Notice, PersonText, open_session
from shiftbook.studies.boundaries import boundaries
from shiftbook.studies.identifiers import identifiers, outside_bare_lines, taken_out, texts_in
from tests.cli.program import run
from tests.rerun.recordings import Tape, call, words

SUMMARY = "This session is being continued. Work went on in harbour/crane.py, and berth 4711 is next."


def recording(filler: int = 0) -> Tape:
    """A session with one compaction. Needed after it: two paths, a number and a symbol."""
    tape = Tape()
    tape.said("Please mend the crane.")
    tape.replied(words("I look."), call("c1", "read", file_path="/dock/harbour/crane.py", offset=4711))
    tape.answered("c1", "def liftContainer(): pass\nsee yard/plan.md and yard/old.md, 250 lines")
    for number in range(filler):
        tape.replied(words(f"Step {number}."), call(f"f{number}", "look", place="quay " * 60))
        tape.answered(f"f{number}", "calm " * 200)
    tape.said(SUMMARY, isCompactSummary=True)
    tape.said("Go on with yard/old.md.")
    # Seen again in the person's words: not needed. New: not needed. In the same answer's words: needed.
    tape.replied(
        words("To mend the crane I open harbour/crane.py."),
        call("c2", "read", file_path="/dock/harbour/crane.py", offset=4711, limit=99999),
        call("c3", "read", file_path="yard/old.md"),
    )
    tape.answered("c2", "nothing")
    tape.answered("c3", "see yard/plan.md")
    # Both stand in the answers and the inputs above by now.
    tape.replied(words("Again."), call("c4", "read", file_path="yard/plan.md", offset=4711))
    tape.answered("c4", "ok")
    tape.replied(words("Now the container."), call("c5", "edit", old="liftContainer", new="lift", row=250))
    tape.answered("c5", "done")
    return tape


NEEDED = {
    ("paths", "harbour/crane.py"),
    ("numbers", "4711"),
    ("symbols", "liftContainer"),
    ("numbers", "250"),
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see /a/b/c.py.", {("paths", "b/c.py")}),
        ("./x/y and ../y", {("paths", "x/y")}),
        ("~/one and one", set()),
        ("line 12 of 120, 1234567", {("numbers", "120"), ("numbers", "1234567")}),
        ("deadbee 0xabc 1a2b3c4 ABCDEF12", {("hex", "1a2b3c4"), ("hex", "ABCDEF12")}),
        ("camelCaseName snake_case_name CONSTANT_NAME short_a plainword", set()),
        ("liftContainer and to_do and LIFT_MAX", {("symbols", "liftContainer"), ("symbols", "LIFT_MAX")}),
        ("lib/liftContainer.py", {("paths", "lib/liftContainer.py")}),
    ],
)
def test_identifiers(text, found):
    if text.startswith("camelCaseName"):
        found = {("symbols", name) for name in ("camelCaseName", "snake_case_name", "CONSTANT_NAME")}
    assert identifiers(text) == found


def test_a_line_that_is_little_but_identifiers_is_a_list():
    text = "files: a/b.py c/d.py e/f.py\nWe changed a/b.py because c/d.py was wrong.\nx/y.py"
    assert outside_bare_lines(text) == {("paths", "a/b.py"), ("paths", "c/d.py"), ("paths", "x/y.py")}
    assert identifiers(text) - outside_bare_lines(text) == {("paths", "e/f.py")}


@given(st.lists(st.sampled_from(["a/b.py", "4711", "liftContainer", "plain", "1a2b3c4", "\n", "/", "."])))
def test_what_is_taken_out_is_gone_and_the_rest_stays(pieces):
    text = " ".join(pieces)
    for each in identifiers(text):
        rest = taken_out(text, {each})
        assert each not in identifiers(rest)
        assert identifiers(text) - {each} == identifiers(rest)
    assert taken_out(text, set()) == text


def test_every_text_of_an_input_counts_and_no_name_of_a_field():
    found = list(texts_in({"a_field_name": ["x", {"y": 3, "z": None}], "b": True, "c": 1.5}))
    assert found == ["x", "3", "1.5"]


def test_what_was_needed_is_counted_by_hand(tmp_path: Path):
    session = open_session(recording().write(tmp_path / "s.jsonl"))
    (boundary,) = boundaries(session)
    assert boundary.turn == 1
    assert boundary.needed == NEEDED
    spoken = ["To mend the crane I open harbour/crane.py.", "Now the container."]
    assert [use.words for use in boundary.uses] == spoken


def test_numbers_of_lines_are_told_apart_from_numbers_in_a_text(tmp_path: Path):
    """A reading tool numbers each line: whoever reads on from line 340 has seen 340 as such a number."""
    tape = Tape()
    tape.said("Read the log.")
    tape.replied(words("I read."), call("c1", "read", file_path="dock/log.txt"))
    tape.answered("c1", "  339\u2192berth 512\n  340\u2192calm\n341\tstorm\n342: fog")
    tape.said(SUMMARY, isCompactSummary=True)
    tape.replied(words("On."), call("c2", "read", offset=340, limit=512))
    tape.answered("c2", "nothing")
    tape.replied(words("On."), call("c3", "read", offset=341, limit=342))
    tape.answered("c3", "nothing")
    path = tape.write(tmp_path / "s.jsonl")
    (boundary,) = boundaries(open_session(path))
    assert boundary.needed == {("numbers", each) for each in ("340", "512", "341", "342")}
    assert boundary.of_lines == {("numbers", "340"), ("numbers", "341")}
    found = run(tmp_path, "study", "boundary", "s.jsonl", "--json", "--cap", "2000").json["table"]["window"]
    assert (found["2000"]["numbers"], found["2000"]["numbers_in_text"], found["2000"]["n_in_text"]) == (
        1,
        1,
        2,
    )
    assert found["own"]["n"]["numbers"] == 4


def test_a_study_of_any_files_does_not_say_that_constants_were_chosen_on_them(tmp_path: Path):
    for name in ("a.jsonl", "b.jsonl", "c.jsonl"):
        recording().write(tmp_path / name)
    ran = run(tmp_path, "study", "boundary", ".", "--policy", "window", "--json", "--html", "page.html")
    parts = {row["session"]: row["part"] for row in ran.json["rows"]}
    assert parts["a.jsonl#1"] == parts["c.jsonl#1"] != parts["b.jsonl#1"]
    assert not {"tuned", "untouched"} & set(parts.values())
    assert "whether it is these, a study cannot know" in (tmp_path / "page.html").read_text("utf-8")


def test_the_account_stands_apart_and_is_nobodys_words(tmp_path: Path):
    tape = recording()
    blocks = [{"type": "text", "text": "First."}, {"type": "text", "text": "Second."}]
    tape.said(blocks, isCompactSummary=True)  # type: ignore[arg-type]
    session = open_session(tape.write(tmp_path / "s.jsonl"))
    assert [each.text for each in session.compactions] == [SUMMARY, "First.\nSecond."]
    said = [step.text for step in session.steps if isinstance(step, PersonText)]
    assert said == ["Please mend the crane.", "Go on with yard/old.md."]
    notices = [step for step in session.steps if isinstance(step, Notice)]
    assert {step.line for step in notices} == {each.line for each in session.compactions}
    assert [each.turn for each in boundaries(session)] == [1, 4], "two texts of a line are one compaction"


def test_the_figures_are_those_counted_by_hand(tmp_path: Path):
    recording().write(tmp_path / "s.jsonl")
    ran = run(tmp_path, "study", "boundary", "s.jsonl", "--json", "--cap", "2000")
    assert ran.code == 0
    value = ran.json
    assert (value["study"], value["sessions"], value["boundaries"]) == ("boundary", 1, 1)
    found = value["table"]["summary"]["own"]
    assert (found["paths"], found["numbers"], found["symbols"], found["hex"]) == (1.0, 0.5, 0.0, None)
    assert found["n"] == {"paths": 1, "numbers": 2, "symbols": 1, "hex": 0}
    assert found["shown_per_needed"] == 1.0
    assert found["interval"]["hex"] == [0.0, 1.0]
    for policy in ("transcript", "window", "masking", "notes", "journal", "summary and newest turns"):
        whole = value["table"][policy]["2000"]
        assert (whole["paths"], whole["numbers"], whole["symbols"]) == (1.0, 1.0, 1.0), policy
        assert whole["tokens"]["max"] <= 2_000


def test_no_prompt_passes_its_size_and_a_session_too_long_for_it_is_cut(tmp_path: Path):
    recording(filler=60).write(tmp_path / "s.jsonl")
    words = ("study", "boundary", ".", "--json", "--cap", "800", "--cap", "4000")
    first, second = run(tmp_path, *words), run(tmp_path, *words)
    assert first.out == second.out, "the same bytes"
    for row in first.json["rows"]:
        assert row["tokens"] <= (int(row["cap"]) if row["cap"] != "own" else 200)
    window = first.json["table"]["window"]
    assert window["4000"]["paths"] == 0.0, "what stood far back is not in the newest turns"
    assert window["4000"]["lacking_recalled"]["paths"] == 1.0, "and one recall away"
    assert first.json["table"]["transcript"]["4000"]["paths"] == 1.0, "it holds the beginning"


def test_the_page_and_the_table(tmp_path: Path):
    recording().write(tmp_path / "s.jsonl")
    words = ("study", "boundary", "s.jsonl", "--policy", "window", "--policy", "summary")
    ran = run(tmp_path, *words, "--html", "page.html")
    assert ran.code == 0
    assert "summary and newest turns" in ran.out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What is still in the prompt after a compaction?" in page
    assert "shiftbook study boundary s.jsonl" in page
    assert "crane" not in page, "counts, and nobody's words"
    assert "<script" not in page


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("boundary", "none.jsonl"), "none.jsonl"),
        (("boundary", "bare"), "no session with a recorded compaction in bare"),
        (("boundary", "bare", "--policy", "recall-only"), "There is no policy 'recall-only' to study"),
        (("boundary", "bare", "--cap", "0"), "A cap is a number of tokens"),
        (("boundary", "bare", "--meter", "chars"), "no --size, --meter and --vectors"),
        (("boundary", "s.jsonl", "--policy", "window", "--html", "no/such/page.html"), "cannot be written"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, words: tuple[str, ...], told: str):
    recording().write(tmp_path / "s.jsonl")
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "notes.txt").write_text("no session", encoding="utf-8")
    ran = run(tmp_path, "study", *words)
    assert ran.code == 2
    assert told in ran.err
    assert ran.out == ""
