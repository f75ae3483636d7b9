"""Counts of session files by a few lines that share nothing with the readers: the other side of the pins.

`python tests/sessions/count_by_hand.py FILE...` prints, for each Claude Code file, requests in the file,
requests driven, texts of a person, notices, calls without an answer; for tau-bench trajectories the
totals over all runs: runs, requests, texts, notices, calls without an answer.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

NOT_A_PERSON = re.compile(
    r"<(command-|bash-|local-command-|task-notification>|system-reminder>|ide_)"
    r"|\[Request interrupted by user[^]]*]$|Operation stopped by hook:"
)


def claude(path: Path) -> tuple[int, int, int, int, int]:
    """Requests in the file, driven, texts, notices, calls without an answer."""
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    spoken = [row for row in rows if row["type"] in ("user", "assistant")]
    real = [row for row in spoken if row["message"].get("model") != "<synthetic>"]
    main = [row for row in real if not row.get("isSidechain")] or real
    texts: Counter[bool] = Counter()
    open_calls: Counter[str] = Counter()
    for row in main:
        content = row["message"]["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_use":
                open_calls[block["id"]] += 1
            elif block["type"] == "tool_result":
                open_calls[block["tool_use_id"]] -= 1
            elif row["type"] == "user":
                marked = row.get("isMeta") or row.get("isCompactSummary")
                texts[bool(marked or NOT_A_PERSON.match(block["text"]))] += 1
    requests, driven = (
        len({row["message"]["id"] for row in some if row["type"] == "assistant"}) for some in (real, main)
    )
    return requests, driven, texts[False], texts[True], sum(open_calls.values())


def tau(path: Path) -> tuple[int, int, int, int, int]:
    """Runs, requests, texts, notices, calls without an answer, over the whole file."""
    runs = json.loads(gzip.decompress(path.read_bytes()))
    messages = [message for run in runs for message in run["traj"]]
    roles = Counter(message["role"] for message in messages)
    calls = sum(len(message.get("tool_calls") or []) for message in messages)
    return len(runs), roles["assistant"], roles["user"], 0, calls - roles["tool"]


if __name__ == "__main__":
    for given in map(Path, sys.argv[1:]):
        print(f'    "{given.name}":', f"{(claude if 'jsonl' in given.name else tau)(given)},")
