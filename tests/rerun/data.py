"""Where the recorded sessions lie, which are no part of the project; without them, tests skip loudly."""

from __future__ import annotations

import os
from pathlib import Path

DATA = Path(os.environ.get("SHIFTBOOK_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
CLAUDE, TAU = DATA / "claude-code-sessions", DATA / "tau-bench"
SKIP_REASON = f"NOT TESTED ON RECORDED SESSIONS: {CLAUDE} is not there; set SHIFTBOOK_DATA to the data folder"
