"""Promise J2: every value has one text, the text is safe anywhere, and the value comes back the same."""

from __future__ import annotations

import collections
import decimal
import enum
import json
import math
import os
import re
import struct
import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from unittest import mock
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shiftbook import canonical
from shiftbook.canonical import DEPTH_MAX, INT_SAFE_MAX, decode, encode, is_canonical
from shiftbook.errors import NotCanonical, ShiftbookError

FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def same(a: object, b: object) -> bool:
    """Equal in value, type, key order, sign of zero and zone offset; NaN equals NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float) and isinstance(b, float):
        return struct.pack("d", a) == struct.pack("d", b) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return same([list(pair) for pair in a.items()], [list(pair) for pair in b.items()])
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return a.as_tuple() == b.as_tuple()
    if isinstance(a, (datetime, time)) and isinstance(b, (datetime, time)):
        return a == b and a.utcoffset() == b.utcoffset()
    return a == b


# Any code point, surrogates among them, so that pairs and lone ones both turn up.
any_text = st.one_of(
    st.text(),
    st.text(st.characters()),
    st.text(st.sampled_from('a$"\\\n\x00\x1f\x7f\x85\u2028\ud83d\ude00\U0001f600é'), max_size=8),
    st.sampled_from(["$float", "$int", "$map", "$text", "$", "$bytes"]),
)
offsets = st.one_of(
    st.none(),
    st.just(UTC),
    st.integers(-86_399, 86_399).map(lambda seconds: timezone(timedelta(seconds=seconds))),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-3, 3).map(lambda n: INT_SAFE_MAX + n),
    st.integers(-3, 3).map(lambda n: n - INT_SAFE_MAX),
    st.integers(1990, 2200).map(lambda bits: -(1 << bits)),
    st.floats(),
    any_text,
    st.binary(max_size=20),
    st.decimals(),
    st.datetimes(timezones=offsets),
    st.dates(),
    st.times(timezones=offsets),
)
keys = st.one_of(any_text, scalars.filter(lambda v: not (isinstance(v, Decimal) and v.is_snan())))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(any_text, inner, max_size=4),
        st.dictionaries(keys, inner, max_size=3),
    ),
    max_leaves=12,
)


@given(values)
@example(-0.0)
@example(1e22)
@example(5e-324)
@example(1.0)
@example({"$float": "nan"})
@example({"$map": []})
@example({"\ud83d\ude00": 1})
@example([math.nan, math.inf, -math.inf])
@example({math.nan: 1, 1: True, None: {}})
@example(Decimal("-0E+3"))
@example(time(1, 2, tzinfo=timezone(timedelta(seconds=-3723))))
def test_a_value_comes_back_the_same_from_one_safe_line(value: object) -> None:
    text = encode(value)
    assert same(decode(text), value)
    assert not FORBIDDEN.search(text)
    assert text.encode("utf-8").decode("utf-8") == text
    assert encode(decode(text)) == text


@given(values)
def test_the_text_is_json_to_every_reader(value: object) -> None:
    json.loads(encode(value), parse_constant=lambda name: pytest.fail(f"bare {name}"))


@given(st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(any_text, inner)))
def test_the_quick_path_and_the_careful_one_write_the_same(value: object) -> None:
    """What is plain by the quick check must be written alike by the walk that knows every tag."""
    if canonical._is_plain(value, DEPTH_MAX):
        careful = json.dumps(
            canonical._lower(value, DEPTH_MAX, ()), ensure_ascii=False, separators=(",", ":")
        )
        assert encode(value) == canonical._ODD.sub(canonical._escape, careful)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(any_text, inner, max_size=3),
        st.builds(lambda tag, held: {tag: held}, st.sampled_from(sorted(canonical._READERS)), inner),
        st.builds(lambda held: {"$map": held}, st.lists(st.lists(inner, min_size=2, max_size=2)) | inner),
        st.builds(lambda held: {"$text": held}, st.lists(any_text) | inner),
    ),
    max_leaves=8,
)


@given(
    st.one_of(
        st.text(st.characters()),
        st.text(st.sampled_from('{}[]",:\\$01.eE+-/ \nuatrfnlsx'), max_size=30),
        json_like.map(lambda v: json.dumps(v, separators=(",", ":"))),
        json_like.map(lambda v: json.dumps(v, separators=(",", ":"), ensure_ascii=False)),
        json_like.map(json.dumps),
    )
)
def test_any_text_is_the_text_of_its_value_or_refused(text: str) -> None:
    try:
        value = decode(text)
    except NotCanonical:
        assert not is_canonical(text)
    else:
        assert is_canonical(text)
        assert encode(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"zebra": 1, "alpha": [None, True]}, '{"zebra":1,"alpha":[null,true]}'),
        ("é\u5e93\U0001f600", '"é\u5e93\U0001f600"'),
        ("a\x00b\n\x7f\x85\u2028\ud800", '"a\\u0000b\\n\\u007f\\u0085\\u2028\\ud800"'),
        ("\ude00\ud83d", '"\\ude00\\ud83d"'),
        ("a\ud83d\ude00b", '{"$text":["a\\ud83d","\\ude00b"]}'),
        (1e22, "1e+22"),
        (5e-324, "5e-324"),
        (-0.0, "-0.0"),
        (math.nan, '{"$float":"nan"}'),
        (-math.inf, '{"$float":"-inf"}'),
        (INT_SAFE_MAX, "9007199254740991"),
        (-INT_SAFE_MAX - 1, '{"$int":"-9007199254740992"}'),
        (1 << 2000, '{"$int":"0x1' + "0" * 500 + '"}'),
        (b"\x00\xff", '{"$bytes":"AP8="}'),
        (Decimal("1.50"), '{"$decimal":"1.50"}'),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), '{"$datetime":"2026-01-02T03:04:05+00:00"}'),
        (date(2026, 1, 2), '{"$date":"2026-01-02"}'),
        (time(3, 4), '{"$time":"03:04:00"}'),
        ({1: "a", "1": "b"}, '{"$map":[[1,"a"],["1","b"]]}'),
        ({"$ref": "#/x"}, '{"$map":[["$ref","#/x"]]}'),
        ({"$ref": "#/x", "type": "string"}, '{"$ref":"#/x","type":"string"}'),
    ],
)
def test_the_written_form_never_changes(value: object, text: str) -> None:
    """Hashes of old journals rest on these characters."""
    assert encode(value) == text
    assert same(decode(text), value)


class Colour(enum.Enum):
    RED = "red"
    BOTH = ("red", 1)


class Level(enum.IntEnum):
    HIGH = 7


class Name(enum.StrEnum):
    SHOP = "shop"


class Loud(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "LOUD"


class Metres(float):
    __slots__ = ()

    def __repr__(self) -> str:
        return "many"


Pair = collections.namedtuple("Pair", "x y")


def moved() -> collections.OrderedDict[str, int]:
    table = collections.OrderedDict(a=1, b=2)
    table.move_to_end("a")
    return table


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ((1, (2,)), [1, [2]]),
        (Pair(1, "y"), [1, "y"]),
        (Level.HIGH, 7),
        (Name.SHOP, "shop"),
        (Colour.BOTH, ["red", 1]),
        ({Colour.RED: Colour.RED}, {"red": "red"}),
        ({Level.HIGH: 1}, {7: 1}),
        (Loud("quiet"), "quiet"),
        (Metres(2.5), 2.5),
        (Metres("nan"), math.nan),
        (collections.Counter(b=2), {"b": 2}),
        (moved(), {"b": 2, "a": 1}),
        (
            datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")),
            datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=2))),
        ),
    ],
)
def test_what_only_holds_a_plain_value_is_read_back_as_that(value: object, read: object) -> None:
    assert same(decode(encode([value])), [read])


class Blob(bytes):
    __slots__ = ()


class BrokenZone(timezone.__base__):  # type: ignore[misc,name-defined]
    def utcoffset(self, when: datetime | None) -> timedelta:
        raise OSError("no zone data")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": [1, {2, 3}]}, r"value\['a'\]\[1\] is a builtins\.set"),
        ([object()], r"value\[0\] is a builtins\.object"),
        (Blob(b"x"), r"is a tests\.test_canonical\.Blob|is a test_canonical\.Blob"),
        (bytearray(b"x"), "bytearray"),
        (1j, "complex"),
        ({(1, 2): 3}, r"value has a key of builtins\.tuple"),
        ({Colour.RED: 1, "red": 2}, "two keys that become the same"),
        ([mock.Mock(spec=str)], r"unittest\.mock\.Mock"),
        (datetime(2026, 1, 1, tzinfo=BrokenZone()), "a time zone that fails: OSError"),
        (time(1, tzinfo=timezone(timedelta(microseconds=1))), "a part of a second"),
        ({"k\x00" * 200: {1j}}, r"value\['k\\x00"),
        ({10**5000: {1j}}, r"value\[\.\.\.\] is a builtins\.set"),
    ],
)
def test_what_has_no_text_is_refused_with_type_and_place(value: object, said: str) -> None:
    with pytest.raises(NotCanonical, match=said) as caught:
        encode(value)
    assert isinstance(caught.value, ShiftbookError)
    assert len(str(caught.value)) < 400
    assert not FORBIDDEN.search(str(caught.value))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "-Infinity",
        "1.00",
        "1E5",
        "-0",
        "[1, 2]",
        " 1",
        "1\n",
        "\ufeff1",
        '{"a":1,"a":1}',
        '"\\u0041"',
        '"\\/"',
        '"\x7f"',
        '"\u2028"',
        '"\ud800"',
        '"\\ud83d\\ude00"',
        "9007199254740992",
        "1" * 5000,
        '{"$int":"5"}',
        '{"$int":"0x' + "f" * 20 + '"}',
        '{"$int":"' + "9" * 5000 + '"}',
        '{"$int":9007199254740992}',
        '{"$float":"1.5"}',
        '{"$float":"infinity"}',
        '{"$bytes":"AP8"}',
        '{"$bytes":"AP9="}',
        '{"$bytes":"A P8="}',
        '{"$decimal":"1e5"}',
        '{"$decimal":"x"}',
        '{"$datetime":"2026-01-02"}',
        '{"$datetime":"soon"}',
        '{"$text":["ab","c"]}',
        '{"$text":"ab"}',
        '{"$text":[1]}',
        '{"$map":[["a",1]]}',
        '{"$map":[[[],1]]}',
        '{"$map":[[1,1],[1,2]]}',
        '{"$map":[[1]]}',
        '{"$map":7}',
        '{"$later":1}',
    ],
)
def test_a_text_that_encode_would_not_have_written_is_refused(text: str) -> None:
    assert not is_canonical(text)
    with pytest.raises(NotCanonical):
        decode(text)


def nested(depth: int, kind: str) -> object:
    value: object = b"x"
    for _ in range(depth):
        value = {"list": [value], "dict": {"k": value}, "map": {1: value}, "tuple": (value,)}[kind]
    return value


@pytest.mark.parametrize(("kind", "most"), [("list", 200), ("dict", 200), ("tuple", 200), ("map", 66)])
def test_nesting_is_bounded_and_the_bound_is_kept_both_ways(kind: str, most: int) -> None:
    text = encode(nested(most, kind))
    assert encode(decode(text)) == text
    with pytest.raises(NotCanonical, match="more than 200 deep"):
        encode(nested(most + 1, kind))


@pytest.mark.parametrize("text", ["[" * 201 + "]" * 201, "[" * 100_000 + "]" * 100_000, '{"a":' * 90_000])
def test_a_deep_text_is_refused(text: str) -> None:
    with pytest.raises(NotCanonical):
        decode(text)


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append({"again": loop})
    with pytest.raises(NotCanonical, match="holds itself"):
        encode(loop)


def test_a_full_call_stack_ends_in_our_error() -> None:
    def descend() -> None:
        try:
            encode(nested(200, "list"))
        except NotCanonical:
            return
        descend()

    descend()


def test_the_text_does_not_depend_on_settings_of_the_process() -> None:
    """A thread's decimal context, the digit limit and the hash seed may differ on the next machine."""
    value = {1: Decimal("1E+30"), "n": 10**600, "big": 10**3000}
    expected = encode(value)
    with decimal.localcontext() as context:
        context.capitals = 0
        context.prec = 3
        context.traps[decimal.InvalidOperation] = False
        assert encode(value) == expected
        assert same(decode(expected), value)
    program = (
        "import sys; sys.set_int_max_str_digits(640)\n"
        "from shiftbook.canonical import decode, encode\n"
        "text = sys.stdin.read(); assert encode(decode(text)) == text"
    )
    subprocess.run(
        [sys.executable, "-c", program],
        input=expected,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
