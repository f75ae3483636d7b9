"""Book tools: how a model writes into its run's book and reads in it, without an effect outside.

    note, decide     a fact or a decision under a key, standing until superseded
    plan             the plan, whole or item by item
    tally            an exact running number, by key and place
    recall           older entries about something, word for word
    read_entry       one entry, or a slice of it: what every handle in a prompt resolves through

A model sees them as tools. The engine keeps them itself: a call needs no announcement, since what it writes
and its answer are committed together, and one that a crash cut off is simply made again. This module holds
what a model is told of them and how its arguments become entries; it is pure and writes nothing.

Refused, with a sentence for the model: what does not fit, an amount that is not exact. A rule cannot be set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shiftbook import canonical
from shiftbook.entries import PlanChanged, PlanItem, Sort, StatementMade, TallyChanged
from shiftbook.errors import AgentMistake, NotCanonical
from shiftbook.messages import Json, ToolSchema
from shiftbook.projections.keys import key_fault
from shiftbook.projections.knowledge import Knowledge, plan_items
from shiftbook.projections.pending import unknown_at
from shiftbook.projections.plan import ITEM_CHARS_MAX, PLAN_ITEMS_MAX, changed_plan, plan_state
from shiftbook.projections.statements import standing_at
from shiftbook.projections.tallies import read_amount
from shiftbook.tools.contract import BadArguments, Context, Output, Reconciled, Repeat

VALUE_CHARS_MAX = 4_000
"""Characters of a statement's value as canonical text: it stands in prompts for as long as the run lives."""

QUERY_CHARS_MAX = 1_000
READ_CHARS_MAX = 20_000
"""Characters of an entry that one `read_entry` gives, unless it asks for fewer."""

RECALL_MAX = 8
"""Entries that one `recall` brings back, unless it asks for fewer."""

RECALL_CHARS_MAX = 12_000
"""Characters of all the entries that one `recall` brings back; the big ones are cut to an equal height."""


@dataclass(frozen=True, slots=True)
class BookTool:
    """One of the tools that the engine keeps itself. `run` and `ask` are never called."""

    schema: ToolSchema
    is_book: bool = True
    repeat: Repeat = "safe"
    timeout_ms: int | None = None
    attempts: int = 1
    ends_when_cancelled: bool = True

    @property
    def name(self) -> str:
        """The name that a model calls it by."""
        return self.schema.name

    async def run(self, arguments: Mapping[str, Json], context: Context) -> Output:
        """Never called: the engine keeps this tool."""
        raise AgentMistake(f"The book tool {self.name!r} is kept by the engine and cannot be run by itself.")

    async def ask(self, arguments: Mapping[str, Json], context: Context) -> Reconciled:
        """Never called: nothing of it can be cut off."""
        raise AgentMistake(f"The book tool {self.name!r} is kept by the engine and cannot be asked.")


def _schema(name: str, description: str, required: Sequence[str], **properties: Json) -> ToolSchema:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolSchema(name, description, parameters)


_KEY = {"type": "string", "description": "A short name; the same key again replaces what stands under it."}
_ABOUT = {"type": "string", "description": "The time, place or thing that it is about, if that is not said."}
_WHOLE = {"type": "integer", "minimum": 1}
_ITEM = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "A short id; the item's number if left out."},
        "text": {"type": "string"},
        "state": {"type": "string", "enum": ["open", "doing", "done", "dropped"]},
    },
    "additionalProperties": False,
}

