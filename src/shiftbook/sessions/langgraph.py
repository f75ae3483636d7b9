"""LangGraph checkpoints in SQLite: one session a thread, one row an answer of a model, by message id.

Checkpoints are MessagePack or JSON that names classes to be built. Here they are read as data: of a message
the fields are taken and nothing is imported, built or run; a pickle is never opened. What is of an unknown
extension type is passed over and named. Each checkpoint repeats the state before it, so a message counts
once by its id. A namespace (a sub-graph) is a branch. LangChain's `usage_metadata` counts cached tokens
inside `input_tokens`; writes by their life stand in fields of their own, and then `cache_creation` is 0. A
message without usage is a request whose usage is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import apsw

from shiftbook.sessions.database import Row, opened, rows, tables
from shiftbook.sessions.format import Format
from shiftbook.sessions.loose import inner, stamp_ms, text, whole
from shiftbook.sessions.message_pack import Extension, NotMessagePack, unpacked
from shiftbook.sessions.normal import RecordedUsage
from shiftbook.sessions.requests import RecordedRequests
from shiftbook.sessions.rows import MISSING, RowDraft, Seen, inclusive
from shiftbook.sessions.source import Source
from shiftbook.sessions.streaming import Faults

NAME = "langgraph"

_BUILT = range(6)
"""Extension types that hold [module, class, fields, ...]; the fields are what is read."""
_WRAPPED = 7
"""The extension that holds the value of a channel kept as differences, and nothing else."""
_MADE_IDS = ("run-", "lc_run-", "msg_", "chatcmpl-", "resp_")
"""How the framework's and vendors' own ids open: the same one in another thread is a fork's copy."""
_DEPTH_MAX = 50


def recognise(sample: Sequence[Mapping[str, object]]) -> bool:
    """The table of checkpoints with its columns."""
    return any(
        isinstance(columns, list) and {"thread_id", "checkpoint_id", "type", "checkpoint"} <= set(columns)
        for columns in (names.get("checkpoints") for names in sample)
    )


def requests(source: Source, seen: Seen) -> Iterator[RecordedRequests]:
    """One session a thread, in the order of their ids."""
    known = tables(source)
    space = "checkpoint_ns" if "checkpoint_ns" in known["checkpoints"] else "''"
    with opened(source) as connection:
        threads = list(rows(connection, "SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id"))
        for (thread,) in threads:
            reader = _Thread(RowDraft(NAME, source.path, str(thread), Faults()), seen)
            reader.states(
                rows(
                    connection,
                    f"SELECT {space}, type, checkpoint FROM checkpoints"
                    " WHERE thread_id = ? ORDER BY checkpoint_id",
                    (thread,),
                )
            )
            if {"channel", "type", "value"} <= set(known.get("writes", ())):
                reader.writes(connection, thread, space)
            yield reader.closed()


