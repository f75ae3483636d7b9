"""What may name a statement, a rule or a tally: one short line that can be quoted anywhere.

A key may come from hostile text, by way of a tool's result, and stands in prompts; so it is short and holds
no control character and no line break. Letters of every script are allowed.
"""

from __future__ import annotations

import unicodedata

KEY_CHARS_MAX = 120

_REFUSED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that a key holds nothing of: controls, formats, surrogates, line separators."""


def key_fault(key: object, what: str = "the key") -> str | None:
    """Why this cannot be a key, as part of a sentence; None when it can."""
    if not isinstance(key, str):
        return f"{what} has to be a text"
    if not key.strip():
        return f"{what} is empty"
    if key != key.strip():
        return f"{what} has spaces around it"
    if len(key) > KEY_CHARS_MAX:
        return f"{what} has {len(key)} characters; at most {KEY_CHARS_MAX}"
    if any(unicodedata.category(letter) in _REFUSED for letter in key):
        return f"{what} holds a line break or another control character"
    return None