BOOK_TOOLS: Mapping[str, BookTool] = {
    schema.name: BookTool(schema)
    for schema in (
        _schema(
            "note",
            "Put a fact on record, so that it is still before you when this conversation has been shortened.",
            ("key", "value"),
            key=_KEY,
            value={"description": "The fact: a text, a number, or a small object. Amounts as text."},
            about=_ABOUT,
            settles=_WHOLE
            | {
                "description": "The entry that says that a call's outcome is unknown, once the fact tells it."
            },
        ),
        _schema(
            "decide",
            "Put a decision on record, so that it is kept to and not taken twice.",
            ("key", "decision"),
            key=_KEY,
            decision={"type": "string", "description": "What is decided, and why in a few words."},
            about=_ABOUT,
        ),
        _schema(
            "plan",
            "Write down the plan: all items, or with change=true only those that are new or different.",
            ("items",),
            items={"type": "array", "items": _ITEM},
            change={"type": "boolean", "description": "Change the named items and leave the others."},
        ),
        _schema(
            "tally",
            "Keep an exact running number: set it, or add to it (a negative amount takes away).",
            ("key", "operation", "amount"),
            key={"type": "string", "description": "What is counted."},
            operation={"type": "string", "enum": ["set", "add"]},
            amount={
                "type": ["integer", "string"],
                "description": 'A whole number, or a decimal as text, as in "12.50".',
            },
            place={"type": "string", "description": "Where it is counted, if at several places."},
        ),
        _schema(
            "recall",
            "Look for older entries of this run, for what is not shown any more. Gives them word for word.",
            ("query",),
            query={"type": "string", "description": "The words that they hold, or what they are about."},
            limit=_WHOLE | {"maximum": RECALL_MAX},
        ),
        _schema(
            "read_entry",
            "Read one entry of this run by its number, whole or in part.",
            ("position",),
            position=_WHOLE,
            from_char={"type": "integer", "minimum": 0},
            chars=_WHOLE | {"maximum": READ_CHARS_MAX},
        ),
    )
}
"""Every book tool by its name."""


def book_tools_named(wanted: bool | Sequence[str] | None, policy: str) -> tuple[BookTool, ...]:
    """The book tools that an agent has: all, none, those of these names; None leaves it to the policy.

    Raises `AgentMistake` for a name that there is not.
    """
    if wanted is None:
        wanted = policy == "journal"
    if isinstance(wanted, bool):
        return tuple(BOOK_TOOLS.values()) if wanted else ()
    names = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    for name in names:
        if name not in BOOK_TOOLS:
            raise AgentMistake(f"There is no book tool {name!r}; choose from: {', '.join(BOOK_TOOLS)}.")
    return tuple(tool for name, tool in BOOK_TOOLS.items() if name in names)


# --- what a call comes to --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Search:
    """Bring back at most `limit` entries about `query`."""

    query: str
    limit: int


@dataclass(frozen=True, slots=True)
class Slice:
    """Read `chars` characters of an entry from `from_char` on."""

    position: int
    from_char: int
    chars: int


Kept = StatementMade | PlanChanged | TallyChanged | Search | Slice


def kept_by(tool: str, arguments: Mapping[str, Json], known: Knowledge, source: int) -> Kept:
    """What a call of a book tool comes to; `source` is the entry of the reply that made it.

    Raises `BadArguments` with a sentence for the model.
    """
    given = _Given(tool, arguments)
    match tool:
        case "note":
            return _stated(given, "fact", given.value("value"), known, source, *_settled(given, known))
        case "decide":
            return _stated(given, "decision", given.text("decision", VALUE_CHARS_MAX), known, source)
        case "plan":
            return PlanChanged(_plan(given, known), "model", (source,))
        case "tally":
            return _tallied(given, source)
        case "recall":
            return Search(
                given.text("query", QUERY_CHARS_MAX), given.whole("limit", 1, RECALL_MAX, RECALL_MAX)
            )
        case "read_entry":
            return Slice(
                given.whole("position", 1, None),
                given.whole("from_char", 0, None, 0),
                given.whole("chars", 1, READ_CHARS_MAX, READ_CHARS_MAX),
            )
    raise BadArguments(f"there is no book tool {tool!r}")


def value_fault(value: Json) -> str | None:
    """Why this cannot be a statement's value, as part of a sentence; None when it can."""
    try:
        length = len(canonical.encode(value))
    except NotCanonical as fault:
        return f"cannot be written down ({fault})"
    if length > VALUE_CHARS_MAX:
        return f"has {length} characters; at most {VALUE_CHARS_MAX}: name the entry that holds it instead"
    return None


