"""Vercel AI SDK UI messages: messages with "parts", as a list or in a chat under "messages".

They are the state of a page, not what a model was sent. A `step-start` part begins another request. Usage is
there only if the application put it into `metadata`; it is the sum over the steps of a message, cached tokens
inside. Without it every step is estimated. The older form has `toolInvocations` beside `content`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shiftbook.sessions.estimate import Estimate, told
from shiftbook.sessions.format import Format
from shiftbook.sessions.loose import inner, objects, stamp_ms, text, whole
from shiftbook.sessions.normal import RecordedUsage
from shiftbook.sessions.requests import RecordedRequests
from shiftbook.sessions.rows import RowDraft, Seen, inclusive
from shiftbook.sessions.source import Source
from shiftbook.sessions.streaming import Faults, records

NAME = "vercel-ui"

_USAGES = ("totalUsage", "usage", "tokenUsage")


def recognise(sample: Sequence[Mapping[str, object]]) -> bool:
    """A message with parts or tool invocations, or a chat of them."""
    return any(
        _is_message(record) or any(_is_message(each) for each in objects(record, "messages"))
        for record in sample
    )


def _is_message(record: Mapping[str, object]) -> bool:
    return record.get("role") in ("system", "user", "assistant") and (
        any("type" in part for part in objects(record, "parts"))
        or isinstance(record.get("toolInvocations"), list)
    )


def requests(source: Source, seen: Seen) -> Iterator[RecordedRequests]:
    """A list of messages is one session, and so is each chat."""
    faults = Faults()
    page = _Page(RowDraft(NAME, source.path, "", faults), seen)
    bare = chats = 0
    for number, record in enumerate(records(source, faults), start=1):
        if isinstance(record.value.get("messages"), list):
            chats += 1
            name = text(record.value, "id") or text(record.value, "chatId") or str(chats)
            chat = _Page(RowDraft(NAME, source.path, name, Faults()), seen)
            for line, message in enumerate(objects(record.value, "messages"), start=1):
                chat.message(message, line)
            yield chat.closed()
        else:
            bare += 1
            page.message(record.value, number)
    if bare or not chats or faults.all():
        yield page.closed()


class _Page:
    """One chat."""

    def __init__(self, draft: RowDraft, seen: Seen) -> None:
        self._draft, self._seen = draft, seen
        self._estimate = Estimate(draft)

    def message(self, message: Mapping[str, object], line: int) -> None:
        """One message of the page."""
        metadata = inner(message, "metadata")
        at_ms = stamp_ms(metadata, "createdAt") or stamp_ms(message, "createdAt")
        if message.get("role") != "assistant":
            self._estimate.heard(_shown(message))
            return
        steps = _steps(message)
        usage = next((inner(metadata, key) for key in _USAGES if inner(metadata, key)), None)
        model = text(metadata, "model") or text(metadata, "modelId")
        if usage is None:
            for step in steps:
                self._estimate.replied(
                    "\n".join(_part(part)[0] for part in step), line, at_ms=at_ms, model=model
                )
                self._estimate.heard("\n".join(_part(part)[1] for part in step))
            return
        own = text(message, "id")
        if own is not None and self._seen.again(NAME, own):
            self._draft.copy()
            return
        self._draft.row(
            usage_of(usage), line, at_ms=at_ms, model=model, request=own, requests=max(1, len(steps))
        )
        self._estimate.heard(_shown(message))

    def closed(self) -> RecordedRequests:
        """The session."""
        return self._draft.closed()


def _steps(message: Mapping[str, object]) -> list[list[Mapping[str, object]]]:
    """The parts of each request; the older form has one step a number, else one in all."""
    parts = list(objects(message, "parts"))
    if not parts:
        called = list(objects(message, "toolInvocations"))
        numbers = sorted({whole(call, "step") or 0 for call in called})
        steps = [[call for call in called if (whole(call, "step") or 0) == number] for number in numbers]
        words = {"type": "text", "text": text(message, "content") or ""}
        return [*steps, [words]] if words["text"] or not steps else steps
    steps = [[]]
    for part in parts:
        if part.get("type") == "step-start":
            if steps[-1]:
                steps.append([])
        else:
            steps[-1].append(part)
    return [step for step in steps if step]


def _part(part: Mapping[str, object]) -> tuple[str, str]:
    """What the model said in a part, and what it was told back."""
    call = inner(part, "toolInvocation") or part
    said = told({key: call[key] for key in ("text", "input", "args", "toolName") if key in call})
    if "args" in call:
        said = "\n".join(filter(None, (said, told({"arguments": call["args"]}))))
    back = told({key: call[key] for key in ("output", "result", "errorText") if key in call})
    return said, back


def _shown(message: Mapping[str, object]) -> str:
    parts = list(objects(message, "parts"))
    return "\n".join("\n".join(_part(part)) for part in parts) if parts else told(message.get("content"))


def usage_of(usage: Mapping[str, object]) -> RecordedUsage:
    """The SDK's usage in normal form, of version 5 and, by its names, of version 4."""
    prompt = whole(usage, "inputTokens") if "inputTokens" in usage else whole(usage, "promptTokens")
    output = whole(usage, "outputTokens") if "outputTokens" in usage else whole(usage, "completionTokens")
    details = inner(usage, "inputTokenDetails")
    read = whole(usage, "cachedInputTokens")
    read = whole(details, "cacheReadTokens") if read is None else read
    written = whole(details, "cacheWriteTokens")
    return inclusive(prompt, read, written, output, whole(usage, "reasoningTokens"))


FORMAT = Format(
    name=NAME,
    title="Vercel AI SDK messages",
    recognise=recognise,
    requests=requests,
)
