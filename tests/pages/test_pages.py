"""A page holds what it was given, loads nothing, and reads the same whatever hostile text is in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook.pages import (
    Bar,
    Level,
    Moment,
    Section,
    Series,
    bar_chart,
    facts,
    line_chart,
    notes,
    page,
    paragraph,
    table,
)
from shiftbook.pages.lines import STRETCHES

VOID = {"meta", "br", "rect", "line"}
HOSTILE = '</svg><script src="//x">&"\'\u202e\x00\ud800'


class Outline(HTMLParser):
    """The tags of a page, each closed where it was opened, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID or (tag == "line" and not (self.get_starttag_text() or "").endswith("/>")):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    found.close()
    assert found.open == []
    return found


def whole(word: str) -> str:
    """A page in which a word stands wherever a word can stand."""
    lines = [Series(word, [(0, 1.0), (1, None), (2, 3.0)])]
    parts = (
        paragraph(word),
        notes([word]),
        facts({word: word}),
        table([word], [[word], [3], [None], [0.25]], right=[word], caption=word),
        bar_chart([Bar(word, 0.5, 0.4, 0.6, word), Bar(word, None, group=word)], title=word, unit=word),
        line_chart(
            lines, title=word, x_label=word, y_label=word, levels=[Level(word, 4)], moments=[Moment(word, 1)]
        ),
    )
    return page(word, [Section(word, parts)], lead=word, command=word, version=word)


@given(st.text())
def test_no_word_changes_how_a_page_is_built(word):
    plain, found = outline(whole("word")), outline(whole(word))
    expected = plain.tags if word else [tag for tag in plain.tags if tag != "caption"]
    # An empty line in a text makes one more paragraph, and no text at all makes no group and no caption.
    assert [t for t in found.tags if t not in ("p", "div")] == [t for t in expected if t not in ("p", "div")]
    assert {name for name, _ in found.attributes} == {name for name, _ in plain.attributes}


def test_hostile_words_are_told_and_nothing_is_loaded():
    text = whole(HOSTILE)
    found = outline(text)
    assert "script" not in found.tags
    assert not {name for name, _ in found.attributes} & {"src", "href", "onload"}
    assert "url(" not in text
    assert "\\u202e\\u0000\\ud800" in "".join(found.words)
    assert text.encode("utf-8"), "half a character does not keep the page from being written"
    assert "default-src 'none'" in text


def test_what_is_not_known_is_never_zero():
    told = outline(table(["a", "b"], [[None, 0], ["x", float("nan")]], right=["b"])).words
    assert [word for word in told if word.strip()] == ["a", "b", "not known", "0", "x", "not known"]
    bars = bar_chart([Bar("gone", None), Bar("nought", 0.0)], title="t")
    assert bars.count("<rect") == 1
    assert "gone: not known" in bars
    chart = line_chart([Series("s", [(0, None)])], title="t", x_label="x", y_label="y")
    assert "Nothing is known to draw." in chart


def test_between_whole_ends_the_middle_of_the_axis_is_whole():
    def marks(*ends: float) -> list[str]:
        chart = line_chart([Series("s", [(x, 1.0) for x in ends])], title="t", x_label="x", y_label="y")
        return re.findall(r'class="x[^>]*>([^<]+)<', chart)

    assert marks(1, 160) == ["1", "80", "160"]
    assert marks(1, 2) == ["1", "2"]
    assert marks(7) == ["7"]
    assert marks(0.5, 1.5) == ["0.5", "1", "1.5"]


def test_a_gap_in_a_line_stays_a_gap():
    chart = line_chart(
        [Series("s", [(0, 1.0), (1, 2.0), (2, None), (3, 1.0), (4, 2.0)])], title="", x_label="", y_label=""
    )
    assert chart.count("<polyline") == 2


def test_a_long_line_is_drawn_short_and_keeps_its_peak():
    points = [(n, 1_000_000.0 if n == 77_777 else float(n % 100)) for n in range(100_000)]
    chart = line_chart([Series("s", points)], title="t", x_label="x", y_label="y")
    drawn = re.findall(r'points="([^"]+)"', chart)[0].split(" ")
    assert len(drawn) <= 4 * STRETCHES
    assert any(each.endswith(",0") for each in drawn), "the peak reaches the top"
    assert len(chart) < 20_000


def test_a_row_that_lacks_a_cell_and_too_many_lines_are_refused():
    with pytest.raises(ValueError, match="row 2 has 1 cells for 2 columns"):
        table(["a", "b"], [[1, 2], [1]])
    with pytest.raises(ValueError, match="at most 7 lines"):
        line_chart([Series(str(n), []) for n in range(8)], title="", x_label="", y_label="")


def test_bars_are_as_long_as_their_figures():
    chart = bar_chart([Bar("a", 0.25), Bar("b", 1.0, 0.5, 1.0)], title="t", most=1.0)
    assert re.findall(r'<rect width="([\d.]+)"', chart) == ["25", "100"]
    assert 'x1="50" x2="100"' in chart
    assert "1.00 (0.50 to 1.00)" in chart
