"""Foreign session files made at test time out of readable fixtures: databases and archives."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import apsw
from backports import zstd

REQUESTS = Path(__file__).parent / "fixtures" / "requests"


def database(path: Path, script: str) -> Path:
    """A database by an SQL script."""
    connection = apsw.Connection(str(path))
    connection.execute(script)
    connection.close()
    return path


def eval_archive(path: Path, members: Path = REQUESTS / "inspect") -> Path:
    """An Inspect log out of a folder with its members."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in sorted(members.rglob("*.json")):
            archive.write(member, str(member.relative_to(members)))
    return path


def zstandard_archive(path: Path, members: Path = REQUESTS / "inspect") -> Path:
    """The same log as newer versions of Inspect write it: compressed with Zstandard."""
    with zipfile.ZipFile(path, "w") as archive:
        for member in sorted(members.rglob("*.json")):
            data = member.read_bytes()
            # Two frames, as a writer that streams makes them.
            archive.writestr(
                str(member.relative_to(members)), zstd.compress(data[:50]) + zstd.compress(data[50:])
            )
            told = archive.filelist[-1]
            # Only the table at the end is asked for the method; Python's writer cannot say this one.
            told.compress_type, told.file_size, told.CRC = 93, len(data), zlib.crc32(data)
    return path


def checkpoints(path: Path, described: Path = REQUESTS / "langgraph.json") -> Path:
    """A LangGraph database out of a description of its rows."""
    told = json.loads(described.read_text())
    connection = apsw.Connection(str(path))
    connection.execute(
        "CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT,"
        " parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB);"
        "CREATE TABLE writes (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, task_id TEXT,"
        " idx INTEGER, channel TEXT, type TEXT, value BLOB)"
    )
    for row in told["checkpoints"]:
        connection.execute(
            "INSERT INTO checkpoints VALUES (?, ?, ?, NULL, ?, ?, NULL)",
            (row["thread"], row["space"], row["id"], row["type"], blob(row)),
        )
    for number, row in enumerate(told["writes"]):
        connection.execute(
            "INSERT INTO writes VALUES (?, ?, ?, 'task', ?, 'messages', ?, ?)",
            (row["thread"], row["space"], row["id"], number, row["type"], blob(row)),
        )
    connection.close()
    return path


def blob(row: dict[str, Any]) -> bytes:
    """A row's value in the form that its type says."""
    if row["type"] == "msgpack":
        return packed(row["value"])
    return json.dumps(row["value"]).encode()


def packed(value: Any) -> bytes:
    """MessagePack; {"$ext": kind, "of": value} is an extension that holds a packed value."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        if 0 <= value < 128:
            return struct.pack(">B", value)
        return b"\xd3" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    if isinstance(value, str):
        raw = value.encode()
        head = struct.pack(">B", 0xA0 | len(raw)) if len(raw) < 32 else b"\xdb" + struct.pack(">I", len(raw))
        return head + raw
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(packed, value))
    if "$ext" in value:
        data = packed(value["of"])
        return b"\xc9" + struct.pack(">I", len(data)) + struct.pack(">b", value["$ext"]) + data
    pairs = b"".join(packed(key) + packed(each) for key, each in value.items())
    return b"\xdf" + struct.pack(">I", len(value)) + pairs
