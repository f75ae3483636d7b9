"""The guide's table of formats is the program's."""

from __future__ import annotations

import re
from pathlib import Path

from shiftbook.views.recorded import MEASURED

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "measure-formats.md"


def test_the_guide_lists_each_format_and_whether_it_can_be_driven() -> None:
    table = GUIDE.read_text().split("\n\n")[2]
    rows = [re.split(r"\s*\|\s*", line.strip("| ")) for line in table.splitlines()[2:]]
    listed = {row[0].strip("`"): row[-1] for row in rows}
    assert set(listed) == {known.name for known in MEASURED}
    driven = {name for name, said in listed.items() if said in ("yes", "items")}
    assert driven == {known.name for known in MEASURED if known.sessions is not None}
