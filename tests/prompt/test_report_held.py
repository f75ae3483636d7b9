"""What a model has written is held against what it cites, line by line; what falls is kept as an entry."""

from __future__ import annotations

import pytest

from shiftbook.entries import (
    ActionFinished,
    Entry,
    LineStruck,
    ModelAnswered,
    PersonSaid,
    ReportAsked,
    ReportLine,
    ReportWritten,
)
from shiftbook.messages import Block, Call, Text
from shiftbook.prompt.epoch import WantReport
from shiftbook.prompt.fidelity import CITES_MAX
from shiftbook.prompt.measure import block_tokens
from shiftbook.prompt.overreach import LINE_CHARS_MAX
from shiftbook.prompt.report import composed, lines_by_rule, report_tokens
from shiftbook.prompt.report_request import empty_request, grouped, listing, quoting
from tests.prompt.shift import QuarterMeter

AT = 1_767_348_000_000


def measure(block: Block) -> int:
    return block_tokens(block, QuarterMeter())


def turns(count: int, first: int = 10) -> list[Entry]:
    """Replies with a call each, and their answers; every answer has its number in it."""
    made: list[Entry] = []
    for number in range(count):
        at, call = first + 2 * number, f"{number}.1"
        reply = ModelAnswered(number, (Text("I look."), Call(call, "count", {"yard": number})), "calls")
        made.append(Entry(at, AT, 1, reply))
        made.append(Entry(at + 1, AT, 1, ActionFinished(call, "done", (Text(f"{4000 + number} crates"),))))
    return made


KEEP = (Text("Always keep 12 crates."),)
PERSON = Entry(3, AT, 1, PersonSaid(KEEP))
AUTHOR = Entry(4, AT, 1, PersonSaid(KEEP, "author"))
RECORDED = Entry(5, AT, 1, PersonSaid(KEEP, "recording"))
KNOWN = (PERSON, AUTHOR, RECORDED, *turns(4))


def held(
    *lines: ReportLine, room: int = 4_000, tallies: tuple[str, ...] = (), told: bool = False
) -> tuple[ReportWritten, list[LineStruck]]:
    """The report of lines that a model has written over `KNOWN`, and what fell."""
    want = WantReport(3, KNOWN[-1].position, KNOWN, None, room)
    by_rule = lines_by_rule(KNOWN) if told else []
    report, *struck = composed(want, by_rule, measure, tallies, written=lines, writer="a-model")
    assert isinstance(report, ReportWritten)
    assert all(isinstance(each, LineStruck) for each in struck)
    return report, struck  # type: ignore[return-value]


