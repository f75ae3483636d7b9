"""What a compaction kept, on invented sessions whose answers are known by hand."""

from __future__ import annotations

from pathlib import Path

from shiftbook.measure.survival import Part, pooled, survival_row, survived
from shiftbook.sessions import open_session
from shiftbook.tokens import BpeMeter
from tests.cli.program import run
from tests.rerun.recordings import Tape, call, words

ACCOUNT = (
    "Earlier: the boat list is in harbour/boats.csv. The harbour master decided that every boat gets painted "
    "green. mooringPlan was read."
)


def tape() -> Tape:
    """Four identifiers before, two of them in the account, three used after; one of those is shown again."""
    told = Tape().said(
        "Read harbour/boats.csv and pier/list.txt. We decided that every boat gets painted green."
    )
    told.replied(
        words("We must never remove the wooden planks quickly."), call("a", "read", path="harbour/boats.csv")
    )
    told.answered("a", "mooringPlan and tideTable say 4711.")
    told.said(ACCOUNT, isCompactSummary=True)
    told.replied(words("I go on."), call("b", "read", path="harbour/boats.csv"))
    told.answered("b", "Nothing of note but tideTable.")
    told.replied(call("c", "look", what="tideTable"), call("d", "look", what="page 4711"))
    return told.answered("c", "High at noon.").answered("d", "Low at dusk.")


def test_what_was_kept_and_what_was_needed(tmp_path: Path) -> None:
    (found,) = survived(open_session(tape().write(tmp_path / "tape.jsonl")), BpeMeter())
    assert (found.number, found.turn) == (1, 1)
    assert found.tokens == BpeMeter().count(ACCOUNT)
    assert found.kept["paths"] == Part(2, 1)
    assert found.kept["symbols"] == Part(2, 1)
    assert found.kept["numbers"] == Part(1, 0)
    assert found.needed["paths"] == Part(1, 1)
    assert found.needed["symbols"] == Part(0, 0), "it had been shown again"
    assert found.needed["numbers"] == Part(1, 0)
    assert found.kept["decisions"] == Part(2, 1), "the paint is in the account, the planks are not"


def test_the_whole_is_the_sum_and_holds_no_word_of_anybody(tmp_path: Path) -> None:
    many = survived(open_session(tape().write(tmp_path / "tape.jsonl")), BpeMeter())
    kept, needed = pooled([*many, *many])
    assert kept["paths"] == Part(4, 2)
    assert needed["numbers"] == Part(2, 0)
    told = repr([survival_row(each) for each in many])
    assert not any(each in told for each in ("boats", "tideTable", "4711", "green"))
    assert pooled([])[0]["paths"].share is None


def test_the_program_tells_it(tmp_path: Path) -> None:
    tape().write(tmp_path / "tape.jsonl")
    ran = run(tmp_path, "measure", "tape.jsonl", "--survival", "--json")
    assert ran.code == 0
    (compaction,) = ran.json["sessions"][0]["compactions"]
    assert compaction["needed"]["paths"] == {"of": 1, "held": 1, "share": 1.0}
    assert ran.json["all"]["needed"]["hex"]["share"] is None
    shown = run(tmp_path, "measure", "tape.jsonl", "--survival").out
    assert "1 compaction in 1 session" in shown
    Tape().said("Hello.").replied(words("Hello.")).write(tmp_path / "none.jsonl")
    assert "no recorded compaction" in run(tmp_path, "measure", "none.jsonl", "--survival").out
    assert run(tmp_path, "measure", "nowhere", "--survival").code == 2
    assert run(tmp_path, "measure", "tape.jsonl", "--survival", "--check-cache").code == 2


def test_a_page_tells_the_same_to_a_stranger(tmp_path: Path) -> None:
    tape().write(tmp_path / "tape.jsonl")
    ran = run(tmp_path, "measure", "tape.jsonl", "--survival", "--html", "p.html")
    assert (ran.code, "page written to p.html" in ran.err, "1 compaction" in ran.out) == (0, True, True)
    told = (tmp_path / "p.html").read_text()
    assert "What compactions kept" in told
    assert "1 of 1" in told
    assert "none needed" in told, "a kind of which nothing was needed has no share of nothing"
    assert "shiftbook measure tape.jsonl --survival --html p.html" in told
    assert not any(each in told for each in ("boats", "tideTable", "4711", "<script"))
    Tape().said("Hello.").replied(words("Hello.")).write(tmp_path / "none.jsonl")
    assert run(tmp_path, "measure", "none.jsonl", "--survival", "--html", "n.html").code == 0
    assert "no recorded compaction" in (tmp_path / "n.html").read_text()
