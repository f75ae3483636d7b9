"""The limit: bare SQLite, one row of one kilobyte a commit, three commits a turn ("bare-3").

Every ratio is against this, measured between our own blocks in the same process, because the speed of a
disk changes from minute to minute.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

COMMITS_PER_TURN = 3


class Yardstick:
    """A bare database in WAL mode with synchronous FULL."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("pragma journal_mode=wal")
        self._db.execute("pragma synchronous=full")
        self._db.execute("create table t(a integer primary key, b blob)")
        self._row = b"x" * 1024

    def burst(self, turns: int) -> tuple[float, float]:
        """Commit as many rows as that many turns take; wall and CPU seconds."""
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(turns * COMMITS_PER_TURN):
            self._db.execute("insert into t(b) values (?)", (self._row,))
        return time.perf_counter() - wall, time.process_time() - cpu

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()
