"""Likeness comes out the same everywhere: whole numbers, one root and one division, and ties by place."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook.vectors.likeness import agreeing, likeness, signs_of

rows = st.lists(st.integers(-127, 127), min_size=12, max_size=12)
many = st.lists(rows, max_size=12)


def packed(numbers: list[int]) -> bytes:
    """Numbers as a vector."""
    return bytes(each % 256 for each in numbers)


@given(many, rows)
def test_it_is_the_cosine_by_whole_numbers(vectors: list[list[int]], asked: list[int]) -> None:
    expected = {}
    for place, vector in enumerate(vectors):
        product = sum(a * b for a, b in zip(vector, asked, strict=True))
        length = sum(a * a for a in vector) * sum(b * b for b in asked)
        if length:
            expected[place] = product / math.sqrt(length)
    given_ones = {place: packed(vector) for place, vector in enumerate(vectors)}
    assert likeness(given_ones, packed(asked)) == expected, "to the last bit"


@pytest.mark.parametrize("times", [1, 16], ids=["of 12 numbers", "of 192, by eight bytes"])
@given(many, rows, st.integers(0, 12))
def test_the_first_look_takes_those_whose_signs_agree(
    times: int, vectors: list[list[int]], asked: list[int], limit: int
) -> None:
    vectors, asked = [vector * times for vector in vectors], asked * times

    def apart(place: int) -> tuple[int, int]:
        pairs = zip(vectors[place], asked, strict=True)
        return sum((a > 0) != (b > 0) for a, b in pairs), place

    together = b"".join(signs_of(packed(vector)) for vector in vectors)
    assert agreeing(together, packed(asked), limit) == sorted(sorted(range(len(vectors)), key=apart)[:limit])


def test_nothing_is_like_what_has_no_direction() -> None:
    assert likeness({}, b"abc") == likeness({1: b"abc"}, bytes(3)) == likeness({1: b""}, b"") == {}


def test_vectors_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="length"):
        likeness({1: b"abc", 2: b"abcd"}, b"abc")
    with pytest.raises(ValueError, match="as long"):
        likeness({1: b"abcabc", 2: b"abc"}, b"abc")
    with pytest.raises(ValueError, match="another length"):
        agreeing(b"abc", bytes(16), 3)
