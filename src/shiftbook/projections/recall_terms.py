"""The terms by which a text is found again: stems of its words, and compound names whole and in parts.

`redis-cli`, `user_id`, `src/app.py` and `2024-03-15` are terms themselves and so are their parts. Scripts
that put no spaces between words are read in pairs of characters. Nothing is guessed about meaning; the most
common English function words are left out, since they find everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shiftbook.projections.recall_stem import stem

READ_CHARS = 20_000
"""Characters read at each end of a text: a longer one is found by its head and its tail."""

TERM_CHARS = 80
"""Longer runs of characters are data, not words: a key, a line of base64."""

FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a about all also an and any are as at be been being both but by can could did do does doing don done
        each for from had has have having he her here him his how i if in into is it its just may me might
        mine more most must my no nor not of on only or other our own same shall she should so some such
        than that the their them then there these they this those to too us very was we were what when where
        which who whom whose why will with without would you your
        """,
    )
)
"""English words that carry no matter; without them LoCoMo at 4k holds .91 of the evidence instead of .89."""

_WORD = re.compile(r"[^\W_]+(?:[._/'\u2019-]+[^\W_]+)*")
_JOINT = re.compile(r"[._/'\u2019-]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\uac00-\ud7af]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def terms(text: str) -> list[str]:
    """The terms of a text in its order, repeated as often as they stand there."""
    if len(text) > 2 * READ_CHARS:
        text = f"{text[:READ_CHARS]}\n{text[-READ_CHARS:]}"
    found: list[str] = []
    for match in _WORD.finditer(text):
        found.extend(_of_word(match[0]))
    return found


def content_terms(text: str) -> list[str]:
    """The terms without function words; all of them where nothing else is left."""
    every = terms(text)
    return [term for term in every if term not in _FUNCTION_TERMS] or every


def _of_word(word: str) -> Iterator[str]:
    if len(word) > TERM_CHARS:
        return
    if not word.isascii() and _UNSPACED.search(word):
        yield from _pairs(word)
        return
    lowered = word.lower()
    parts = [part for part in _JOINT.split(word) if part]
    if len(parts) == 2 and len(parts[1]) <= 2 and _JOINT.search(word)[0] in "'\u2019":  # type: ignore[index]
        # "user's", "don't", "we'll": what follows the apostrophe is grammar.
        parts, lowered = parts[:1], parts[0].lower()
    pieces = [piece for part in parts for piece in _CAMEL.split(part)]
    if len(pieces) > 1:
        yield lowered
    for piece in pieces:
        yield stem(piece.lower())


def _pairs(word: str) -> Iterator[str]:
    end = 0
    for match in _UNSPACED.finditer(word):
        if match.start() > end:
            yield stem(word[end : match.start()].lower())
        run = match[0]
        yield from (run[i : i + 2] for i in range(max(1, len(run) - 1)))
        end = match.end()
    if end < len(word):
        yield stem(word[end:].lower())


_FUNCTION_TERMS = FUNCTION_WORDS | {stem(word) for word in FUNCTION_WORDS}
