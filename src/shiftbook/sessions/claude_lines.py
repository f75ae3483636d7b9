"""What rows need of a Claude Code line, found without parsing the texts in it.

Most bytes of a session are results of tools and what the model wrote, and no row needs them. The lines are
written by one program in one way, so a line of that way is read at its two ends: plain fields before the
first object or list, and plain fields after the last. What is found that way belongs to the line itself,
because a quote without a backslash before it is a true end of a text. Anything else, an escape in a field,
a second "uuid" or "usage", another order, is left to the parser. Whether the text between is sound is not
looked at.

It takes one thing on trust: the only "uuid" of a user line, and the only "usage" of a reply, are where
Claude Code puts them and not in some object inside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_PLAIN = r'"[A-Za-z_]+":(?:"[^"\\]*"|null|true|false|[0-9]+)'
_HEAD = re.compile(rf"\{{(?:{_PLAIN},)*".encode())
_MESSAGE = re.compile(rf'"message":\{{((?:{_PLAIN},)*)"content":\['.encode())
_TAIL = re.compile(rf"((?:,{_PLAIN})*)\}}((?:,{_PLAIN})*)\}}")
_USAGE, _COMPACT, _UUID = b'"usage"', b"ompact", b'"uuid"'
_SPOKEN = (b'"type":"assistant"', b'"type":"user"', b'"type":"system"')
_DECODER = json.JSONDecoder()


def glance(line: bytes) -> Mapping[str, object] | None:
    """The fields of a line that rows need, or None when it must be parsed."""
    head = _HEAD.match(line)
    if head is None or line[-1:] != b"}":
        return None
    if _USAGE in line:
        return _reply(line, head)
    if _COMPACT in line:
        return None
    plain, at = head[0], line.find(_UUID)
    if at < 0:
        other = b'"type":"' in plain and not any(kind in plain for kind in _SPOKEN)
        return _fields(plain) if other else None
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


def _reply(line: bytes, head: re.Match[bytes]) -> Mapping[str, object] | None:
    """An assistant line: its own fields, and of its message all but the content."""
    message = _MESSAGE.match(line, head.end())
    at = line.rfind(_USAGE + b":{")
    if message is None or b'"id":' not in message[1] or b'"model":' not in message[1]:
        return None
    if at < 0 or line.find(_USAGE) != at or line[at - 1 : at] == b"\\":
        return None
    try:
        rest = line[at + len(_USAGE) + 1 :].decode("utf-8")
        usage, end = _DECODER.raw_decode(rest)
    except (ValueError, RecursionError):
        return None
    tail = _TAIL.fullmatch(rest, end)
    if tail is None or len(head[0]) == 1:
        return None
    told = json.loads(
        f"[{{{message[1].decode('utf-8', 'surrogatepass')[:-1]}}},{{{tail[1][1:]}}},{{{tail[2][1:]}}}]"
    )
    inner = {**told[0], **told[1], "usage": usage}
    found = {**_fields(head[0]), **told[2], "message": inner}
    return found if found.get("type") == "assistant" else None
