"""A long run's prompts come from the vendor's cache, whatever the number of calls, in a new process too.

60 turns here; `make cache-shares` runs 300 (2026-11: 99.4%, 99.3% and 99.3% with 1, 5 and 25 calls a turn).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.providers.shares import WIDTHS, measure
from tests.providers.wires import ANTHROPIC


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_i6_at_least_95_percent_of_a_long_run_is_read_from_the_cache(width: int, tmp_path: Path) -> None:
    found = measure(ANTHROPIC, 60, width, tmp_path / "book.db")
    assert found.whole >= 0.95, str(found)
    assert found.resumed >= 0.95, str(found)
    assert found.carried == 1.0, "the new process sends the same bytes, so all of the prompt before is read"
