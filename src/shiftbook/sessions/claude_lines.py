"""What rows need of a Claude Code line of which no row can come, found without parsing the text in it.

Most bytes of a session are results of tools, and no row needs them. The lines are written by one program in
one way, so a line of that way is read at its head: plain fields before the first object or list, which belong
to the line itself, because a quote without a backslash before it is a true end of a text. Anything else, an
escape in a field, a second "uuid", a word of usage or compaction, is left to the parser. Whether the text is
sound is not looked at.

It takes one thing on trust: the only "uuid" of a user line is where Claude Code puts it and not in some
object inside.
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
    if head is None or _SPOKEN[0] in head[0] or _USAGE in line or _COMPACT in line:
        return None
    plain, at = head[0], line.find(_UUID)
    if at < 0:
        other = b'"type":"' in plain and not any(kind in plain for kind in _SPOKEN)
        return _fields(plain) if other else None
    if _RESULT not in line:
        return None  # a person's words, which may switch a setting
    if b'"type":"user",' not in plain or b'"parentUuid":' not in plain or b'"isSidechain":' not in plain:
        return None
    start = at + len(_UUID) + 2
    uuid = line[start : line.find(b'"', start)]
    if line[start - 2 : start] != b':"' or line[at - 1 : at] == b"\\" or line.find(_UUID, start) >= 0:
        return None
    if b"\\" in uuid or not uuid.isascii():
        return None
    return {**_fields(plain), "uuid": uuid.decode("ascii")}


def _fields(plain: bytes) -> dict[str, object]:
    """Plain fields out of the head of a line."""
    found: dict[str, object] = json.loads(plain[:-1] + b"}")
    return found
