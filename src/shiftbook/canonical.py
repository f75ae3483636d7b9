"""The one text of a value: the same value gives the same characters on every machine, for ever.

What enters the journal is hashed and compared by its text, so every value has exactly one. That text is
JSON with key order kept, no spaces, non-ASCII characters as they are, floats by Python's shortest repr; C0,
DEL, C1, U+2028, U+2029 and lone surrogates are escaped, so that it holds no NUL, is one line, and always
encodes to UTF-8. What JSON cannot say stands in a tagged form, an object of one key that begins with `$`:

    {"$float":"nan"}            nan, inf, -inf (there is one NaN: sign and payload are not kept)
    {"$int":"9007199254740992"} beyond 2**53 - 1, RFC 7493's safe range; over 2,000 bits in hexadecimal
    {"$bytes":"AAE="}           base64, RFC 4648 section 4
    {"$decimal":"1.50"}         decimal.Decimal, exponent kept
    {"$datetime":...}  {"$date":...}  {"$time":...}     ISO 8601
    {"$text":["a\\ud83d","\\ude00"]}   text in which a high and a low surrogate stand as two characters, cut
                                between them: in one JSON string the two would be read as one character
    {"$map":[[key,value],...]}  a dict with a key that is no plain text, or one that would read as a tag

Read back the same, in value and type: None, bool, int, float, str, bytes, Decimal, datetime, date, time,
lists and dicts of these (a key may be any of them but list and dict). Taken, and read back as the plain
thing they hold: a tuple as a list, an enum member as its value, a subclass of int, float, str, list, tuple
or dict as its base, a time zone as its offset; `fold` is dropped.

Refused with `NotCanonical`, which names the type and the place: everything else. Sets, since they have no
order; subclasses of bytes, Decimal and the dates, since they may hold more than their base; tuples as keys;
keys that become equal; a zone offset with a part of a second, which Python loses when it reads ISO text;
containers nested more than 200 deep (a `$map` counts as three), so no value and no text ends in a
RecursionError. `decode` refuses every text that `encode` would not have written: another spacing, a key
twice, an unknown tag, 1.00 for 1.0.
"""

from __future__ import annotations

import binascii
import enum
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from json import encoder as json_encoder
from typing import Any, TypeAlias, cast

from shiftbook.errors import NotCanonical

Key: TypeAlias = "bool | int | float | str | bytes | Decimal | datetime | date | time | None"
Value: TypeAlias = "Key | list[Value] | dict[Key, Value]"

DEPTH_MAX = 200
INT_SAFE_MAX = 2**53 - 1
# Python may be told to refuse decimal conversions from 641 digits on; 2,000 bits are 603 digits.
DECIMAL_BITS_MAX = 2000

_FREE = frozenset({str, bool, type(None)})
_ODD = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_PAIR_GAP = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")
_DATES: dict[type, str] = {datetime: "$datetime", date: "$date", time: "$time"}
_TOO_DEEP = f"is nested more than {DEPTH_MAX} deep, or holds itself; flatten it"
_KEYS = frozenset({type(None), bool, int, float, str, bytes, Decimal, datetime, date, time})


def encode(value: object) -> str:
    """The canonical text of `value`; raises `NotCanonical`, naming type and place, if it has none."""
    try:
        if _is_plain(value, DEPTH_MAX):
            text = _json(value)
            if text.isascii():
                return text if "\x7f" not in text else text.replace("\x7f", "\\u007f")
            if not _ODD.search(text):
                return text
            # A pair within the text can only come from within one string: quotes part the strings.
            if not _PAIR_GAP.search(text):
                return _ODD.sub(_escape, text)
        return _ODD.sub(_escape, _json(_lower(value, DEPTH_MAX, ())))
    except RecursionError:
        raise NotCanonical(
            "The call stack is too full to walk the value: encode it from a shallower place."
        ) from None


