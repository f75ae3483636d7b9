r"""Redaction at the door: what matches a configured pattern is taken out before hashing and writing.

A `Redaction` is handed an entry's payload in plain terms and gives a new one in which each match reads
`[redacted: NAME]`, with the number of matches by name. It looks into every text, into keys, whole numbers and
bytes of free-form values, and behind JSON escapes: argument text and results are often JSON, in which a
secret may be spelt `pa\u0073s`, up to `ESCAPE_LEVELS` texts within texts. Reasoning that held a match is
dropped and named as missing, since a provider takes its own reasoning back verbatim or not at all.

What the journal relies on is left alone: names of fields, hashes, ids, tags, outcomes and states. Nothing is
redacted unless patterns are given; `COMMON` is a set to start from. Not found: a secret that is encoded
(base64, compressed), split between two texts, or cut off before its pattern is complete. Our own work grows
with the length of the text; what a pattern costs is up to the pattern.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from shiftbook.errors import AgentMistake
from shiftbook.messages import Json

ESCAPE_LEVELS = 3
"""JSON text within a JSON string within a JSON string; deeper escapes are not undone."""

NUMBER_BITS_MAX = 2000
"""Whole numbers longer than this (about 600 digits) are not looked at: no credential is."""

_IDS = frozenset({"agent", "call", "engine", "item", "meter", "model", "policy", "run", "tags", "type"})
_HASHES = frozenset({"contracts", "declaration", "digest", "media"})
_WORDS = frozenset({"author", "operation", "origin", "outcome", "sort", "state", "stop"})
_FIXED = _IDS | _HASHES | _WORDS | {"blocks", "numbers"}
"""Fields whose texts are hashes, ids or one of a few words; without them an entry says nothing."""

_FREE = frozenset({"args", "opaque", "vendor"})
"""Fields that hold anything: in them keys and numbers are looked at too, and no key is a field's name."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_ESCAPE = re.compile(
    r'\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\["\\/bfnrt]'
)