class _Given:
    """The arguments of one call, read strictly."""

    def __init__(self, tool: str, arguments: Mapping[str, Json]) -> None:
        self._arguments = arguments
        known = BOOK_TOOLS[tool].schema.parameters["properties"] if tool in BOOK_TOOLS else {}
        for name in arguments:
            if name not in known:
                raise BadArguments(f"{name!r} is not known; {tool} takes {', '.join(known)}")

    def value(self, name: str) -> Json:
        if name not in self._arguments:
            raise BadArguments(f"{name!r} is missing")
        fault = value_fault(self._arguments[name])
        if fault is not None:
            raise BadArguments(f"{name!r} {fault}")
        return self._arguments[name]

    def text(self, name: str, chars_max: int) -> str:
        text = self._arguments.get(name)
        if not isinstance(text, str) or not text.strip():
            raise BadArguments(f"{name!r} has to be a text")
        if len(text) > chars_max:
            raise BadArguments(f"{name!r} has {len(text)} characters; at most {chars_max}")
        return text

    def key(self, name: str, *, needed: bool = True) -> str | None:
        key = self._arguments.get(name)
        if key is None and not needed:
            return None
        fault = key_fault(key, repr(name))
        if fault is not None:
            raise BadArguments(fault)
        return str(key)

    def whole(self, name: str, least: int, most: int | None, default: int | None = None) -> int:
        number = self._arguments.get(name)
        if number is None and default is not None:
            return default
        if type(number) is not int:
            raise BadArguments(f"{name!r} has to be a whole number")
        if number < least or (most is not None and number > most):
            raise BadArguments(
                f"{name!r} is {number}; it has to be at least {least}" + (f", at most {most}" if most else "")
            )
        return number

    def raw(self, name: str) -> Json:
        return self._arguments.get(name)


def _settled(given: _Given, known: Knowledge) -> tuple[int, ...]:
    """The entry of the unknown outcome that a fact tells; none where it tells none."""
    if given.raw("settles") is None:
        return ()
    position = given.whole("settles", 1, None)
    unknown = unknown_at(known.pending)
    if position not in unknown:
        open_at = ", ".join(map(str, unknown)) or "none"
        raise BadArguments(f"entry {position} is no open call of unknown outcome; those are: {open_at}")
    return (position,)


def _stated(given: _Given, sort: Sort, value: Json, known: Knowledge, *sources: int) -> StatementMade:
    key = given.key("key") or ""
    about = given.key("about", needed=False)
    return StatementMade(key, value, sort, "model", sources, about, standing_at(known.statements, key))


def _tallied(given: _Given, source: int) -> TallyChanged:
    key, place = given.key("key") or "", given.key("place", needed=False) or ""
    operation = given.raw("operation")
    if operation not in ("set", "add"):
        raise BadArguments('\'operation\' has to be "set" or "add"')
    try:
        amount = read_amount(given.raw("amount"))
    except ValueError as fault:
        raise BadArguments(f"the amount {fault}") from None
    return TallyChanged(key, operation, amount, "model", place, (source,))


def _plan(given: _Given, known: Knowledge) -> tuple[PlanItem, ...]:
    listed, change = given.raw("items"), given.raw("change")
    if not isinstance(listed, list):
        raise BadArguments("'items' has to be a list")
    if change not in (None, True, False):
        raise BadArguments("'change' has to be true or false")
    before = plan_items(known) if change else ()
    known_ids = {item.id for item in before}
    items = [_item(each, number, known_ids) for number, each in enumerate(listed, 1)]
    ids = [item.id for item in items]
    if len(set(ids)) != len(ids):
        raise BadArguments("two items have the same id")
    plan = changed_plan(before, items)
    if len(plan) > PLAN_ITEMS_MAX:
        raise BadArguments(f"the plan has {len(plan)} items; at most {PLAN_ITEMS_MAX}")
    return plan


def _item(each: Json, number: int, known_ids: set[str]) -> PlanItem:
    if not isinstance(each, Mapping) or not set(each) <= {"id", "text", "state"}:
        raise BadArguments(f"item {number} has to be an object of id, text and state")
    name = each.get("id", str(number))
    name = str(name) if type(name) is int else name
    fault = key_fault(name, f"the id of item {number}")
    if fault is not None:
        raise BadArguments(fault)
    state, text = plan_state(each.get("state", "open")), each.get("text", "")
    if state is None:
        raise BadArguments(f"the state of item {number} has to be open, doing, done or dropped")
    if not isinstance(text, str) or len(text) > ITEM_CHARS_MAX or not (text.strip() or name in known_ids):
        raise BadArguments(f"item {number} needs a text of at most {ITEM_CHARS_MAX} characters")
    return PlanItem(name, text, state)
