"""P6: a report's line says no number, path, id or date that the entries it cites do not hold."""

from __future__ import annotations

import pytest

from shiftbook.entries import ActionFinished, Entry, PersonSaid, ReportLine
from shiftbook.messages import Text
from shiftbook.prompt.fidelity import fault, names_in

AT = 1_767_348_000_000
"""2026-01-02 10:00 UTC."""
HELD = (
    "src/yard/a.py holds 1,234.50 boxes of ORD-771, see user_id 0042 and commit 9fceb02 "
    "from 3 March 2026 at 7 percent"
)
KNOWN = {
    4: Entry(4, AT, 1, ActionFinished("1.1", "done", (Text(HELD),))),
    5: Entry(5, AT, 1, PersonSaid((Text("The stock is 7."),))),
}


def why(text: str, *cites: int, tallies: tuple[str, ...] = (), by_rule: bool = False) -> str | None:
    return fault(ReportLine(text, cites or (4,)), KNOWN, tallies, by_rule=by_rule)


@pytest.mark.parametrize(
    "text",
    [
        "1234.5 boxes",
        "1,234.5 boxes and 7",
        "src/yard/a.py",
        "the order ord-771 of user_id 42",
        "2026-03-03, or March 3rd, 2026, or 2026/3/3",
        "on 2 Jan 2026 at 10:00",
        "commit 9fceb02",
        "nothing in numbers at all",
    ],
)
def test_what_is_there_in_another_form_may_be_said(text):
    assert why(text) is None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("1,235.50 boxes", "1235.5"),
        ("123 boxes", "123"),
        ("234.5 boxes", "234.5"),
        ("-7 percent", "-7"),
        ("src/yard/b.py", "src/yard/b.py"),
        ("yard/aa.py", "yard/aa.py"),
        ("order ORD-772", "ord-772"),
        ("order ORD-77", "ord-77"),
        ("commit 9fceb0", "9fceb0"),
        ("commit 9fceb03", "9fceb03"),
        ("on 4 March 2026", "2026-03-04"),
        ("on 2026-03-30", "2026-03-30"),
        ("user_ids", "user_ids"),
    ],
)
def test_what_is_not_there_is_named(text, named):
    assert why(text) == f"{named} is in none of the entries that it cites"


@pytest.mark.parametrize("cites", [(6,), (4, 6), (5,)])
def test_only_what_is_cited_counts_and_it_has_to_be_there(cites):
    assert why("1234.5 boxes", *cites) is not None


def test_a_line_without_a_citation_is_struck():
    assert fault(ReportLine("All is well.", ()), KNOWN) == "it does not cite entries that it was written from"


def test_a_tally_beside_a_number_is_struck_unless_code_quotes_a_person():
    assert why("the stock is 7", 5, tallies=("stock",)) is not None
    assert why("the stockade is 7", 5, tallies=("stock",)) is None
    assert why("the stock was asked for", 5, tallies=("stock",)) is None
    quote = '2026-01-02 10:00 UTC, a person said: "The stock is 7."'
    assert why(quote, 5, tallies=("stock",), by_rule=True) is None
    assert why(quote, 5, tallies=("stock",)) is not None
    stamped = '2026-01-02 10:00 UTC, called "stock"'
    assert why(stamped, 4, tallies=("stock",), by_rule=True) is None, "a stamp is no count"


def test_names_come_paths_first_and_once():
    assert names_in(f"{HELD} {HELD}")[:3] == ["src/yard/a.py", "ORD-771", "user_id"]


@pytest.mark.parametrize("piece", ["a", "a.", "a/", "1,", "a_", "aA", "-", "A-1"])
def test_a_huge_text_of_one_word_takes_no_longer_than_its_length(piece):
    """A pattern that is tried again from every letter would not end here."""
    text = piece * 200_000
    names_in(text)
    entry = Entry(4, AT, 1, ActionFinished("1.1", "done", (Text(text),)))
    assert fault(ReportLine("98765", (4,)), {4: entry}) is not None
