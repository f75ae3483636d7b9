"""A folder with agents, for the tests that run the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import agents


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    agents.write(tmp_path)
    return tmp_path