Span = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a secret looks like: a regular expression, and a check against what only looks like one.

    Where the expression has a group named `secret`, that group alone is taken out.
    """

    expression: str
    check: Callable[[str], bool] | None = None


class Redaction:
    """Takes out what matches `patterns` (name to regular expression or `Pattern`); goes to `codec.seal`."""

    def __init__(self, patterns: Mapping[str, str | Pattern]) -> None:
        """Raises `AgentMistake` for a name or an expression that cannot be used."""
        self._patterns = [_compiled(name, pattern) for name, pattern in patterns.items()]

    def __call__(self, plain: Json) -> tuple[Json, Mapping[str, int]]:
        """The payload without its secrets, and how many were taken out by name; `plain` stays as it is."""
        pass_ = _Pass(self._patterns)
        return pass_.fields(plain), pass_.taken

    def blob(self, content: bytes) -> tuple[bytes, Mapping[str, int]]:
        """The same for bytes that are to become a blob, read as UTF-8 where they are; before hashing."""
        pass_ = _Pass(self._patterns)
        return pass_.bytes(content), pass_.taken


Finder = Callable[[str], Iterator[Span]]


def _compiled(name: str, pattern: str | Pattern) -> Finder:
    if not _NAME.fullmatch(name):
        raise AgentMistake(
            f"A redaction pattern cannot be called {name!r}: use lower-case letters, digits, `-` and `_`."
        )
    given = Pattern(pattern) if isinstance(pattern, str) else pattern
    try:
        expression = re.compile(given.expression)
    except re.error as error:
        raise AgentMistake(f"Redaction pattern {name!r} is not a regular expression: {error}.") from None
    group = "secret" if "secret" in expression.groupindex else 0

    def find(text: str) -> Iterator[Span]:
        for match in expression.finditer(text):
            start, end = match.span(group)
            if start < end and (given.check is None or given.check(match[group])):
                yield start, end, name

    return find


class _Pass:
    """One walk over one payload, counting what it takes out."""

    def __init__(self, patterns: list[Finder]) -> None:
        self._patterns = patterns
        self.taken: dict[str, int] = {}

    def fields(self, plain: Json) -> Json:
        """A value of the entry's own: keys are names of fields and stay."""
        if isinstance(plain, str):
            return self.text(plain)
        if isinstance(plain, list | tuple):
            return [self.fields(item) for item in plain]
        if not isinstance(plain, dict):
            return plain
        before = sum(self.taken.values())
        clean = {name: self._field(name, value, plain) for name, value in plain.items()}
        if "reasoning" in plain and sum(self.taken.values()) > before:
            return {"missing": "reasoning, in which something was redacted"}
        return clean

    def _field(self, name: str, value: Json, beside: Mapping[str, Json]) -> Json:
        # An action's key is ours; a statement's key and value are whatever its maker chose.
        if name in _FIXED or (name == "key" and "call" in beside):
            return value
        if name in _FREE or (name == "value" and "sort" in beside):
            return self.free(value)
        return self.fields(value)

    def free(self, value: Json) -> Json:
        """A value that is not ours: everything in it may be a secret."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return self.bytes(value)
        if isinstance(value, list | tuple):
            return [self.free(item) for item in value]
        if isinstance(value, dict):
            return self._free_object(value)
        if isinstance(value, Decimal) or (type(value) is int and value.bit_length() <= NUMBER_BITS_MAX):
            text = str(value)
            clean = self.text(text)
            return value if clean == text else clean
        return value

    def _free_object(self, value: Mapping[Json, Json]) -> dict[Json, Json]:
        clean: dict[Json, Json] = {}
        for key, item in value.items():
            name = self.free(key)
            if name != key:
                unnumbered, number = name, 1
                while name in clean or name in value:
                    number += 1
                    name = f"{unnumbered} ({number})"
            clean[name] = self.free(item)
        return clean

    def bytes(self, content: bytes) -> bytes:
        return self.text(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def text(self, text: str) -> str:
        pieces = []
        at = 0
        for start, end, name in _merged(self._found(text)):
            self.taken[name] = self.taken.get(name, 0) + 1
            pieces += [text[at:start], f"[redacted: {name}]"]
            at = end
        return "".join((*pieces, text[at:])) if pieces else text

    def _found(self, text: str) -> Iterator[Span]:
        views = [_View(text, [0], [0])]
        while True:
            for find in self._patterns:
                for start, end, name in find(views[-1].text):
                    for view in reversed(views):
                        start, end = view.outside(start), view.outside(end)
                    yield start, end, name
            if len(views) > ESCAPE_LEVELS or "\\" not in views[-1].text:
                return
            views.append(_unescaped(views[-1].text))


@dataclass(frozen=True, slots=True)
class _View:
    """A text with its escapes undone: from `inside[i]` on it runs parallel to the outer one at `outer[i]`."""

    text: str
    inside: list[int]
    outer: list[int]

    def outside(self, offset: int) -> int:
        """The offset in the outer text of an offset in this one."""
        segment = bisect_right(self.inside, offset) - 1
        return self.outer[segment] + offset - self.inside[segment]


def _unescaped(text: str) -> _View:
    pieces: list[str] = []
    inside, outer = [0], [0]
    length = at = 0
    for match in _ESCAPE.finditer(text):
        pieces += [text[at : match.start()], json.loads(f'"{match[0]}"')]
        length += match.start() - at + len(pieces[-1])
        at = match.end()
        inside.append(length)
        outer.append(at)
    return _View("".join((*pieces, text[at:])), inside, outer)


def _merged(spans: Iterator[Span]) -> list[Span]:
    """The spans in order; those that overlap become one, under the name of the first."""
    merged: list[Span] = []
    for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2])
        else:
            merged.append((start, end, name))
    return merged


def passes_luhn(number: str) -> bool:
    """Whether the digits of `number` carry a valid check digit (ISO/IEC 7812-1, annex B)."""
    digits = [int(digit) for digit in reversed(number) if digit.isdecimal()]
    doubled = [digit * 2 - 9 if digit > 4 else digit * 2 for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


COMMON: Mapping[str, Pattern] = MappingProxyType(
    {
        "bearer-token": Pattern(r"(?i)\bbearer[ \t]+(?P<secret>[a-z0-9._~+/-]{16,}=*)"),
        "aws-key-id": Pattern(r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"),
        "aws-secret-key": Pattern(
            r"(?i)aws_?secret_?(?:access_?)?key[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?"
            r"(?P<secret>[a-z0-9/+]{40})(?![a-z0-9/+=])"
        ),
        # A block without an end is taken to the end of its text.
        "private-key": Pattern(
            r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
            r"(?:-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----|\Z)"
        ),
        "card-number": Pattern(r"(?<![\d.])(?:\d[ -]?){12,18}\d(?![\d.]?\d)", passes_luhn),
    }
)
"""Credentials that are easily told: bearer tokens, AWS keys, private keys, card numbers. Opt-in."""