SOUND = ReportLine("Yard 0 has 4000 crates.", (10, 11))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (ReportLine("Yard 0 has 4001 crates.", (10, 11)), "4001 is in none"),
        (ReportLine("Yard 0 has 4000 crates.", (10, 11, 99)), "does not cite entries"),
        (ReportLine("Yard 0 has crates.", ()), "does not cite entries"),
        (ReportLine("Crates " * (LINE_CHARS_MAX // 7 + 1), (11,)), "longer than"),
        (ReportLine('2026-01-02 10:00 UTC, a person said: "keep crates"', (3,)), "the form in which code"),
        (ReportLine("The user approved the crates.", (10, 11)), "cites no person's words"),
        (ReportLine("The user approved the crates.", (5,)), "cites no person's words"),
        (ReportLine("Crates are always kept.", (3, 11)), "standing instruction"),
        (ReportLine("Crates are always kept.", (5,)), "standing instruction"),
        (ReportLine("The run is finished.", (11,)), "how the run stands"),
        (ReportLine("There are 12 crates to keep.", (3,)), "the tally crates"),
    ],
)
def test_p6_a_line_that_may_not_stand_is_struck_and_recorded_with_the_reason(
    line: ReportLine, why: str
) -> None:
    tallies = ("crates",) if "tally" in why else ()
    report, struck = held(line, *(() if tallies else (SOUND,)), tallies=tallies)
    assert report.lines == (() if tallies else (SOUND,))
    (fallen,) = struck
    assert fallen.line == line
    assert why in fallen.why


@pytest.mark.parametrize(
    "line",
    [
        SOUND,
        ReportLine("The user asked for 12 crates.", (3, 11)),
        ReportLine("Crates are always kept.", (3, 4)),
        ReportLine("x" * LINE_CHARS_MAX, (11,)),
    ],
)
def test_a_line_that_its_citations_bear_stands_with_its_writer(line: ReportLine) -> None:
    report, struck = held(line)
    assert (report.lines, report.writer, struck) == ((line,), "a-model", [])


def test_so_many_entries_may_be_cited_and_no_more() -> None:
    known = tuple(turns(CITES_MAX))
    want = WantReport(10, known[-1].position, known, None, 40_000)
    cites = tuple(entry.position for entry in known)
    enough, more = ReportLine("Looked.", cites[:CITES_MAX]), ReportLine("Looked.", cites[: CITES_MAX + 1])
    report, *struck = composed(want, (), measure, written=(enough, more), writer="a-model")
    assert isinstance(report, ReportWritten)
    assert report.lines == (enough,)
    assert [each.line for each in struck if isinstance(each, LineStruck)] == [more]


def test_where_no_line_of_the_model_stands_the_rule_is_named_as_the_writer() -> None:
    false = ReportLine("Yard 0 has 77 crates.", (11,))
    report, struck = held(false, told=True)
    assert (report.writer, [each.line for each in struck]) == ("mechanical", [false])
    assert report.lines


@pytest.mark.parametrize("room", range(0, 400, 7))
def test_the_room_is_never_passed_and_what_fell_is_recorded_in_the_smallest(room: int) -> None:
    false = ReportLine("Yard 0 has 77 crates.", (11,))
    report, struck = held(false, SOUND, room=room, told=True)
    assert [each.line for each in struck] == [false]
    assert not report.lines or report_tokens(report, measure) <= room


def test_half_of_the_room_is_kept_for_people_and_what_turns_leave_is_theirs_too() -> None:
    said = [Entry(at, AT, 1, PersonSaid((Text(f"Word {at} " + "and so on " * 12),))) for at in range(10, 30)]
    worked = turns(40, first=100)
    whole = report_tokens(ReportWritten(10, 200, tuple(lines_by_rule(said)), "mechanical"), measure)

    def people(entries: list[Entry]) -> tuple[int, int]:
        want = WantReport(10, 200, tuple(entries), None, whole)
        report, *_ = composed(want, lines_by_rule(entries), measure)
        assert isinstance(report, ReportWritten)
        mine = sum(line.cites[0] < 100 for line in report.lines)
        return mine, len(report.lines) - mine

    alone, _ = people(said)
    beside, others = people([*said, *worked])
    assert alone > 0.7 * len(said), "no turn is there to take the room"
    assert 0.3 * len(said) <= beside < alone
    assert others > 5


DRAFT = ReportAsked((), "a-model", 1_000, "", 0, "bytes")


@pytest.mark.parametrize("extends", [True, False])
def test_no_request_passes_its_room_or_parts_a_reply_from_its_answers(extends: bool) -> None:
    entries = turns(30)
    groups = grouped(entries)
    assert [len(group) for group in groups] == [2] * 30
    named: set[int] = set()
    for room in range(0, 3_000, 13):
        ask = listing if extends else quoting
        made = ask(DRAFT, groups, measure, room)
        if made is None:
            assert room < empty_request(measure, extends=extends) + 300
            continue
        assert made.tokens <= room
        assert made.entries == tuple(entry.position for entry in entries[: len(made.entries)])
        assert len(made.entries) % 2 == 0
        named.add(len(made.entries))
    assert len(named) > 3
