"""What holds for every test: no search has a deadline, and a failing search can be repeated.

A deadline would make a busy machine a failing test. `SHIFTBOOK_DEEP=1` searches ten times as deep. The
processes of one session share one PostgreSQL server, which is started when a test first needs it and ended
with the session.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import postgres

settings.register_profile(
    "house",
    deadline=None,
    print_blob=True,
    max_examples=1000 if os.environ.get("SHIFTBOOK_DEEP") else 100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")


WATCHER = pytest.StashKey[subprocess.Popen[bytes]]()
"""Ends the server when this session is over, and also when it is killed."""


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="shiftbook-tests")
        Path(folder).chmod(0o755)
        os.environ[postgres.FOLDER] = folder
        config.stash[WATCHER] = postgres.watched(Path(folder))


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        del os.environ[postgres.FOLDER]
        config.stash[WATCHER].communicate()
