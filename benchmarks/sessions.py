"""How fast and in how much memory sessions are read; `python -m benchmarks.sessions [--mb N]`.

Made-up Claude Code files of about 8 MB are written to a temporary folder and walked in a process of its own.
Two mixes: "whole", a session as the tool writes it (each tool result stands in the message and again in
`toolUseResult`, half the lines of a request repeat its usage, a snapshot line now and then), and "slim", the
same without the second copy and the snapshots. Texts are code-like: quotes, newlines, some letters beyond
ASCII. Printed: megabytes a second of CPU time (a core's), the peak of memory over bare Python with the same
imports, for a tenth of the files and for all: flat means that the two are near each other.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from shiftbook.sessions import RecordedRequests, walk_requests

FILE_BYTES = 8_000_000
ROUNDS = 3
MIXES = ("whole", "slim")


def main() -> int:
    """Write the files and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sessions", description=__doc__)
    parser.add_argument("--mb", type=int, default=200, help="megabytes of a mix (default 200)")
    parser.add_argument("--walk", metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--files", type=int, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.walk:
        print(json.dumps(walked(Path(arguments.walk), arguments.files)))
        return 0
    for mix in MIXES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            files = max(10, arguments.mb * 1_000_000 // FILE_BYTES)
            for number in range(files):
                written(folder / f"{number:05d}.jsonl", number, mix)
            tenth, whole = (in_child(folder, count) for count in (files // 10, files))
            print(
                json.dumps(
                    {
                        "mix": mix,
                        "mb": round(whole["bytes"] / 1e6),
                        "requests": whole["requests"],
                        "mb_per_cpu_second": round(whole["bytes"] / 1e6 / whole["cpu_s"], 1),
                        "json_loads_mb_per_cpu_second": round(whole["bytes"] / 1e6 / whole["json_s"], 1),
                        "peak_mib_over_imports": {
                            "tenth": round(tenth["peak_kib"] / 1024, 1),
                            "all": round(whole["peak_kib"] / 1024, 1),
                        },
                    }
                ),
                flush=True,
            )
    return 0


def in_child(folder: Path, files: int) -> dict[str, Any]:
    """The walk in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.sessions", "--walk", str(folder), "--files", str(files)]
    told: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return told


def walked(folder: Path, files: int) -> dict[str, float | int]:
    """Walk the first files of a folder; memory is the peak above what the imports took."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    paths = sorted(folder.iterdir())[:files]
    times: list[float] = []
    requests = 0
    for _ in range(ROUNDS):
        began, requests = time.process_time(), 0
        for found in walk_requests(paths):
            assert isinstance(found, RecordedRequests)
            requests += len(found.rows)
        times.append(time.process_time() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    began = time.process_time()
    for path in paths:
        with path.open("rb") as file:
            for line in file:
                json.loads(line)
    return {
        "bytes": sum(path.stat().st_size for path in paths),
        "cpu_s": min(times),
        "json_s": time.process_time() - began,
        "requests": requests,
        "peak_kib": peak,
    }


def written(path: Path, seed: int, mix: str) -> None:
    """One session of about FILE_BYTES."""
    size = 0
    with path.open("w", encoding="utf-8") as file:
        for line in _lines(Random(seed), seed, mix):
            text = json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
            size += len(text)
            file.write(text)
            if size > FILE_BYTES:
                return


def _lines(random: Random, seed: int, mix: str) -> Iterator[dict[str, Any]]:
    session, parent, number, prompt = f"session-{seed}", None, 0, 20_000
    while True:
        number += 1
        usage = {
            "input_tokens": 4,
            "cache_creation_input_tokens": 900,
            "cache_read_input_tokens": prompt,
            "cache_creation": {"ephemeral_5m_input_tokens": 900, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 300,
            "service_tier": "standard",
        }
        prompt += 900
        call = f"toolu_{seed}_{number}"
        blocks: list[dict[str, Any]] = [{"type": "text", "text": _code(random, 300)}]
        blocks.append(
            {"type": "tool_use", "id": call, "name": "Edit", "input": {"new_string": _code(random, 1500)}}
        )
        for part, block in enumerate(blocks):
            message = {
                "id": f"msg_{seed}_{number}",
                "type": "message",
                "role": "assistant",
                "model": "claude-invented-1",
                "content": [block],
                "stop_reason": None,
                "usage": usage,
            }
            yield _line(session, parent, f"a{seed}-{number}-{part}", "assistant", message, number) | {
                "requestId": f"req_{seed}_{number}"
            }
            parent = f"a{seed}-{number}-{part}"
        result = _code(random, 5_000)
        said = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": result}]}
        line = _line(session, parent, f"u{seed}-{number}", "user", said, number)
        yield line | ({"toolUseResult": {"file": result, "lines": 120}} if mix == "whole" else {})
        parent = f"u{seed}-{number}"
        if mix == "whole" and number % 10 == 0:
            yield {"type": "file-history-snapshot", "messageId": parent, "snapshot": {"kept": result}}


def _line(
    session: str, parent: str | None, uuid: str, kind: str, message: dict[str, Any], number: int
) -> dict[str, Any]:
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/you/project",
        "sessionId": session,
        "version": "2.1.17",
        "gitBranch": "main",
        "type": kind,
        "message": message,
        "uuid": uuid,
        "timestamp": f"2026-05-{1 + number // 1440 % 28:02d}T{number // 60 % 24:02d}:{number % 60:02d}:00Z",
    }


def _code(random: Random, letters: int) -> str:
    words = []
    size = 0
    while size < letters:
        word = random.choice(
            ('    if value == "ready":\n', "return total\n", "naïve ", "the count of lanterns ", "x = 1\n")
        )
        words.append(word)
        size += len(word)
    return "".join(words)


if __name__ == "__main__":
    sys.exit(main())
