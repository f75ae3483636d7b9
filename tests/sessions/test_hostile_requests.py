"""Whatever the bytes, reading rows ends in rows or in SessionUnreadable, and no count is below zero."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shiftbook.errors import SessionUnreadable
from shiftbook.sessions import FORMATS, RecordedRequests, claude_requests, requests_of
from shiftbook.sessions.message_pack import NotMessagePack, unpacked
from shiftbook.sessions.rows import Seen
from shiftbook.sessions.source import Source
from tests.sessions import foreign
from tests.sessions.foreign import REQUESTS
from tests.sessions.test_hostile import swapped, values

TEXTS = sorted(path for path in REQUESTS.rglob("*.*") if path.suffix in (".json", ".jsonl", ".traj"))
COUNTS = ("uncached", "cache_read", "cache_write", "output", "reasoning", "undivided")


def read(path: Path) -> list[RecordedRequests]:
    """What is read; of a file of records every format's reader is tried, whether it recognises it or not."""
    source = Source(path)
    tries = [partial(requests_of, path)]
    if source.container == "records":
        records = [known.requests for known in FORMATS if known.container == "records" and known.requests]
        tries += [partial(reader, source, Seen()) for reader in records]
    found: list[RecordedRequests] = []
    for attempt in tries:
        refused = ""
        try:
            found += attempt()
        except SessionUnreadable as said:
            refused = str(said)
        assert "\n" not in refused
    return found


def check(found: list[RecordedRequests]) -> None:
    for session in found:
        stamps = [row.at_ms for row in session.rows if row.at_ms is not None]
        assert stamps == sorted(stamps)
        for row in session.rows:
            counts = [getattr(row.usage, name) for name in COUNTS]
            assert all(count is None or count >= 0 for count in counts)
            assert row.requests >= 1
            assert (row.source == "missing") == all(count is None for count in counts)


