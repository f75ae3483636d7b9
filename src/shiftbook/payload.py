"""What an entry says, as plain JSON and back: fields in their declared order, defaults left out.

The table of conversions is made once from the declarations in `entries`; a field of a type that has no row
in it is passed as it is. Reading is strict: an unknown field, a missing one or a wrong type raises
`TypeError` or `KeyError`, which `codec` turns into `Damaged`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from operator import attrgetter
from typing import Any, get_args

from shiftbook.entries import (
    KINDS,
    Author,
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
from shiftbook.messages import Call, Json, Media, Missing, Part, Reasoning, StopReason, Text, Usage


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
        only(plain, "text")
        return Text(as_text(plain["text"]))
    if "call" in plain:
        only(plain, "call", "tool", "args", "raw", "vendor")
        arguments = plain.get("args")
        if arguments is not None and not isinstance(arguments, dict):
            raise TypeError("a call's arguments are not an object")
        raw = plain.get("raw")
        return Call(
            as_text(plain["call"]),
            as_text(plain["tool"]),
            arguments,
            None if raw is None else as_text(raw),
            plain.get("vendor"),
        )
    if "media" in plain:
        only(plain, "media", "type", "size", "name")
        name = plain.get("name")
        return Media(
            as_text(plain["media"]),
            as_text(plain["type"]),
            _int(plain["size"]),
            None if name is None else as_text(name),
        )
    if "missing" in plain:
        only(plain, "missing")
        return Missing(as_text(plain["missing"]))
    only(plain, "reasoning", "opaque")
    return Reasoning(as_text(plain["reasoning"]), plain.get("opaque"))


def only(plain: Mapping[str, Json], *known: str) -> None:
    unknown = set(plain) - set(known)
    if unknown:
        raise TypeError(f"unknown field {min(unknown)!r}")


def as_text(value: Json) -> str:
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
        if pick.form != "whole" or pick.keep is not None or pick.of:
            item.append(pick.form)
        if pick.keep is not None or pick.of:
            item.append(pick.keep)
        if pick.of:
            item.append(list(pick.of))
        plain.append(item)
    return plain


def _picks_in(plain: Json) -> tuple[Pick, ...]:
    picks = []
    for item in map(list, map(_items, _items(plain))):
        if len(item) not in (2, 3, 4, 5):
            raise TypeError("a pick is two positions, a form, a number and a list of positions")
        form = as_text(item[2]) if len(item) > 2 else "whole"
        keep = _int(item[3]) if len(item) > 3 and (item[3] is not None or len(item) == 4) else None
        of = tuple(map(_int, _items(item[4]))) if len(item) > 4 else ()
        picks.append(Pick(_int(item[0]), _int(item[1]), form, keep, of))
    return tuple(picks)


_USAGE = tuple(item.name for item in fields(Usage))


_usage_values = attrgetter(*_USAGE)


def _usage_out(usage: Usage) -> Json:
    return {
        name: value for name, value in zip(_USAGE, _usage_values(usage), strict=True) if value is not None
    }


def _usage_in(plain: Json) -> Usage:
    only(plain, *_USAGE)
    return Usage(**{name: _int(value) for name, value in plain.items()})


def _line_in(plain: Json) -> ReportLine:
    return ReportLine(as_text(plain["text"]), tuple(_int(cite) for cite in _items(plain["cites"])))


def _line_out(line: ReportLine) -> Json:
    return {"text": line.text, "cites": list(line.cites)}


def _plan_in(plain: Json) -> tuple[PlanItem, ...]:
    state = _one_of(PlanState)[1]
    return tuple(PlanItem(as_text(i["id"]), as_text(i["text"]), state(i["state"])) for i in _items(plain))


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
    "tuple[ReportLine, ...]": (
        lambda lines: [_line_out(i) for i in lines],
        lambda p: tuple(map(_line_in, p)),
    ),
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
    "str": (_same, as_text),
    "int": (_same, _int),
    "int | None": (_same, lambda value: None if value is None else _int(value)),
    "str | None": (_same, lambda value: None if value is None else as_text(value)),
}


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    required: bool
    default: Json
    out: Callable[[Any], Json] | None
    """None: the value is plain as it is."""
    back: Callable[[Json], Any]


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a kind is told: its fields, their names, and what reads all their values at once."""

    fields: tuple[_Field, ...]
    names: frozenset[str]
    values: Callable[[Any], tuple[Any, ...]]


def _plan_of(kind: type[What]) -> _Plan:
    plan = []
    for item in fields(kind):
        required = item.default is MISSING and item.default_factory is MISSING
        default = item.default if item.default is not MISSING else None
        if item.default_factory is not MISSING:
            default = item.default_factory()
        out, back = _BY_TYPE.get(str(item.type), (_same, _same))
        plan.append(_Field(item.name, required, default, None if out is _same else out, back))
    names = [item.name for item in plan]
    # With a name more than it needs, it gives a tuple for a kind of one field too.
    return _Plan(tuple(plan), frozenset(names), attrgetter(*names, "__class__"))


_PLANS: Mapping[str, _Plan] = {name: _plan_of(kind) for name, kind in KINDS.items()}


def to_plain(what: What) -> dict[str, Json]:
    """An entry's payload as plain JSON: fields in their declared order, defaults left out."""
    plan = _PLANS[type(what).__name__]
    plain: dict[str, Json] = {}
    for item, value in zip(plan.fields, plan.values(what), strict=False):
        if item.required or value != item.default:
            plain[item.name] = value if item.out is None else item.out(value)
    return plain


def from_plain(kind: str, plain: Mapping[str, Json]) -> What:
    """The reverse of `to_plain`; raises `KeyError` or `TypeError` for what no release wrote."""
    plan = _PLANS.get(kind)
    if plan is None:
        raise TypeError(f"there is no kind {kind!r}")
    if not plain.keys() <= plan.names:
        only(plain, *plan.names)
    values = {}
    for item in plan.fields:
        if item.name in plain:
            values[item.name] = item.back(plain[item.name])
        elif item.required:
            raise KeyError(f"field {item.name!r} is missing")
    return KINDS[kind](**values)
