"""Argument text beside its parse: kept as it was written, parsed strictly, repaired never."""

from __future__ import annotations

import pytest

from shiftbook.messages import Call
from shiftbook.providers.arguments import arguments_text, call_from_text


@pytest.mark.parametrize(
    ("text", "arguments", "raw"),
    [
        ('{"zebra":1,"alpha":2}', {"zebra": 1, "alpha": 2}, None),
        ('{"a": 1}', {"a": 1}, '{"a": 1}'),
        ('{"a":1,"a":2}', {"a": 2}, '{"a":1,"a":2}'),
        ('{"a":"\\u00e9"}', {"a": "é"}, '{"a":"\\u00e9"}'),
        ('{"a":1.00}', {"a": 1.0}, '{"a":1.00}'),
        ("", {}, ""),
        ("{}", {}, None),
        ("null", None, "null"),
        ("[1]", None, "[1]"),
        ('"a"', None, '"a"'),
        ('{"a": NaN}', None, '{"a": NaN}'),
        ('{"a": -Infinity}', None, '{"a": -Infinity}'),
        ('{"a": 1', None, '{"a": 1'),
        ('{"a":' * 5_000, None, '{"a":' * 5_000),
        ("[" * 100_000, None, "[" * 100_000),
        ('{"a":' + "9" * 5_000 + "}", None, '{"a":' + "9" * 5_000 + "}"),
        ('{"a":"\\udc88\\u0000"}', {"a": "\udc88\x00"}, None),
    ],
)
def test_f11_text_and_parse(text, arguments, raw):
    made = call_from_text("id", "tool", text)
    assert made == Call("id", "tool", arguments, raw)
    assert arguments_text(made) == (text or "")
