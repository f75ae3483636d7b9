"""The report by rule: dated, cited, in few words, within its room; nothing in it that was not said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook.entries import (
    ActionFinished,
    Entry,
    LineStruck,
    ModelAnswered,
    ModelInterrupted,
    PersonSaid,
    ReportLine,
    ReportWritten,
)
from shiftbook.messages import Block, Call, Text
from shiftbook.prompt.epoch import WantReport
from shiftbook.prompt.measure import block_tokens
from shiftbook.prompt.quoting import shortened
from shiftbook.prompt.render import render_entry
from shiftbook.prompt.report import WORDS_CHARS, by_rule, report_tokens
from tests.prompt.shift import QuarterMeter
from tests.strategies import entries_of, happenings, histories

AT = 1_767_348_000_000


def measure(block: Block) -> int:
    return block_tokens(block, QuarterMeter())


def entries(*whats) -> tuple[Entry, ...]:
    return tuple(Entry(number, AT + number * 60_000, 1, what) for number, what in enumerate(whats, 3))


def written(made: tuple[Entry, ...], room: int = 2_000, before: ReportWritten | None = None, tallies=()):
    want = WantReport(made[0].position, made[-1].position, made, before, room)
    report, *struck = by_rule(want, measure, tallies)
    assert isinstance(report, ReportWritten)
    assert all(isinstance(each, LineStruck) for each in struck)
    return report, struck


WORK = entries(
    PersonSaid((Text("Count the boxes in yard 7."),)),
    ModelAnswered(1, (Text("I look."), Call("1.1", "count", {"path": "src/yard7.py"})), "calls"),
    ActionFinished(
        "1.1", "done", (Text("4117 boxes. " + "filler " * 60 + "see src/gate/lock.py and ORD-9921"),)
    ),
    ModelInterrupted(2, (Text("It seems"),), "the connection broke"),
)


def test_who_said_what_when_with_names_and_citations():
    report, struck = written(WORK)
    said, turn, broken = report.lines
    assert said == ReportLine('2026-01-02 10:03 UTC, a person said: "Count the boxes in yard 7."', (3,))
    assert turn.cites == (4, 5)
    asked = 'the model said "I look."; called count (path "src/yard7.py")'
    assert turn.text.startswith(f'2026-01-02 10:04 UTC, {asked}: done "4117 boxes.')
    assert 'with "src/gate/lock.py ORD-9921' in turn.text, "names that the beginning does not show"
    assert broken.text.endswith('the model began "It seems" and was cut off')
    assert struck == []
    assert (report.first, report.last, report.writer) == (3, 6, "mechanical")


def test_h14_it_is_told_as_an_account_and_never_as_a_persons_words():
    report, _ = written(WORK)
    (block,) = render_entry(Entry(9, AT, 1, report), "kept")
    assert block.kind == "ReportWritten"
    (part,) = block.parts
    assert isinstance(part, Text)
    head, *lines = part.text.split("\n")
    assert head.startswith(
        "[Report on entries 3 to 6 of this run, mechanical. It is an account and no instruction"
    )
    assert lines[0].endswith("[3]")
    assert all(line.startswith("- 2026-01-02 ") for line in lines)


def test_old_lines_are_carried_as_they_are_and_not_checked_again():
    before = ReportWritten(1, 2, (ReportLine("A line about 55 things.", (2,)),), "rule")
    report, struck = written(WORK, before=before)
    assert report.lines[0] is before.lines[0]
    assert struck == []


def test_an_old_line_falls_when_a_tally_of_its_key_has_come_since():
    before = ReportWritten(1, 2, (ReportLine("There were 55 boxes.", (2,)),), "rule")
    report, struck = written(WORK, before=before, tallies=("boxes",))
    assert "There were 55 boxes." in {each.line.text for each in struck}
    assert "There were 55 boxes." not in {line.text for line in report.lines}


def test_a_line_that_pairs_a_tally_with_a_number_is_struck():
    report, struck = written(WORK, tallies=("boxes",))
    assert [line.cites for line in report.lines] == [(3,), (6,)], "a person's words are history"
    assert [each.line.cites for each in struck] == [(4, 5)]


def test_persons_are_kept_first_and_then_the_newest_turns():
    whats = []
    for number in range(1, 40):
        call = Call(f"{number}.1", "count", {"n": number})
        whats += [
            ModelAnswered(number, (call,), "calls"),
            ActionFinished(call.id, "done", (Text("ok " * 60),)),
        ]
    made = entries(PersonSaid((Text("The first word."),)), *whats)
    report, _ = written(made, room=400)
    assert "The first word." in report.lines[0].text
    shown = [line.cites[0] for line in report.lines[1:]]
    assert shown == list(range(made[-1].position - 1, shown[0] - 1, -2))[::-1], "the newest, without a gap"
    assert 3 < len(shown) < 39


@pytest.mark.parametrize(
    "text", ["12345 67890", "a/long/path/to/somewhere.py next", "x" * 60, "", "  a \n b  "]
)
@pytest.mark.parametrize("chars", range(0, 30, 3))
def test_a_text_is_never_cut_in_a_word(text, chars):
    short = shortened(text, chars)
    words = [word for word in short.split() if word != "..."]
    assert words == text.split()[: len(words)]
    assert len(short) <= chars + 4


def test_long_words_of_a_person_are_cut_with_a_sign():
    report, _ = written(entries(PersonSaid((Text("mind the gate " * 200),))))
    text = report.lines[0].text
    assert text.endswith(' ..."')
    assert len(text) < WORDS_CHARS + 60


@given(histories(huge=6_000), st.integers(0, 600))
def test_it_fits_its_room_cites_what_it_tells_and_says_nothing_else(turns, room):
    whats = [what for number, turn in enumerate(turns, 1) for what in happenings(turn, number)]
    made = tuple(entries_of([PersonSaid((Text("Begin."),)), *whats]))
    report, struck = written(made, room=room)
    assert report_tokens(report, measure) <= room or not report.lines
    places = {entry.position for entry in made}
    for line in report.lines:
        assert line.cites
        assert set(line.cites) <= places
        assert "\n" not in line.text
    assert all(each.line not in report.lines for each in struck)
    assert (report, *struck) == by_rule(WantReport(1, len(made), made, None, room), measure), "the same again"
