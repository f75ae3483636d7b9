"""Entries to rows and back: canonical payload text, salted digests, and the chain over them.

A row's payload is canonical text. Its digest is salted, so that erasing payload and salt together leaves
nothing to guess from, and the chain covers digests, not payloads, so that it stays whole. The chain's head
is kept once per commit, on the commit's last row.

    digest = sha256(salt + payload)
    head   = sha256(previous head + position, kind, version, stamp, lease epoch + digest)

The codec refuses: a newer format, a payload that is not canonical, a kind or a field that it does not know.
It never falls back to another serializer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, get_args

from shiftbook import canonical
from shiftbook.entries import (
    FORMAT,
    KINDS,
    Author,
    Entry,
    Origin,
    Outcome,
    Pick,
    PlanItem,
    PlanState,
    ReportLine,
    Sort,
    State,
    TallyOperation,
    What,
)
from shiftbook.errors import Damaged, NewerFormat, NotCanonical
from shiftbook.messages import Call, Json, Media, Missing, Part, Reasoning, StopReason, Text, Usage

SALT_BYTES = 16
INLINE_BYTES_MAX = 65_536
"""A payload longer than this (UTF-8 bytes) is kept as a blob of the run and named by its hash."""


@dataclass(frozen=True, slots=True)
class Row:
    """An entry as a store keeps it. `head` is the chain's head after it, on the last row of a commit."""

    position: int
    kind: str
    version: int
    at_ms: int
    epoch: int
    salt: bytes
    payload: str
    head: bytes | None = None


@dataclass(frozen=True, slots=True)
class Sealed:
    """A batch of entries ready for one commit: its rows, the blobs they name, the new head."""

    rows: tuple[Row, ...]
    blobs: Mapping[str, bytes]
    head: bytes


def blob_hash(content: bytes) -> str:
    """The name of a blob: sha256 of its bytes, in hex."""
    return hashlib.sha256(content).hexdigest()


def genesis(run: str) -> bytes:
    """The chain's head before the first entry of a run."""
    return hashlib.sha256(b"shiftbook chain 1\n" + run.encode("utf-8")).digest()


def link(head: bytes, row: Row) -> bytes:
    """The chain's head after `row`."""
    digest = hashlib.sha256(row.salt + row.payload.encode("utf-8", "surrogatepass")).digest()
    label = f"{row.position}\n{row.kind}\n{row.version}\n{row.at_ms}\n{row.epoch}\n"
    return hashlib.sha256(head + label.encode("utf-8") + digest).digest()


Redact = Callable[[Json], tuple[Json, Mapping[str, int]]]
"""Takes configured patterns out of a plain value; tells how often each was found."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry on its way to a row: what it says after redaction, and what was taken out of it."""

    what: What
    plain: dict[str, Json]
    redacted: Mapping[str, int]


def draft(what: What, redact: Redact | None = None) -> Draft:
    """Prepare an entry. Redaction happens here, before hashing and before anything else sees the entry."""
    plain = to_plain(what)
    if redact is None:
        return Draft(what, plain, {})
    clean, taken = redact(plain)
    if not taken:
        return Draft(what, plain, {})
    return Draft(from_plain(type(what).__name__, clean), clean, dict(taken))


def seal(
    drafts: Sequence[Draft],
    *,
    after: int,
    head: bytes,
    at_ms: Sequence[int],
    epoch: int,
    token: Callable[[int], bytes],
) -> Sealed:
    """Make the rows of one commit that follows position `after` with chain head `head`."""
    rows: list[Row] = []
    blobs: dict[str, bytes] = {}
    salts = token(SALT_BYTES * len(drafts))
    for index, item in enumerate(drafts):
        plain = {**item.plain, "redacted": dict(item.redacted)} if item.redacted else item.plain
        payload = canonical.encode(plain)
        if len(payload) > INLINE_BYTES_MAX // 4:
            payload = _outsource(payload, blobs)
        row = Row(
            position=after + 1 + index,
            kind=type(item.what).__name__,
            version=FORMAT,
            at_ms=at_ms[index],
            epoch=epoch,
            salt=salts[SALT_BYTES * index : SALT_BYTES * (index + 1)],
            payload=payload,
        )
        head = link(head, row)
        rows.append(row)
    rows[-1] = replace(rows[-1], head=head)
    return Sealed(tuple(rows), blobs, head)


def _outsource(payload: str, blobs: dict[str, bytes]) -> str:
    content = payload.encode("utf-8")
    if len(content) <= INLINE_BYTES_MAX:
        return payload
    name = blob_hash(content)
    blobs[name] = content
    return f'{{"$blob":"{name}","size":{len(content)}}}'


def payload_blob(row: Row) -> str | None:
    """The hash of the blob that holds this row's payload, None when the row holds it itself."""
    if not row.payload.startswith('{"$blob":'):
        return None
    return row.payload[10:74]


