"""Chat-completions messages told to a draft, for every format that holds them.

System messages at the start are recorded instructions, a later one is a notice. An assistant message is one
reply, a tool message the answer to the call that its `tool_call_id` names. The arguments' text is kept raw
beside its parse.

It refuses a `function_call`, the form before `tool_calls`: its answers name no call.
"""

from __future__ import annotations

from collections.abc import Iterator

from shiftbook.sessions.draft import Draft, OpenReply
from shiftbook.sessions.fields import Fields
from shiftbook.sessions.normal import Answer, CallPart, MissingPart, TextPart
from shiftbook.sessions.source import label, parsed_or_none


class ChatSteps:
    """The messages of one conversation, in order."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._instructions: list[str] = []
        self._begun = False

    @property
    def instructions(self) -> str | None:
        """The system messages at the start."""
        return "\n\n".join(self._instructions) if self._instructions else None

    def add(self, message: Fields, line: int, at_ms: int | None = None) -> None:
        """One message."""
        role = message.need_text("role")
        if role in ("system", "developer") and not self._begun:
            self._instructions.extend(part.text for part in content(message) if isinstance(part, TextPart))
            return
        self._begun = True
        if role in ("system", "developer"):
            self._draft.notice("system message", at_ms, line)
        elif role == "user":
            for part in content(message):
                if isinstance(part, TextPart):
                    self._draft.person(part.text, at_ms, line)
                else:
                    self._draft.notice(part.what, at_ms, line)
        elif role == "assistant":
            self._reply(message, line, at_ms)
        elif role == "tool":
            answer = Answer(at_ms=at_ms, content=tuple(content(message)), is_error=None, line=line)
            self._draft.answer(message.need_text("tool_call_id"), answer)
        else:
            raise message.place.unreadable(f'message {line} has the role "{label(role)}", which is unknown')

    def _reply(self, message: Fields, line: int, at_ms: int | None) -> None:
        if message.value.get("function_call") is not None:
            raise message.place.unreadable(
                f'message {line} has a "function_call", the form before "tool_calls"; '
                "its answers name no call"
            )
        reply = self._draft.reply(line, at_ms, None, None, line)
        for part in content(message):
            self._draft.part(reply, part)
        add_calls(self._draft, reply, message)


def add_calls(draft: Draft, reply: OpenReply, message: Fields) -> None:
    """The calls of an assistant message."""
    for call in message.objects("tool_calls"):
        function = call.need_inner("function")
        raw = function.need_text("arguments")
        parsed = parsed_or_none(raw)
        draft.part(
            reply,
            CallPart(
                id=call.need_text("id"),
                tool=function.need_text("name"),
                arguments=parsed if isinstance(parsed, dict) else None,
                raw_arguments=raw,
            ),
        )


def content(message: Fields) -> Iterator[TextPart | MissingPart]:
    """The content of a message: a text, nothing, or a list of typed parts."""
    found = message.value.get("content")
    if isinstance(found, str):
        if found:
            yield TextPart(found)
        return
    if found is not None and not isinstance(found, list):
        raise message.wrong("content", "text or a list")
    for part in message.objects("content"):
        kind = part.need_text("type")
        if kind in ("text", "input_text", "output_text", "refusal"):
            yield TextPart(part.need_text("refusal" if kind == "refusal" else "text"))
        else:
            yield MissingPart("image" if kind in ("image_url", "input_image") else label(kind))
