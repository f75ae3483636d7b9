"""Harbor: another program is run as its own driver does, and Harbor writes its session down as ATIF."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harbor.agents.installed.claude_code import ClaudeCode
from harbor.agents.installed.codex import Codex
from harbor.models.agent.context import AgentContext

URL, OUT, PROGRAM = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
DRIVERS = {"codex": ("codex_exec.py", Codex), "claude": ("claude_code.py", ClaudeCode)}


def main() -> None:
    driver, agent = DRIVERS[PROGRAM]
    # Claude Code's files stand in a folder of this name where Harbor looks for them.
    run = OUT / "logs" / ("sessions" if PROGRAM == "claude" else "")
    run.mkdir(parents=True)
    subprocess.run([sys.executable, Path(__file__).with_name(driver), URL, str(run)], check=True)
    agent(logs_dir=OUT / "logs", model_name="any/any").populate_context_post_run(AgentContext())
    (OUT / "atif").mkdir()
    (OUT / "logs" / "trajectory.json").rename(OUT / "atif" / "trajectory.json")


main()