def open_row(row: Row, blob: Callable[[str], bytes] | None = None) -> Entry:
    """Read an entry back. `blob` fetches an outsourced payload by its hash.

    Raises `NewerFormat` for a row of a later version and `Damaged` for anything that no release wrote.
    """
    if row.version > FORMAT:
        raise NewerFormat(
            f"Entry {row.position} has format {row.version}; this Shiftbook reads up to {FORMAT}. "
            "Update Shiftbook to read this run; nothing was changed."
        )
    payload = row.payload
    name = payload_blob(row)
    if name is not None:
        if blob is None:
            raise Damaged(f"Entry {row.position} keeps its payload in blob {name[:12]}, which was not given.")
        payload = blob(name).decode("utf-8", "replace")
    try:
        plain = canonical.decode(payload)
        if not isinstance(plain, dict):
            raise TypeError("the payload is not an object")
        redacted = plain.pop("redacted", {})
        what = from_plain(row.kind, plain)
        if not all(isinstance(count, int) for count in redacted.values()):
            raise TypeError("a redaction mark is not a count")
    except (NotCanonical, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise Damaged(f"Entry {row.position} ({row.kind}) cannot be read: {error}") from error
    return Entry(row.position, row.at_ms, row.epoch, what, redacted)


# --- values to plain JSON and back -------------------------------------------------------------------


def part_to_plain(part: Part) -> Json:
    """One part of a message as plain JSON."""
    match part:
        case Text(text):
            return {"text": text}
        case Media(blob, media_type, size, name):
            plain: dict[str, Json] = {"media": blob, "type": media_type, "size": size}
            return plain if name is None else plain | {"name": name}
        case Missing(what):
            return {"missing": what}
        case Reasoning(text, opaque):
            return {"reasoning": text} if opaque is None else {"reasoning": text, "opaque": opaque}
        case Call(id, tool, arguments, raw, vendor):
            plain = {"call": id, "tool": tool}
            if arguments is not None:
                plain["args"] = dict(arguments)
            if raw is not None:
                plain["raw"] = raw
            if vendor is not None:
                plain["vendor"] = vendor
            return plain
    raise TypeError(f"{type(part).__name__} is not a part that an entry keeps")


def part_from_plain(plain: Json) -> Part:
    """The reverse of `part_to_plain`; raises `TypeError` or `KeyError` for anything else."""
    if not isinstance(plain, dict):
        raise TypeError("a part is not an object")
    if "text" in plain:
        _only(plain, "text")
        return Text(_text(plain["text"]))
    if "call" in plain:
        _only(plain, "call", "tool", "args", "raw", "vendor")
        arguments = plain.get("args")
        if arguments is not None and not isinstance(arguments, dict):
            raise TypeError("a call's arguments are not an object")
        raw = plain.get("raw")
        return Call(
            _text(plain["call"]),
            _text(plain["tool"]),
            arguments,
            None if raw is None else _text(raw),
            plain.get("vendor"),
        )
    if "media" in plain:
        _only(plain, "media", "type", "size", "name")
        name = plain.get("name")
        return Media(
            _text(plain["media"]),
            _text(plain["type"]),
            _int(plain["size"]),
            None if name is None else _text(name),
        )
    if "missing" in plain:
        _only(plain, "missing")
        return Missing(_text(plain["missing"]))
    _only(plain, "reasoning", "opaque")
    return Reasoning(_text(plain["reasoning"]), plain.get("opaque"))


def _only(plain: Mapping[str, Json], *known: str) -> None:
    unknown = set(plain) - set(known)
    if unknown:
        raise TypeError(f"unknown field {sorted(unknown)[0]!r}")


def _text(value: Json) -> str:
    if type(value) is not str:
        raise TypeError("a text was expected")
    return value


def _int(value: Json) -> int:
    if type(value) is not int:
        raise TypeError("a whole number was expected")
    return value


def _bool(value: Json) -> bool:
    if type(value) is not bool:
        raise TypeError("true or false was expected")
    return value


def _parts_out(parts: Sequence[Part]) -> Json:
    # One text alone, by far the most common content, is kept as a bare string.
    if len(parts) == 1 and type(parts[0]) is Text:
        return parts[0].text
    return [part_to_plain(part) for part in parts]


def _parts_in(plain: Json) -> tuple[Part, ...]:
    if type(plain) is str:
        return (Text(plain),)
    return tuple(part_from_plain(part) for part in _items(plain))


def _items(plain: Json) -> Iterable[Json]:
    if type(plain) is not list:
        raise TypeError("a list was expected")
    return plain


def _picks_out(picks: Sequence[Pick]) -> Json:
    plain: list[list[Json]] = []
    for pick in picks:
        item: list[Json] = [pick.first, pick.last]
        if pick.form != "whole" or pick.keep is not None:
            item.append(pick.form)
        if pick.keep is not None:
            item.append(pick.keep)
        plain.append(item)
    return plain


def _picks_in(plain: Json) -> tuple[Pick, ...]:
    picks = []
    for item in _items(plain):
        first, last, form, keep = [*_items(item), *("whole", None)[len(item) - 2 :]]
        picks.append(Pick(_int(first), _int(last), _text(form), None if keep is None else _int(keep)))
    return tuple(picks)


_USAGE = tuple(item.name for item in fields(Usage))


def _usage_out(usage: Usage) -> Json:
    return {name: value for name in _USAGE if (value := getattr(usage, name)) is not None}


def _usage_in(plain: Json) -> Usage:
    _only(plain, *_USAGE)
    return Usage(**{name: _int(value) for name, value in plain.items()})


def _line_in(plain: Json) -> ReportLine:
    return ReportLine(_text(plain["text"]), tuple(_int(cite) for cite in _items(plain["cites"])))


def _line_out(line: ReportLine) -> Json:
    return {"text": line.text, "cites": list(line.cites)}


def _plan_in(plain: Json) -> tuple[PlanItem, ...]:
    state = _one_of(PlanState)[1]
    return tuple(PlanItem(_text(i["id"]), _text(i["text"]), state(i["state"])) for i in _items(plain))


def _plan_out(items: Sequence[PlanItem]) -> Json:
    return [{"id": item.id, "text": item.text, "state": item.state} for item in items]


def _same(value: Json) -> Json:
    return value


def _tuple_in(plain: Json) -> tuple[Json, ...]:
    return tuple(_items(plain))


def _mapping_in(plain: Json) -> Json:
    if type(plain) is not dict:
        raise TypeError("an object was expected")
    return plain


def _one_of(choice: Any) -> Convert:
    allowed = frozenset(get_args(choice))

    def back(plain: Json) -> str:
        if type(plain) is not str or plain not in allowed:
            raise TypeError(f"{plain!r:.40} is none of {', '.join(sorted(allowed))}")
        return plain

    return _same, back


Convert = tuple[Callable[[Any], Json], Callable[[Json], Any]]

_BY_TYPE: Mapping[str, Convert] = {
    "UserContent": (_parts_out, _parts_in),
    "tuple[AssistantPart, ...]": (_parts_out, _parts_in),
    "Recipe": (_picks_out, _picks_in),
    "Usage": (_usage_out, _usage_in),
    "ReportLine": (_line_out, _line_in),
    "tuple[ReportLine, ...]": (lambda lines: [_line_out(i) for i in lines], lambda p: tuple(map(_line_in, p))),
    "tuple[PlanItem, ...]": (_plan_out, _plan_in),
    "tuple[str, ...]": (list, _tuple_in),
    "tuple[int, ...]": (list, _tuple_in),
    "Mapping[str, int]": (dict, _mapping_in),
    "Mapping[str, str]": (dict, _mapping_in),
    "Author": _one_of(Author),
    "Origin": _one_of(Origin),
    "Outcome": _one_of(Outcome),
    "Sort": _one_of(Sort),
    "State": _one_of(State),
    "StopReason": _one_of(StopReason),
    "TallyOperation": _one_of(TallyOperation),
    "bool": (_same, _bool),
    "str": (_same, _text),
    "int": (_same, _int),
    "int | None": (_same, lambda value: None if value is None else _int(value)),
    "str | None": (_same, lambda value: None if value is None else _text(value)),
}


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    required: bool
    default: Json
    out: Callable[[Any], Json]
    back: Callable[[Json], Any]


def _plan_of(kind: type[What]) -> tuple[_Field, ...]:
    plan = []
    for item in fields(kind):
        required = item.default is MISSING and item.default_factory is MISSING
        default = item.default if item.default is not MISSING else None
        if item.default_factory is not MISSING:
            default = item.default_factory()
        out, back = _BY_TYPE.get(str(item.type), (_same, _same))
        plan.append(_Field(item.name, required, default, out, back))
    return tuple(plan)


_PLANS: Mapping[str, tuple[_Field, ...]] = {name: _plan_of(kind) for name, kind in KINDS.items()}


def to_plain(what: What) -> dict[str, Json]:
    """An entry's payload as plain JSON: fields in their declared order, defaults left out."""
    plain: dict[str, Json] = {}
    for item in _PLANS[type(what).__name__]:
        value = getattr(what, item.name)
        if item.required or value != item.default:
            plain[item.name] = item.out(value)
    return plain


def from_plain(kind: str, plain: Mapping[str, Json]) -> What:
    """The reverse of `to_plain`; raises `KeyError` or `TypeError` for what no release wrote."""
    plan = _PLANS.get(kind)
    if plan is None:
        raise TypeError(f"there is no kind {kind!r}")
    _only(plain, *(item.name for item in plan))
    values = {}
    for item in plan:
        if item.name in plain:
            values[item.name] = item.back(plain[item.name])
        elif item.required:
            raise KeyError(f"field {item.name!r} is missing")
    return KINDS[kind](**values)
