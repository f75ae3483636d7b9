"""mini-SWE-agent: one task with its own configuration, without a person."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

URL, OUT, MODEL = sys.argv[1], Path(sys.argv[2]), sys.argv[3]

TASK = "The harbour master answers in one line. " * 200 + "How deep is it?"


def main() -> None:
    work = OUT.parent / f"{OUT.name}.work"
    work.mkdir(exist_ok=True)
    env = {
        **os.environ,
        "OPENAI_API_BASE": URL,
        "MSWEA_CONFIGURED": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "MSWEA_SILENT_STARTUP": "1",
    }
    line = [
        "mini",
        "-m",
        "openai/gpt-5.1",
        "-t",
        TASK,
        "-y",
        "--exit-immediately",
        "--model-class",
        MODEL,
    ]
    subprocess.run([*line, "-o", str(OUT / "run.traj.json")], cwd=work, env=env, check=True)


main()
