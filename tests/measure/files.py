"""Claude Code files written for tests: invented sessions whose counts are known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
MODEL = "claude-opus-4-5-20251101"


def reply(
    number: int, prompt: int, read: int, minute: float, *, output: int = 200, model: str = MODEL
) -> dict[str, Any]:
    """An assistant's line with its usage; what was not read was written for five minutes."""
    usage = {
        "input_tokens": 0,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": prompt - read,
        "cache_creation": {"ephemeral_5m_input_tokens": prompt - read, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
    }
    content = [{"type": "text", "text": f"Step {number} of the garden plan is done."}]
    return {
        "type": "assistant",
        "uuid": f"a{number}",
        "parentUuid": f"a{number - 1}" if number > 1 else "u0",
        "sessionId": "garden",
        "requestId": f"req{number}",
        "timestamp": (START + timedelta(minutes=minute)).isoformat(),
        "message": {
            "id": f"m{number}",
            "role": "assistant",
            "model": model,
            "content": content,
            "usage": usage,
        },
    }


def said(
    text: str | list[dict[str, Any]] = "Plan the garden.", minute: float = 0, **more: Any
) -> dict[str, Any]:
    """A person's line."""
    at = (START + timedelta(minutes=minute)).isoformat()
    message = {"role": "user", "content": text}
    uuid = more.pop("uuid", "u0")
    return {"type": "user", "uuid": uuid, "sessionId": "garden", "timestamp": at, "message": message, **more}


def growing(requests: int, *, fixed: int = 20_000, growth: int = 1_000) -> list[dict[str, Any]]:
    """A session that grows evenly, a request a minute, the cache always warm."""
    lines = [said()]
    for number in range(1, requests + 1):
        size = fixed + growth * number
        lines.append(reply(number, size, size - growth if number > 1 else 0, number))
    return lines


def write(file: Path, lines: Sequence[dict[str, Any] | str]) -> Path:
    """The file, a line each; a text stands in it as it is."""
    told = (each if isinstance(each, str) else json.dumps(each) for each in lines)
    file.write_text("".join(f"{each}\n" for each in told), encoding="utf-8")
    return file
