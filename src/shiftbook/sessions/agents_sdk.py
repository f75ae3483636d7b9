"""OpenAI Agents SDK sessions: SQLite with agent_sessions and agent_messages, items of the Responses wire.

The plain session stores no usage: its rows are estimated. The advanced one has `turn_usage`, a sum over the
requests of one turn of the person: a row says how many requests it sums, and cached tokens stand inside
`input_tokens`. Turns without such a sum are missing there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import apsw

from shiftbook.economics.usage_forms import openai_responses
from shiftbook.sessions.database import opened, rows, tables
from shiftbook.sessions.format import Format
from shiftbook.sessions.loose import stamp_ms
from shiftbook.sessions.openai_responses import ItemRows
from shiftbook.sessions.requests import RecordedRequests
from shiftbook.sessions.rows import RowDraft, Seen, recorded
from shiftbook.sessions.source import Source
from shiftbook.sessions.streaming import Faults, parsed

NAME = "openai-agents"

_COLUMNS = {"id", "session_id", "message_data"}


def recognise(sample: Sequence[Mapping[str, object]]) -> bool:
    """The table of messages with its columns, beside that of sessions."""
    return any("agent_sessions" in names and _has_messages(names) for names in sample)


def _has_messages(names: Mapping[str, object]) -> bool:
    columns = names.get("agent_messages")
    return isinstance(columns, list) and set(columns) >= _COLUMNS


def requests(source: Source, seen: Seen) -> Iterator[RecordedRequests]:
    """One session a session id, in the order of their first message."""
    known = tables(source)
    with opened(source) as connection:
        found = rows(connection, "SELECT session_id FROM agent_messages GROUP BY session_id ORDER BY min(id)")
        for (session,) in list(found):
            draft = RowDraft(NAME, source.path, str(session), Faults())
            if "turn_usage" not in known or not _turns(connection, session, draft):
                _items(connection, session, draft, "created_at" in known["agent_messages"])
            yield draft.closed()


def _turns(connection: apsw.Connection, session: object, draft: RowDraft) -> bool:
    """The rows of turn_usage; False when the session has none."""
    any_turn = False
    query = (
        "SELECT branch_id, user_turn_number, requests, input_tokens, output_tokens, input_tokens_details,"
        " output_tokens_details, created_at FROM turn_usage WHERE session_id = ? ORDER BY id"
    )
    for branch, turn, count, read, written, read_details, written_details, at in rows(
        connection, query, (session,)
    ):
        any_turn = True
        payload = {
            "input_tokens": read,
            "output_tokens": written,
            "input_tokens_details": _object(read_details),
            "output_tokens_details": _object(written_details),
        }
        usage = openai_responses(payload)
        draft.row(
            recorded(usage, undivided=usage.prompt),
            turn if isinstance(turn, int) and turn > 0 else 0,
            at_ms=stamp_ms({"at": at}, "at"),
            branch="" if branch == "main" else str(branch),
            requests=count if isinstance(count, int) and count > 0 else 1,
        )
    return any_turn


def _object(value: object) -> object:
    try:
        found = json.loads(value) if isinstance(value, (str, bytes)) else None
    except (ValueError, RecursionError):
        return {}
    # The SDK writes a list of one request's details, or one object.
    return found[0] if isinstance(found, list) and len(found) == 1 else found


def _items(connection: apsw.Connection, session: object, draft: RowDraft, stamped: bool) -> None:
    items = ItemRows(draft)
    query = (
        f"SELECT CAST(message_data AS BLOB), {'created_at' if stamped else 'NULL'} FROM agent_messages"
        " WHERE session_id = ? ORDER BY id"
    )
    for line, (data, at) in enumerate(rows(connection, query, (session,)), start=1):
        raw = data if isinstance(data, bytes) else str(data).encode("utf-8", "surrogatepass")
        item = parsed(raw, line, draft.faults)
        if item is not None:
            items.add(item, line, stamp_ms({"at": at}, "at"), None)
    items.ended()


FORMAT = Format(
    name=NAME,
    title="an OpenAI Agents SDK database",
    recognise=recognise,
    requests=requests,
    container="sqlite",
)
