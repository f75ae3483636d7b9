"""What rows need of a Claude Code line of which no row can come, found without parsing the text in it.

Most bytes of a session are results of tools, and no row needs them. The lines are written by one program in
one way, so a line of that way is read at its head: plain fields before the first object or list, which belong
to the line itself, because a quote without a backslash before it is a true end of a text. Anything else, an
escape in a field, a second "uuid", in other lines a word of usage or compaction, is left to the parser.
Whether the text is sound is not looked at: each look through a line costs as much as a tenth of its parsing.

It takes two things on trust: the only "uuid" of a user line is where Claude Code puts it and not in some
object inside, and a line that holds a tool's result is no account of a compaction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_HEAD = re.compile(rb'\{(?:"[A-Za-z_]+":(?:"[^"\\]*"|null|true|false|[0-9]+),)*')
_USAGE, _COMPACT, _UUID = b'"usage"', b"ompact", b'"uuid"'
_SPOKEN = (b'"type":"assistant"', b'"type":"user"', b'"type":"system"')
_RESULT = b'"tool_use_id"'
_SHORT_BYTES = 1_500
"""Below this length parsing takes no longer."""


def glance(line: bytes) -> Mapping[str, object] | None:
    """The fields of a line that rows need, or None when it must be parsed."""
    if len(line) < _SHORT_BYTES or line[-1:] != b"}":
        return None
    head = _HEAD.match(line)
    if head is None:
        return None
    plain = head[0]
    if b'"type":"user",' in plain:
        return _result(line, plain)
    if b'"type":"' not in plain or any(kind in plain for kind in _SPOKEN):
        return None
    return None if _USAGE in line or _COMPACT in line or _UUID in line else _fields(plain)


def _result(line: bytes, plain: bytes) -> Mapping[str, object] | None:
    """A user's line that holds a tool's result: nobody's words, which may switch a setting, and no account
    of a compaction."""
    if _RESULT not in line or b'"parentUuid":' not in plain or b'"isSidechain":' not in plain:
        return None
    at = line.find(_UUID)
    start = at + len(_UUID) + 2
    uuid = line[start : line.find(b'"', start)]
    if at < 0 or line[start - 2 : start] != b':"' or line[at - 1 : at] == b"\\":
        return None
    if line.find(_UUID, start) >= 0 or b"\\" in uuid or not uuid.isascii():
        return None
    return {**_fields(plain), "uuid": uuid.decode("ascii")}


def _fields(plain: bytes) -> dict[str, object]:
    """Plain fields out of the head of a line."""
    found: dict[str, object] = json.loads(plain[:-1] + b"}")
    return found
