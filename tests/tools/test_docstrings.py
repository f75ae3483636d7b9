"""A docstring in any of the three habits gives the same words."""

from __future__ import annotations

import pytest

from shiftbook.tools.docstrings import Described, describe

GOOGLE = """Count what is there,
    now.

    A longer story.

    Args:
        place (str): Where to look:
            row and bay.
        **deep: Also behind.

    Returns:
        place: not a parameter.
    """
NUMPY = """Count what is there,
    now.

    Parameters
    ----------
    place : str
        Where to look:
        row and bay.
    deep
        Also behind.

    Returns
    -------
    place
        not a parameter.
    """
SPHINX = """Count what is there,
    now.

    :param str place: Where to look:
        row and bay.
    :param deep: Also behind.
    :returns: not a parameter.
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_three_habits_say_the_same(docstring):
    words = {"place": "Where to look: row and bay.", "deep": "Also behind."}
    assert describe(docstring) == Described("Count what is there, now.", words)


@pytest.mark.parametrize(
    ("docstring", "summary"),
    [
        (None, ""),
        ("", ""),
        ("\n\n  Late start.\n", "Late start."),
        ("Args:\n    x: only parameters", ""),
        ("Parameters\n----------\nx : int\n    words", ""),
        (":param x: words", ""),
        ("One: two.\nthree", "One: two. three"),
    ],
)
def test_summary_is_the_first_paragraph_alone(docstring, summary):
    assert describe(docstring).summary == summary


def test_what_is_badly_formed_is_prose():
    assert describe("Words.\n\nArgs:\n    no colon here\n    : no name\n").parameters == {}
