"""Sums of session files by a few lines that share nothing with the readers: the other side of the pins.

`python tests/sessions/sum_by_hand.py FILE...` prints for each Claude Code file: requests, prompt tokens,
tokens read from the cache, tokens written to it, output tokens; for a SWE-agent trajectory: replies, and
the tokens that its own totals say were sent.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any


def claude(path: Path) -> tuple[int, int, int, int, int]:
    """Requests, and sums of prompt, cache read, cache write and output over the last usage of each."""
    last: dict[str, dict[str, int]] = {}
    for line in gzip.decompress(path.read_bytes()).splitlines():
        message = json.loads(line).get("message") or {}
        if message.get("role") == "assistant" and message["model"] != "<synthetic>":
            last[message["id"]] = message["usage"]
    read, written, bare, output = (
        sum(usage[key] for usage in last.values())
        for key in (
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
            "input_tokens",
            "output_tokens",
        )
    )
    return len(last), bare + read + written, read, written, output


def swe_agent(path: Path) -> tuple[int, int]:
    """Replies of the history that were asked for, and the recorded tokens sent (0: not recorded)."""
    told: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    replies = [
        entry for entry in told["history"] if entry["role"] == "assistant" and not entry.get("is_demo")
    ]
    return len(replies), told.get("info", {}).get("model_stats", {}).get("tokens_sent", 0)


if __name__ == "__main__":
    for given in map(Path, sys.argv[1:]):
        print(f'    "{given.name}":', f"{(claude if 'jsonl' in given.name else swe_agent)(given)},")