def decode(text: str) -> Value:
    """The value whose canonical text is `text`, so that `encode(decode(text)) == text`.

    Raises `NotCanonical` for every other text.
    """
    try:
        # In a canonical text these three characters stand nowhere but at the head of a tag or of a dict
        # whose first key begins with "$": within a string the quote would be escaped.
        value = _lift(json.loads(text)) if '{"$' in text else json.loads(text)
    except RecursionError:
        raise NotCanonical(f"The text nests too deep to be read; {DEPTH_MAX} levels are allowed.") from None
    except ValueError as error:
        raise NotCanonical(f"The text is not canonical JSON: {_short(ascii(str(error))[1:-1])}.") from None
    again = encode(value)
    if again != text:
        at = next((n for n, (a, b) in enumerate(zip(again, text, strict=False)) if a != b), len(again))
        at = min(at, len(text))
        raise NotCanonical(
            f"The text is JSON but not the canonical text of its value: from character {at} on it has "
            f"{text[at : at + 20]!a} where {again[at : at + 20]!a} belongs."
        )
    return cast(Value, value)


def is_canonical(text: str) -> bool:
    """Whether `decode` takes the text."""
    try:
        decode(text)
    except NotCanonical:
        return False
    return True


def _make_json() -> Callable[[object], str]:
    """JSON text of plain values; the C encoder made once, since JSONEncoder makes one for each value."""
    plain = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"))
    make = getattr(json_encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    chunks = make(None, plain.default, json_encoder.encode_basestring, None, ":", ",", False, False, False)
    return lambda value: "".join(chunks(value, 0))


_json = _make_json()


def _is_plain(value: Any, room: int) -> bool:
    """Whether plain JSON says it all; where that is not plain to see, False: `_lower` looks closely.

    `room` is how many containers may still nest here.
    """
    # On the way of every entry: the checks of what a container holds stand in its loop, without a call each.
    kind = type(value)
    if kind in _FREE:
        return True
    if kind is int:
        return bool(-INT_SAFE_MAX <= value <= INT_SAFE_MAX)
    if kind is float:
        return bool(value - value == 0.0)
    if not room:
        return False
    if kind is dict:
        for key in value:
            # Alone in its dict, a key that begins with "$" would read as a tag.
            if type(key) is not str or key[:1] == "$":
                return False
        items = value.values()
    elif kind is list or kind is tuple:
        items = value
    else:
        return False
    for item in items:
        kind = type(item)
        if kind in _FREE or (kind is int and -INT_SAFE_MAX <= item <= INT_SAFE_MAX):
            continue
        if not _is_plain(item, room - 1):
            return False
    return True


def _lower(value: object, room: int, path: tuple[object, ...]) -> object:
    """The value with every tagged form spelt out, ready for the plain encoder."""
    value = _base(value)
    kind = type(value)
    if kind in _KEYS:
        return _lower_scalar(value, path)
    if not issubclass(kind, (list, tuple, dict)):
        raise _refusal(path, f"is a {kind.__module__}.{kind.__qualname__}, which has no canonical text")
    if room < 1:
        raise _refusal(path, _TOO_DEEP)
    if issubclass(kind, dict):
        return _lower_dict(cast("dict[object, object]", value), room, path)
    walk = list.__iter__ if issubclass(kind, list) else tuple.__iter__
    items: list[object] = []
    # No comprehension: each would cost a frame of the call stack at each level.
    for item in cast("Iterator[object]", walk(value)):  # type: ignore[arg-type]
        items.append(_lower(item, room - 1, (*path, len(items))))
    return items


def _lower_dict(table: dict[object, object], room: int, path: tuple[object, ...]) -> object:
    # The base's own order and items: a subclass may have overridden its methods.
    own = OrderedDict.items if issubclass(type(table), OrderedDict) else dict.items
    pairs = [(_base(key), item) for key, item in own(table)]  # type: ignore[arg-type]
    for key, _ in pairs:
        if type(key) not in _KEYS:
            kind = type(key)
            raise _refusal(
                path, f"has a key of {kind.__module__}.{kind.__qualname__}, which cannot be kept as a key"
            )
    if len({key for key, _ in pairs}) < len(pairs):
        raise _refusal(path, "has two keys that become the same one as plain values")
    plain = all(type(key) is str and not _PAIR_GAP.search(key) for key, _ in pairs)
    if plain and not (len(pairs) == 1 and cast(str, pairs[0][0])[:1] == "$"):
        fields: dict[object, object] = {}
        for key, item in pairs:
            fields[key] = _lower(item, room - 1, (*path, key))
        return fields
    if room < 3:
        raise _refusal(path, _TOO_DEEP)
    rows: list[object] = []
    for key, item in pairs:
        rows.append([_lower_scalar(key, path), _lower(item, room - 3, (*path, key))])
    return {"$map": rows}


def _lower_scalar(value: object, path: tuple[object, ...]) -> object:
    """A scalar of exact type: itself, or its tagged form."""
    if isinstance(value, str):
        pieces = _PAIR_GAP.split(value)
        return value if len(pieces) == 1 else {"$text": pieces}
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        if -INT_SAFE_MAX <= value <= INT_SAFE_MAX:
            return value
        return {"$int": str(value) if value.bit_length() <= DECIMAL_BITS_MAX else hex(value)}
    if isinstance(value, float):
        return value if value - value == 0.0 else {"$float": repr(value)}
    if isinstance(value, bytes):
        return {"$bytes": binascii.b2a_base64(value, newline=False).decode("ascii")}
    if isinstance(value, Decimal):
        # The exponent's letter follows the thread's decimal context; the canonical one is capital.
        return {"$decimal": str(value).replace("e", "E")}
    try:
        if isinstance(value, (datetime, time)):
            offset = value.utcoffset()
            if offset is not None and offset.microseconds:
                raise ValueError("a zone offset of a part of a second")
        return {_DATES[type(value)]: cast(date, value).isoformat()}
    except Exception as error:  # noqa: BLE001 - a time zone is foreign code and may raise anything
        raise _refusal(
            path, f"has a time zone that fails: {type(error).__name__}: {_short(ascii(str(error)))}"
        ) from None


def _base(value: object) -> object:
    """An enum member as its value, a subclass of int, float or str as its base; all else as it is.

    Asks `type(value)`, never `isinstance`: a mock may claim any `__class__`.
    """
    while issubclass(type(value), enum.Enum):
        value = cast(enum.Enum, value)._value_
    kind = type(value)
    if kind in _KEYS:
        return value
    if issubclass(kind, str):
        return str.__str__(cast(str, value))
    if issubclass(kind, int):
        return int.__int__(cast(int, value))
    if issubclass(kind, float):
        return float.__float__(cast(float, value))
    return value


def _lift(value: object) -> object:
    """The value that a parsed text stands for: every tagged form read; raises ValueError on a bad one."""
    if type(value) is list:
        for n, item in enumerate(value):
            value[n] = _lift(item)
    elif type(value) is dict:
        if len(value) == 1:
            ((tag, held),) = value.items()
            if tag[:1] == "$":
                return _lift_tag(tag, held)
        for key, item in value.items():
            value[key] = _lift(item)
    return value


def _lift_tag(tag: str, held: object) -> object:
    try:
        if tag == "$map":
            table: dict[object, object] = {}
            for key, item in cast("list[tuple[object, object]]", held):
                table[_lift(key)] = _lift(item)
            return table
        if tag == "$text":
            return "".join(cast("list[str]", held))
        read = _READERS.get(tag)
        if read is None or type(held) is not str:
            raise ValueError(f"{tag!a} with {type(held).__name__} is no tagged form of this version")
        return read(held)
    except (TypeError, ArithmeticError) as error:
        raise ValueError(f"{tag!a} does not hold what it should ({error})") from None


_READERS: dict[str, Callable[[str], object]] = {
    "$float": float,
    "$int": lambda text: int(text, 16 if "x" in text else 10),
    "$bytes": lambda text: binascii.a2b_base64(text, strict_mode=True),
    "$decimal": Decimal,
    "$datetime": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$time": time.fromisoformat,
}


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _short(text: str) -> str:
    return text if len(text) <= 160 else text[:160] + "..."


def _refusal(path: tuple[object, ...], what: str) -> NotCanonical:
    steps = []
    for step in path if len(path) <= 8 else (*path[:4], None, *path[-4:]):
        named = type(step) is str or (type(step) is int and -INT_SAFE_MAX <= step <= INT_SAFE_MAX)
        steps.append(f"[{_short(ascii(step))}]" if named else "[...]")
    return NotCanonical(f"value{''.join(steps)} {what}.")
