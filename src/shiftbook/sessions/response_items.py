"""What the items of OpenAI's Responses wire are, for every format that holds them.

A reply is a run of items by the model (message of the assistant, reasoning, calls); it ends where something
is said to the model again, or where the format says that a request ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shiftbook.sessions.draft import Draft, OpenReply
from shiftbook.sessions.fields import Fields
from shiftbook.sessions.normal import Answer, CallPart, MissingPart, TextPart
from shiftbook.sessions.source import kind_of, label, parsed_or_none

CALLS = ("function_call", "custom_tool_call", "local_shell_call", "computer_call", "mcp_call")
ANSWERS = (
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
    "computer_call_output",
)
COMPACTIONS = ("compaction", "compaction_summary", "context_compaction")

_OURS = ("user", "developer", "system")


def is_item(value: Mapping[str, object]) -> bool:
    """Whether this is an item and no other vendor's message."""
    kind = value.get("type")
    if kind == "message":
        return value.get("role") in (*_OURS, "assistant") and "usage" not in value
    if kind in (*CALLS, *ANSWERS):
        return "call_id" in value or "id" in value
    return kind == "reasoning" and ("summary" in value or "encrypted_content" in value)


def by_model(item: Mapping[str, object]) -> bool:
    """Whether the model made this item; a bare message has no type, only a role."""
    kind = item.get("type")
    if kind in (None, "message"):
        return item.get("role") == "assistant"
    return kind not in ANSWERS and kind not in COMPACTIONS


class ItemSteps:
    """The items of one conversation, in order; `person` says of a user's text what it is, if no person's."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._instructions: list[str] = []
        self._reply: OpenReply | None = None
        self._begun = False

    @property
    def instructions(self) -> str | None:
        """The system and developer messages at the start."""
        return "\n\n".join(self._instructions) if self._instructions else None

    def request_ended(self) -> None:
        """What the model says next belongs to another reply."""
        self._reply = None

    def add(
        self,
        item: Fields,
        line: int,
        at_ms: int | None = None,
        model: str | None = None,
        no_person: str | None = None,
    ) -> None:
        """One item. `no_person` names what a user message is that no person said."""
        kind = item.text("type") or "message"
        if kind == "message" and item.text("role") in _OURS:
            self._reply = None
            self._said(item, line, at_ms, no_person)
        elif kind in ANSWERS:
            self._reply = None
            call = item.text("call_id") or item.need_text("id")
            self._draft.answer(call, Answer(at_ms, tuple(_output(item)), None, line))
        elif kind in COMPACTIONS:
            self._reply = None
            self._draft.notice("compaction", at_ms, line)
        else:
            self._begun = True
            if self._reply is None:
                self._reply = self._draft.reply(line, at_ms, model, item.text("id"), line)
            for part in _parts(item, kind):
                self._draft.part(self._reply, part)

    def _said(self, item: Fields, line: int, at_ms: int | None, no_person: str | None) -> None:
        texts = list(_content(item, "content"))
        if item.text("role") in ("system", "developer"):
            if self._begun:
                self._draft.notice("system message", at_ms, line)
            else:
                self._instructions.extend(part.text for part in texts if isinstance(part, TextPart))
            return
        for part in texts:
            if no_person is not None:
                self._draft.notice(no_person, at_ms, line)
            elif isinstance(part, TextPart):
                self._begun = True
                self._draft.person(part.text, at_ms, line)
            else:
                self._draft.notice(part.what, at_ms, line)


def _parts(item: Fields, kind: str) -> Iterator[TextPart | CallPart | MissingPart]:
    if kind == "message":
        yield from _content(item, "content")
    elif kind == "function_call":
        yield _call(item, item.need_text("name"), item.need_text("arguments"))
    elif kind == "custom_tool_call":
        yield CallPart(
            id=item.text("call_id") or item.need_text("id"),
            tool=item.need_text("name"),
            arguments={"input": item.need_text("input")},
        )
    elif kind == "local_shell_call":
        yield CallPart(
            id=item.text("call_id") or item.need_text("id"),
            tool="local_shell",
            arguments=item.need_inner("action").value,
        )
    else:
        yield MissingPart(label(kind))


def _call(item: Fields, tool: str, raw: str) -> CallPart:
    parsed = parsed_or_none(raw)
    return CallPart(
        id=item.text("call_id") or item.need_text("id"),
        tool=tool,
        arguments=parsed if isinstance(parsed, dict) else None,
        raw_arguments=raw,
    )


def _content(item: Fields, key: str) -> Iterator[TextPart | MissingPart]:
    found = item.value.get(key)
    if isinstance(found, str):
        if found:
            yield TextPart(found)
        return
    if found is not None and not isinstance(found, list):
        raise item.wrong(key, "text or a list")
    for part in item.objects(key):
        kind = part.need_text("type")
        if kind in ("input_text", "output_text", "text"):
            yield TextPart(part.need_text("text"))
        elif kind == "refusal":
            yield TextPart(part.need_text("refusal"))
        else:
            yield MissingPart("image" if kind == "input_image" else label(kind))


def _output(item: Fields) -> Iterator[TextPart | MissingPart]:
    found = item.value.get("output")
    if isinstance(found, dict):
        # Older Codex files wrap the text of a result.
        inner = Fields(item.place, found, f"{item.name}output.")
        yield from _content(inner, "content")
    elif found is None or isinstance(found, (str, list)):
        yield from _content(item, "output")
    else:
        yield MissingPart(kind_of(found))