def of_bytes(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        check(read(Path(file.name)))


@settings(max_examples=200, deadline=None)
@given(
    path=st.sampled_from(TEXTS),
    line=st.integers(0, 40),
    way=st.lists(st.integers(0, 9), max_size=9),
    new=values | st.just("12") | st.just(-3) | st.just(10**400),
    remove=st.booleans(),
)
def test_any_field_may_be_anything(path: Path, line: int, way: list[int], new: object, remove: bool) -> None:
    data = path.read_bytes()
    lines = data.splitlines(keepends=True) if path.suffix == ".jsonl" else [data]
    at = line % len(lines)
    with suppress(ValueError):
        lines[at] = json.dumps(swapped(json.loads(lines[at]), way, new, remove)).encode() + b"\n"
    of_bytes(b"".join(lines))


@settings(max_examples=150, deadline=None)
@given(
    path=st.sampled_from(TEXTS),
    edits=st.lists(
        st.tuples(st.integers(0, 9000), st.binary(max_size=3), st.integers(0, 60)), min_size=1, max_size=4
    ),
)
@example(path=REQUESTS / "openhands_events.jsonl", edits=[(2575, b"", 59)])
def test_any_bytes_may_be_cut_or_put_in(path: Path, edits: list[tuple[int, bytes, int]]) -> None:
    data = path.read_bytes()
    for start, put, cut in edits:
        at = start % (len(data) + 1)
        data = data[:at] + put + data[at + cut :]
    of_bytes(data)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(["agents", "graph", "eval", "packed"]),
    edits=st.lists(st.tuples(st.integers(0, 60_000), st.binary(min_size=1, max_size=4)), max_size=6),
)
def test_any_bytes_of_a_database_or_archive_may_be_spoilt(kind: str, edits: list[tuple[int, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / kind
        if kind == "agents":
            foreign.database(path, (REQUESTS / "agents_sdk.sql").read_text())
        elif kind == "graph":
            foreign.checkpoints(path)
        elif kind == "packed":
            foreign.zstandard_archive(path)
        else:
            foreign.eval_archive(path)
        data = bytearray(path.read_bytes())
        for start, put in edits:
            at = start % len(data)
            data[at : at + len(put)] = put
        path.write_bytes(data)
        check(read(path))


@given(data=st.binary(max_size=60))
def test_any_bytes_are_message_pack_or_refused(data: bytes) -> None:
    with suppress(NotMessagePack):
        unpacked(data)


packable = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(max_size=40)
    | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(value=packable)
def test_message_pack_gives_back_what_was_packed(value: object) -> None:
    assert unpacked(foreign.packed(value)) == value


def test_a_checkpoint_that_names_code_runs_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every way in which a checkpoint names code names a module that leaves a mark when it is imported."""
    mark = tmp_path / "was-run"
    spring = f"open({str(mark)!r}, 'w').close()"
    (tmp_path / "sprung.py").write_text(f"def trap(*told, **named):\n    {spring}\n\n\n{spring}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    named = ["sprung", "trap", {"type": "ai", "id": "run-x", "content": "x"}, "trap"]
    values = [{"$ext": kind, "of": named} for kind in range(9)]
    values += [{"lc": 2, "type": "constructor", "id": ["sprung", "trap"], "kwargs": {"content": "x"}}]
    rows = [
        {
            "thread": "t",
            "space": "",
            "id": "1",
            "type": "msgpack",
            "value": {"channel_values": {"messages": values}},
        },
        {
            "thread": "t",
            "space": "",
            "id": "2",
            "type": "json",
            "value": {"channel_values": {"messages": values[9:]}},
        },
        {"thread": "t", "space": "", "id": "3", "type": "pickle", "value": "csprung\ntrap\n(tR."},
    ]
    described = tmp_path / "described.json"
    described.write_text(json.dumps({"checkpoints": rows, "writes": rows}))
    database = foreign.checkpoints(tmp_path / "graph", described)
    connection = apsw.Connection(str(database))
    for table, column in (("checkpoints", "checkpoint"), ("writes", "value")):
        connection.execute(
            f"UPDATE {table} SET {column} = ? WHERE type = 'pickle'", (b"csprung\ntrap\n(tR.",)
        )
    connection.close()
    (found,) = requests_of(database)
    assert [row.request for row in found.rows] == ["run-x"]
    assert "a value of the type 'pickle' was passed over 2 times" in [fault.what for fault in found.broken]
    assert not mark.exists()


uuids = st.sampled_from([f"n{number}" for number in range(8)])
words = st.sampled_from(['say "uuid":"n1" twice', "usage", "compact", "a\nb", "\u2028", 'back\\slash"', "}{"])


@st.composite
def claude_lines(draw: st.DrawFn) -> bytes:
    """Lines as Claude Code writes them, linked anyhow."""
    lines: list[dict[str, object]] = []
    for number in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(["user", "user", "assistant", "system", "file-history-snapshot"]))
        if kind == "file-history-snapshot":
            lines.append({"type": kind, "messageId": draw(uuids), "snapshot": {"kept": draw(words)}})
            continue
        side = draw(st.booleans())
        line: dict[str, object] = {
            "parentUuid": draw(uuids | st.none()),
            "isSidechain": side,
            "sessionId": "s",
        }
        if side and draw(st.booleans()):
            line["agentId"] = draw(st.sampled_from(["a1", "a2"]))
        line["type"] = kind
        content: list[object] = [
            {"type": "text", "text": draw(words) + draw(st.sampled_from(["", "x" * 1_600]))}
        ]
        message: dict[str, object] = {"role": kind, "content": content}
        if kind == "assistant":
            request = draw(st.sampled_from(["r1", "r2", "r3", "r4", "r5"]))
            known = {"model": "m", "id": f"msg_{request}"}
            usage: dict[str, object] = {"stop_reason": None, "usage": {"input_tokens": number, "more": {}}}
            first = draw(st.booleans())
            message = {**known, **message, **usage} if first else {**message, **known, **usage}
            if draw(st.booleans()):
                message["context_management"] = None
            if draw(st.booleans()):
                line["requestId"] = request
        line["message"] = message
        line["uuid"] = draw(uuids)
        line["timestamp"] = f"2026-05-01T09:{draw(st.integers(0, 59)):02d}:00Z"
        if draw(st.booleans()):
            line["toolUseResult"] = draw(
                st.just({"content": "x"}) | st.just({"uuid": "n3", "usage": {"input_tokens": 1}})
            )
        lines.append(line)
    return b"".join(
        json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for line in lines
    )


@settings(max_examples=300, deadline=None)
@given(data=claude_lines())
def test_the_quick_way_gives_the_rows_of_the_slow_one(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        source = Source(file.name)
        assert list(claude_requests.requests(source, Seen())) == list(
            claude_requests.requests(source, Seen(), quick=False)
        )


def test_a_view_or_a_virtual_table_is_no_table(tmp_path: Path) -> None:
    endless = (
        "CREATE TABLE agent_sessions (session_id TEXT);"
        "CREATE VIEW agent_messages AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)"
        " SELECT id, 'x' AS session_id, '{}' AS message_data, '' AS created_at FROM n"
    )
    path = foreign.database(tmp_path / "view", endless)
    with pytest.raises(SessionUnreadable, match="is no session of a known format"):
        list(requests_of(path))


def test_a_database_is_never_written_and_its_newest_rows_count(tmp_path: Path) -> None:
    path = tmp_path / "live"
    script = (REQUESTS / "agents_sdk.sql").read_text()
    writer = apsw.Connection(str(path))
    writer.execute("PRAGMA journal_mode=WAL").fetchall()
    writer.execute("PRAGMA wal_autocheckpoint=0").fetchall()
    writer.execute(script)
    before = path.read_bytes()
    found = list(requests_of(path))
    assert [each.name for each in found] == ["shop", "plain"]
    assert path.read_bytes() == before
    writer.close()
