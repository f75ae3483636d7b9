"""Terms: words by their stems, names whole and in parts, any script, hostile text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook.projections.recall_stem import stem
from shiftbook.projections.recall_terms import READ_CHARS, TERM_CHARS, content_terms, terms


@pytest.mark.parametrize(
    ("word", "root"),
    [
        # From the examples that Porter's paper gives for its steps.
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("cats", "cat"),
        ("feed", "feed"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("bled", "bled"),
        ("motoring", "motor"),
        ("sing", "sing"),
        ("conflated", "conflat"),
        ("sized", "size"),
        ("hopping", "hop"),
        ("falling", "fall"),
        ("filing", "file"),
        ("happy", "happi"),
        ("sky", "sky"),
        ("relational", "relat"),
        ("vietnamization", "vietnam"),
        ("electriciti", "electr"),
        ("hopefulness", "hope"),
        ("adoption", "adopt"),
        ("controll", "control"),
        ("rate", "rate"),
        ("cease", "ceas"),
        # Left alone.
        ("naïve", "naïve"),
        ("8080s", "8080s"),
        ("is", "is"),
    ],
)
def test_stems(word: str, root: str) -> None:
    assert stem(word) == root


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Use redis-cli!", ["us", "redis-cli", "redi", "cli"]),
        ("src/app.py", ["src/app.py", "src", "app", "py"]),
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("user_id", ["user_id", "user", "id"]),
        ("Jo's and don't", ["jo", "and", "don"]),
        ("2024-03-15", ["2024-03-15", "2024", "03", "15"]),
        ("鍵管理", ["鍵管", "管理"]),
        ("v2鍵x", ["v2", "鍵", "x"]),
        ("!?. --", []),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_function_words_are_left_out_unless_nothing_else_is_there() -> None:
    assert content_terms("What did you do with the key?") == ["kei"]
    assert content_terms("Who is it?") == ["who", "is", "it"]


def test_data_is_no_word_and_a_long_text_is_read_at_its_ends() -> None:
    assert terms("x" * (TERM_CHARS + 1)) == []
    long = "first " + "middle " * READ_CHARS + "last"
    found = terms(long)
    assert found[0] == "first"
    assert found[-1] == "last"
    assert len(found) < READ_CHARS


@given(st.text(max_size=300))
def test_any_text_has_terms_without_space_or_nul(text: str) -> None:
    for term in terms(text):
        assert term
        assert not any(each.isspace() or each == "\0" for each in term)
