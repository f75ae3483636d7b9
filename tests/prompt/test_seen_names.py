"""Names of results in a report: the most shown first, each in the entry that its line cites."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from shiftbook.entries import ActionFinished, Entry, LineStruck, ModelAnswered, PersonSaid, ReportWritten
from shiftbook.messages import Call, Missing, Text
from shiftbook.prompt.epoch import WantReport
from shiftbook.prompt.fidelity import Held, claims
from shiftbook.prompt.report import CHARS_PER_TOKEN, NAMES_SHARE, by_rule
from shiftbook.prompt.seen_names import HEAD, SeenNames, is_seen, names_of, size_of, told_by
from shiftbook.prompt.told import entry_text
from tests.prompt.test_report import entries, measure, written

FILLER = "nothing of note here " * 30


def looked(number: int, text: str, **arguments: str) -> list[ModelAnswered | ActionFinished]:
    """A reply with one call, and its result: the text stands behind what a line tells of a result."""
    call = Call(f"{number}.1", "look", dict(arguments))
    return [
        ModelAnswered(number, (call,), "calls"),
        ActionFinished(call.id, "done", (Text(f"{FILLER}\n{text}"),)),
    ]


def told_in(report: ReportWritten) -> dict[str, int]:
    """Each name that stands in a line of names, with the entry that the line cites."""
    return {name: line.cites[0] for line in report.lines if is_seen(line) for name in told_by(line)}


def test_a_name_of_many_results_comes_before_newer_ones_of_one():
    whats = []
    for number in range(1, 31):
        often = "see yard/east/crane.py" if number <= 3 else ""
        whats += looked(number, " ".join([often, *(f"box_{number}_{each}" for each in range(40))]))
    made = entries(*whats)
    report, struck = written(made, room=600)
    told = told_in(report)
    assert struck == []
    assert 10 < len(told) < 1_200, "not all have room"
    assert told["yard/east/crane.py"] == made[5].position, "beside the result that showed it last"


def test_what_is_no_name_and_what_calls_and_lines_tell_has_no_place_among_them():
    made = entries(
        *looked(1, "12\tpallet_count = 4711 in yard/gate.py, rev 3f9a0c2; plain words", path="yard/gate.py"),
        *looked(2, "ferry_plan " * 3),
    )
    report, _ = written(made)
    assert told_in(report) == {}, "the lines of the turns tell them all"
    names = SeenNames(made, ()).fresh
    assert {name for name, _ in names} == {"pallet_count", "3f9a0c2", "ferry_plan"}


def test_older_names_are_carried_word_for_word_while_they_fit_and_newer_ones_come_first():
    reports: list[ReportWritten] = []
    at = 0
    before: ReportWritten | None = None
    for part in range(8):
        whats = []
        for number in range(6):
            names = " ".join(f"crate_{part}_{number}_{each}" for each in range(30))
            whats += looked(part * 6 + number, names)
        made = tuple(Entry(at + place, 0, 1, what) for place, what in enumerate(whats, 1))
        at = made[-1].position
        report, *struck = by_rule(WantReport(1, at, made, before, 800), measure)
        assert isinstance(report, ReportWritten)
        assert struck == []
        reports.append(report)
        before = report
    lines = [[line for line in report.lines if is_seen(line)] for report in reports]
    for older, newer in pairwise(lines):
        carried = [line for line in newer if line in older]
        assert carried, "older names have most of the room"
        assert newer[: len(newer) - len(carried)], "and new ones a part"
        assert not set(newer[: len(newer) - len(carried)]) & set(older)
    assert not set(lines[0]) & set(lines[-1]), "the oldest go at last"


def test_names_take_no_more_than_their_part_and_leave_what_they_do_not_need():
    whats = []
    for number in range(1, 60):
        whats += looked(number, " ".join(f"crate_{number}_{each}" for each in range(60)))
    report, _ = written(entries(*whats), room=1_000)
    taken = {
        kind: sum(size_of(line) for line in report.lines if is_seen(line) is kind) for kind in (True, False)
    }
    assert 0 < taken[True] <= 1_000 * CHARS_PER_TOKEN // NAMES_SHARE
    plain = entries(*(what for number in range(1, 60) for what in looked(number, "no more")))
    without, _ = written(plain, room=1_000)
    assert sum(map(size_of, without.lines)) > taken[False] * 3 // 2, "the room is the turns' where no name is"


def test_a_line_tells_nothing_of_what_a_recording_lacks():
    made = entries(PersonSaid((Text("Go."),)), ModelAnswered(1, (Missing("reasoning"), Text("I go.")), "end"))
    report, _ = written(made)
    assert report.lines[1].text.endswith('the model said "I go."')
    silent, _ = written(entries(ModelAnswered(1, (Missing("reasoning"),), "end")))
    assert silent.lines[0].text.endswith("the model said nothing")


WORDS = st.sampled_from(
    [
        "src/a/b_c.py",
        "/yard/2024/01/02",
        "~/x_y",
        "camelCase",
        "snake_case_7",
        "deadbeef7",
        "12",
        "1,234",
        "3 May 2025",
    ]
) | st.text('abcXY_/.~-1\n\u2028é"[]', max_size=12)


@given(st.lists(st.lists(WORDS, max_size=30), min_size=1, max_size=5), st.integers(60, 900))
def test_p6_every_name_stands_in_the_entry_that_its_line_cites(results, room):
    made = entries(
        *(what for number, words in enumerate(results, 1) for what in looked(number, " ".join(words)))
    )
    known = {entry.position: entry for entry in made}
    for line in SeenNames(made, ()).lines(4 * room):
        held = Held([known[position] for position in line.cites])
        assert line.text.startswith(HEAD)
        assert "\n" not in line.text
        assert all(name in entry_text(known[line.cites[0]]) for name in told_by(line))
        assert all(held.holds(name) for name in claims(line.text))
    _, *struck = by_rule(WantReport(3, made[-1].position, made, None, room), measure)
    assert not [each for each in struck if isinstance(each, LineStruck) and is_seen(each.line)]


@given(st.text("ab_/.~1f\n ", max_size=60))
def test_a_name_is_a_part_of_the_text_and_never_ends_in_a_point(text):
    for name in names_of(text):
        assert name in text
        assert not name.endswith((".", "/", "-"))


def test_a_part_of_another_word_is_no_name():
    assert names_of("\u00e9crate_one crate_one\u00e9 \u00e9yard/1 yard/1\u00e9 d\u00e9adbee77f") == []
    assert names_of("(crate_one) 'a/b/yard/gate.py:12' dead77f,") == [
        "b/yard/gate.py",
        "crate_one",
        "dead77f",
    ]
