"""The stem of an English word, so that "deploying" is found by "deployed".

The suffix rules of M. F. Porter, "An algorithm for suffix stripping" (Program 14(3), 1980), which are the
common ground of text search. Every word that is not made of plain lower-case ASCII letters is its own stem:
names of files, numbers and words of other scripts are left alone.
"""

from __future__ import annotations

import re
from functools import lru_cache

STEMS_KEPT = 65_536
"""Stems remembered by the process; a vocabulary of a long run is some 20,000 words."""

_PLAIN = re.compile(r"[a-z]{3,40}")
_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "abli": "able",
    "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate",
    "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al",
    "iviti": "ive", "biliti": "ble",
}  # fmt: skip
_STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP_4 = (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ion", "ism", "ate", "iti", "ous", "ive",
    "ize", "al", "er", "ic", "ou",
)  # fmt: skip


@lru_cache(maxsize=STEMS_KEPT)
def stem(word: str) -> str:
    """The stem of a lower-case word; the word itself where the rules do not apply."""
    if _PLAIN.fullmatch(word) is None:
        return word
    word = _plural(word)
    word = _past(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _STEP_2)
    word = _replaced(word, _STEP_3)
    return _tidied(_dropped(word))


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        root = word.removesuffix(suffix)
        if root != word and _has_vowel(root):
            if root.endswith(("at", "bl", "iz")):
                return root + "e"
            if len(root) > 1 and root[-1] == root[-2] and root[-1] not in "aeioulsz":
                return root[:-1]
            return root + "e" if _measure(root) == 1 and _ends_short(root) else root
    return word


def _replaced(word: str, rules: dict[str, str]) -> str:
    for suffix, instead in rules.items():
        if word.endswith(suffix):
            root = word[: -len(suffix)]
            return root + instead if _measure(root) > 0 else word
    return word


def _dropped(word: str) -> str:
    for suffix in _STEP_4:
        if word.endswith(suffix):
            root = word[: -len(suffix)]
            if suffix == "ion" and not root.endswith(("s", "t")):
                continue
            return root if _measure(root) > 1 else word
    return word


def _tidied(word: str) -> str:
    if word.endswith("e"):
        root = word[:-1]
        if _measure(root) > 1 or (_measure(root) == 1 and not _ends_short(root)):
            word = root
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


def _shape(word: str) -> str:
    """A "v" for each vowel and a "c" for each consonant; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        is_vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if is_vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Porter's m: how often a consonant follows a vowel."""
    return _shape(word).count("vc")


def _has_vowel(word: str) -> bool:
    return "v" in _shape(word)


def _ends_short(word: str) -> bool:
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"
