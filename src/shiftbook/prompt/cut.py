"""Shortening: head and tail of a text, the big ones among several, and a line that says what is not there.

Lengths are in characters, so that a cut needs no tokenizer to be made again. What is cut is named by its
entry; nothing is shortened without saying so. Refused here: any judgement of what matters in a text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from shiftbook import canonical
from shiftbook.messages import Call, Json, Media, Missing, Text
from shiftbook.prompt import wording

MEDIA_CHARS = 6_400
"""What an image or a file weighs against text when an entry is cut: 1,600 tokens of four characters."""

ARGUMENT_NAMES_MAX = 20
ARGUMENT_NAME_CHARS_MAX = 400
"""Arguments of more names, or of longer ones together, are cut as one text."""

# Spelled out, since `str.isspace` follows the Unicode version of the Python that runs.
SPACES = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008"
    "\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
)

Content = Text | Media | Missing


def level(lengths: Sequence[int], total: int) -> int:
    """The greatest height to which all lengths can be lowered so that they add up to `total` at the most.

    What is lower already stays as it is: water finds its level.
    """
    left, count = max(total, 0), len(lengths)
    for index, length in enumerate(sorted(lengths)):
        share = left // (count - index)
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)


def cut_text(text: str, keep: int, position: int) -> str:
    """`keep` characters of a longer text, two thirds from its head, and what was left out between."""
    if len(text) <= keep:
        return text
    tail = keep // 3
    head = keep - tail
    line = wording.left_out(len(text) - keep, position)
    return "\n".join(piece for piece in (text[:head], line, text[len(text) - tail :]) if piece)


def is_blank(text: str) -> bool:
    """Whether a vendor would refuse the text as empty."""
    return not text.strip(SPACES)


def plain_text(text: str) -> str:
    """The text as it can be sent: a lone surrogate, which no encoding takes, as its six-character escape."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def content_parts(content: Sequence[Content]) -> tuple[Text | Media, ...]:
    """The parts that can be sent: no blank text, and what is missing said in words."""
    parts: list[Text | Media] = []
    for part in content:
        match part:
            case Text(text):
                if not is_blank(text):
                    plain = plain_text(text)
                    parts.append(part if plain is text else Text(plain))
            case Media():
                parts.append(part)
            case Missing(what):
                parts.append(Text(wording.missing(plain_text(what))))
    return tuple(parts)


def content_chars(parts: Sequence[Content]) -> int:
    """The length of a message or a result, as `keep` is counted."""
    return sum(len(part.text) if isinstance(part, Text) else MEDIA_CHARS for part in parts)


def cut_content(parts: Sequence[Text | Media], keep: int | None, position: int) -> tuple[Text | Media, ...]:
    """The parts, or one text of them within `keep` characters; images and files are then left out whole."""
    if keep is None or content_chars(parts) <= keep:
        return tuple(parts)
    lines = [part.text for part in parts if isinstance(part, Text)]
    media = len(parts) - len(lines)
    text = cut_text("\n".join(lines), keep, position)
    if media:
        text = "\n".join(piece for piece in (text, wording.media_left_out(media, position)) if piece)
    return (Text(text),)


def plain_arguments(call: Call) -> dict[str, Json]:
    """A call's arguments as JSON that every vendor takes: an object, with finite numbers and sendable text.

    What did not parse to an object stands whole under one name that says so.
    """
    if call.arguments is None:
        return {"unparsed_arguments": plain_text(call.raw or "")}
    plain = _sendable(dict(call.arguments))
    return plain if isinstance(plain, dict) else {"unparsed_arguments": plain}


def arguments_text(arguments: Mapping[str, Json]) -> str:
    """The canonical text of arguments, which is what they are measured and cut by."""
    return canonical.encode(dict(arguments))


def plain_name(name: object) -> str:
    """A name in an object, as it can be sent."""
    return plain_text(name if isinstance(name, str) else canonical.encode(name))


def _sendable(value: Json) -> Json:
    match value:
        case str():
            return plain_text(value)
        case None | bool():
            return value
        case int() if value.bit_length() <= canonical.DECIMAL_BITS_MAX:
            return value
        case float() if value - value == 0.0:
            return value
        case list() | tuple():
            return [_sendable(item) for item in value]
        case dict():
            plain = {plain_name(name): _sendable(item) for name, item in value.items()}
            # Two names may be sent alike; then one text says both.
            return plain if len(plain) == len(value) else canonical.encode(value)
    # What JSON cannot say stands in the canonical text's own tagged form, which is plain JSON.
    return json.loads(canonical.encode(value))


def cut_arguments(arguments: Mapping[str, Json], keep: int, position: int) -> dict[str, Json]:
    """Arguments within about `keep` characters: the big values cut to an equal height, the small ones whole.

    Where the names themselves are too many or too long, one text stands for all.
    """
    whole = arguments_text(arguments)
    if len(whole) <= keep:
        return dict(arguments)
    names = sum(len(name) for name in arguments)
    if len(arguments) > ARGUMENT_NAMES_MAX or names > ARGUMENT_NAME_CHARS_MAX:
        return {"arguments_cut": cut_text(whole, keep, position)}
    texts = {n: v if isinstance(v, str) else canonical.encode(v) for n, v in arguments.items()}
    height = level([len(text) for text in texts.values()], keep)
    return {
        name: arguments[name] if len(text) <= height else cut_text(text, height, position)
        for name, text in texts.items()
    }
