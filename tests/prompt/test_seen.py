"""Names and lines of results in a report: the most shown first, each in the entry that its line cites."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from shiftbook import canonical
from shiftbook.entries import (
    ActionFinished,
    Entry,
    LineStruck,
    ModelAnswered,
    PersonSaid,
    ReportLine,
    ReportWritten,
)
from shiftbook.messages import Call, Missing, Text
from shiftbook.prompt.epoch import WantReport
from shiftbook.prompt.fidelity import Held, claims, fault
from shiftbook.prompt.names import names_of, whole_words
from shiftbook.prompt.report import CHARS_PER_TOKEN, SEEN_SHARE, by_rule
from shiftbook.prompt.seen import LINES_ROOM_MIN, Seen, is_seen, size_of, told_by
from shiftbook.prompt.seen_lines import HEAD as LINES_HEAD
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
    """Each name that stands in a line of names or of a result, with the entry that it cites."""
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
    names = Seen(made, ()).fresh
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
    assert 0 < taken[True] <= 1_000 * CHARS_PER_TOKEN // SEEN_SHARE
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
    for line in Seen(made, ()).lines(4 * room):
        held = Held([known[position] for position in line.cites])
        assert is_seen(line)
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


def test_no_half_name_comes_of_the_end_of_what_is_read():
    assert whole_words("yard/gate.py, crate_one", 11) == ""
    assert whole_words("yard/gate.py, crate_one", 12) == "yard/gate.py"
    assert whole_words("yard/gate.py, crate_one", 18) == "yard/gate.py, "
    assert whole_words(" " * 9, 4) == " " * 4
    assert whole_words('{"a_b":"c_d"}', 9) == '{"a_b":"'
    for filler in range(3_960, 4_000):
        made = entries(
            *looked(1, ""), ActionFinished("2", "done", (Text("x " * (filler // 2) + "crate_one"),))
        )
        assert {name for name, _ in Seen(made, ()).fresh} <= {"crate_one"}


def test_words_of_capitals_halves_of_escapes_and_numbers_of_lines_are_no_names():
    assert names_of("SHOULD CANNOT MUST_HOLD") == ["MUST_HOLD"]
    assert names_of('"Go.\\nPleaseTurn the crane_left"') == ["crane_left"]
    found = names_of("yard/gate.py-12-\tgo\nyard/gate.py-13-turn yard/gate.py:14: crane/v2-3 yard/day-12")
    assert found == ["yard/gate.py", "crane/v2-3", "yard/day-12"]


def lines_in(report: ReportWritten) -> list[ReportLine]:
    return [line for line in report.lines if line.text.startswith(LINES_HEAD)]


def test_lines_of_results_stand_in_their_order_quoted_with_marks_and_their_entry():
    text = "\n".join(
        [
            "nothing",
            "   12\tdef turn_crane(load_limit):",
            "   13\t    return load_limit",
            "plain words",
            "   40\tcrane_log = []",
        ]
    )
    made = entries(*looked(1, "nothing at all"), ActionFinished("2", "done", (Text(text),)))
    (line,) = Seen(made, ()).lines(2_000)
    assert line.cites == (made[-1].position,)
    quoted = '"... 12 def turn_crane(load_limit): ... 40 crane_log = []"'
    assert line.text == f"{LINES_HEAD}{quoted}", "the second would tell nothing new"
    below = "crane_east\ncrane_west\n"
    made = entries(*looked(1, "nothing"), ActionFinished("2", "done", (Text(below),)))
    (line,) = Seen(made, ()).lines(2_000)
    assert line.text == f'{LINES_HEAD}"crane_east | crane_west"'


def test_the_line_that_tells_most_names_of_many_results_comes_first_and_each_name_once():
    whats = []
    for number in range(1, 40):
        filler = "\n".join(f"alone_{number}_{each} of a long line of {'other ' * 20}" for each in range(20))
        whats += looked(number, f"crane_east and crane_west turn\n{filler}\nsee crane_east")
    made = entries(*whats)
    told = [line for line in Seen(made, ()).lines(4_000) if "crane_east" in line.text]
    assert len(told) == 1
    assert "crane_east and crane_west turn" in told[0].text
    assert told[0].cites == (made[-1].position,), "the latest of equals"


def test_a_line_that_a_tally_is_told_in_is_not_taken_and_so_none_is_struck():
    """Tallies are kept by code: a line with a key beside a number would be struck with its neighbours."""
    made = entries(
        *looked(1, "nothing"), ActionFinished("2", "done", (Text("Box_Count is 12\ncrane_log = 3"),))
    )
    want = WantReport(3, made[-1].position, made, None, 900)
    report, *struck = by_rule(want, measure, ["box_count"])
    assert not [each for each in struck if isinstance(each, LineStruck) and is_seen(each.line)]
    assert isinstance(report, ReportWritten)
    (line,) = lines_in(report)
    assert line.text == f'{LINES_HEAD}"... crane_log = 3"'


def test_with_little_room_names_alone_are_told():
    made = entries(*looked(1, "the crane_log lies\nbeside the crane_list"))
    small, wide = (Seen(made, ()).lines(room) for room in (LINES_ROOM_MIN - 1, LINES_ROOM_MIN))
    assert [line.text for line in small] == ["seen in a result: crane_list, crane_log"]
    assert [line.text.startswith(LINES_HEAD) for line in wide] == [True]


HOSTILE = st.text('ab_/.~1é"\\\n\t\u2028 ', max_size=80)


@given(st.lists(HOSTILE, min_size=1, max_size=4), st.integers(250, 900))
def test_p6_no_line_of_a_result_is_struck_or_leaves_its_quotes(texts, room):
    made = entries(
        *looked(1, "nothing"),
        *(ActionFinished(f"9.{n}", "done", (Text(each),)) for n, each in enumerate(texts)),
    )
    known = {entry.position: entry for entry in made}
    for line in Seen(made, ()).lines(4 * room):
        assert fault(line, known, by_rule=True) is None
        if line.text.startswith(LINES_HEAD):
            assert canonical.encode(json.loads(line.text.removeprefix(LINES_HEAD))) == line.text.removeprefix(
                LINES_HEAD
            )
