"""Claude Code: `claude -p` on one session, `/compact` in between, with the server in Anthropic's place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

URL, OUT = sys.argv[1], Path(sys.argv[2])


def main() -> None:
    work = OUT.parent / f"{OUT.name}.work"
    work.mkdir(exist_ok=True)
    env = {
        **os.environ,
        "ANTHROPIC_BASE_URL": URL,
        "CLAUDE_CONFIG_DIR": str(OUT),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    for words, more in (
        ("How deep is it?", []),
        ("And now?", ["--continue"]),
        ("/compact", ["--continue"]),
        ("So?", ["--continue"]),
        ("Why?", ["--continue", "--fork-session"]),
    ):
        line = [
            "claude",
            "-p",
            words,
            "--model",
            "claude-sonnet-4-5",
            "--allowedTools",
            "Bash,Task,Agent",
            *more,
        ]
        subprocess.run(line, cwd=work, env=env, check=True, stdin=subprocess.DEVNULL)


main()
