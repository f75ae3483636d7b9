"""A report's request is valid for every vendor, and nearly all of it comes from the vendor's cache."""

from __future__ import annotations

import pytest

from tests.providers.report_shares import measure
from tests.providers.wires import WIRES, Wire


@pytest.mark.parametrize(("turns", "cap"), [(120, 20_000), (45, 6_000)])
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_i3_i4_the_report_reads_nine_tenths_of_its_prompt_from_the_cache(
    wire: Wire, turns: int, cap: int
) -> None:
    """A2, J1: the vendor's rules refuse none of the requests, reasoning on its prefix included."""
    found = measure(wire, turns, cap)
    assert found.refused == ()
    assert found.requests >= 2
    assert found.least >= 0.9
