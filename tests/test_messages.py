"""What is handed to a provider stays as it was handed over."""

from __future__ import annotations

import pytest

from shiftbook.messages import Block, First, Text, to_messages


def block(text: str) -> Block:
    return Block("user", (Text(text),))


def test_a_list_that_grows_leaves_what_was_handed_over_as_it_is() -> None:
    growing = [block("a"), block("b")]
    given = First(growing)
    growing.append(block("c"))
    assert len(given) == 2
    assert list(given) == [block("a"), block("b")]
    assert to_messages(given)[0].parts == (Text("a"), Text("b"))


def test_it_is_indexed_as_a_sequence_of_its_own_length() -> None:
    growing = [block("a"), block("b")]
    given = First(growing)
    growing.append(block("c"))
    assert given[-1] == block("b")
    assert list(given[-1:]) == [block("b")]
    assert list(given[::-1]) == [block("b"), block("a")]
    with pytest.raises(IndexError):
        given[2]
