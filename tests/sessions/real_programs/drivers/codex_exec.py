"""Codex: `codex exec`, then `codex exec resume`, with the server as a model provider of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

URL, OUT = sys.argv[1], Path(sys.argv[2])

CONFIG = f"""
model = "gpt-5.6"
model_provider = "loopback"
approval_policy = "never"
sandbox_mode = "danger-full-access"
model_auto_compact_token_limit = 8600

[model_providers.loopback]
name = "loopback"
base_url = "{URL}"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""


def main() -> None:
    (OUT / "config.toml").write_text(CONFIG)
    work = OUT.parent / f"{OUT.name}.work"
    work.mkdir(exist_ok=True)
    env = {**os.environ, "CODEX_HOME": str(OUT)}
    for command in (["exec", "How deep is it?"], ["exec", "resume", "--last", "And now?"]):
        line = ["codex", command[0], "--skip-git-repo-check", *command[1:]]
        subprocess.run(line, cwd=work, env=env, check=True, stdin=subprocess.DEVNULL)


main()