class _Thread:
    """One thread: its messages, each once."""

    def __init__(self, draft: RowDraft, seen: Seen) -> None:
        self._draft, self._seen = draft, seen
        self._met: set[str] = set()
        self._passed: dict[str, int] = {}
        self._at_ms: int | None = None

    def states(self, found: Iterator[Row]) -> None:
        """The checkpoints in order."""
        for number, (space, kind, blob) in enumerate(found, start=1):
            state = self._plain(kind, blob, number)
            if not isinstance(state, dict):
                continue
            at_ms = stamp_ms(state, "ts")
            self._at_ms = at_ms if at_ms is not None else self._at_ms
            for channel in inner(state, "channel_values").values():
                self._messages(channel, str(space or ""), number)

    def writes(self, connection: apsw.Connection, thread: object, space: str) -> None:
        """What was written after the last checkpoint, where the process was cut off."""
        query = f"SELECT {space}, type, value FROM writes WHERE thread_id = ? ORDER BY checkpoint_id, rowid"
        for space_of, kind, blob in rows(connection, query, (thread,)):
            self._messages(self._plain(kind, blob, 0), str(space_of or ""), 0)

    def _plain(self, kind: object, blob: object, number: int) -> object:
        raw = blob.encode("utf-8", "surrogatepass") if isinstance(blob, str) else blob
        if not isinstance(raw, bytes) or kind == "null":
            return None
        try:
            if kind == "msgpack":
                return self._data(unpacked(raw), 0)
            if kind == "json" or (kind is None and raw[:1] == b"{"):
                return self._data(json.loads(raw), 0)
        except NotMessagePack as problem:
            self._draft.faults.add(number, f"is no MessagePack: {problem}")
            return None
        except (ValueError, RecursionError):
            self._draft.faults.add(number, "is not JSON")
            return None
        self._name(f"a value of the type {str(kind)[:20]!r}")
        return None

    def _data(self, value: object, depth: int) -> object:
        """Extensions and constructors as the fields that they hold."""
        if depth > _DEPTH_MAX:
            return None
        if isinstance(value, Extension):
            if value.kind not in (*_BUILT, _WRAPPED):
                self._name(f"an extension of the type {value.kind}")
                return None
            try:
                held = unpacked(value.data)
            except NotMessagePack:
                self._name("a broken extension")
                return None
            if value.kind in _BUILT:
                held = held[2] if isinstance(held, list) and len(held) > 2 else None
            return self._data(held, depth + 1)
        if isinstance(value, list):
            return [self._data(each, depth + 1) for each in value]
        if not isinstance(value, dict):
            return value
        if value.get("type") == "constructor" and "lc" in value:
            fields = value.get("kwargs") or value.get("args")
            plain = self._data(fields, depth + 1)
            names = value.get("id")
            if isinstance(plain, dict) and isinstance(names, list) and "type" not in plain:
                plain["type"] = "ai" if str(names[-1:]).find("AIMessage") >= 0 else None
            return plain
        return {str(key): self._data(each, depth + 1) for key, each in value.items()}

    def _name(self, what: str) -> None:
        self._passed[what] = self._passed.get(what, 0) + 1

    def _messages(self, value: object, space: str, number: int) -> None:
        found = value if isinstance(value, list) else [value]
        for message in found:
            if isinstance(message, dict) and message.get("type") in ("ai", "AIMessage", "AIMessageChunk"):
                self._message(message, space, number)

    def _message(self, message: Mapping[str, object], space: str, number: int) -> None:
        told = inner(message, "response_metadata")
        usage = inner(message, "usage_metadata")
        own = text(message, "id") or f"{space} {number} {text(message, 'content')}"
        if own in self._met:
            return
        self._met.add(own)
        request = text(message, "id")
        made = request is not None and request.startswith(_MADE_IDS)
        if request is not None and made and self._seen.again(NAME, request):
            self._draft.copy()
            return
        self._draft.row(
            usage_of(usage) if usage else MISSING,
            number,
            at_ms=self._at_ms,
            model=text(told, "model_name") or text(told, "model"),
            request=request,
            branch=space,
            kind="subagent" if space else "main",
        )

    def closed(self) -> RecordedRequests:
        """The session; what was passed over is named."""
        for what, times in self._passed.items():
            self._draft.faults.add(0, f"{what} was passed over" + (f" {times:,} times" if times > 1 else ""))
        return self._draft.closed()


def usage_of(usage: Mapping[str, object]) -> RecordedUsage:
    """LangChain's usage in normal form."""
    details = inner(usage, "input_token_details")
    five, hour = whole(details, "ephemeral_5m_input_tokens"), whole(details, "ephemeral_1h_input_tokens")
    given, split = whole(details, "cache_creation"), (five or 0) + (hour or 0)
    written = split if split > (given or 0) else given
    found = inclusive(
        whole(usage, "input_tokens"),
        whole(details, "cache_read"),
        written,
        whole(usage, "output_tokens"),
        whole(inner(usage, "output_token_details"), "reasoning"),
    )
    if five is None or hour is None or split != found.cache_write:
        return found
    return replace(found, cache_write_5m=five, cache_write_1h=hour)


FORMAT = Format(
    name=NAME,
    title="a LangGraph checkpoint database",
    recognise=recognise,
    requests=requests,
    container="sqlite",
)
