"""Reproduce one death of the crash sweep: `python -m tests.crash SCENARIO AT`; see `tests.crash.points`."""

from __future__ import annotations

import sys

from tests.crash import points
from tests.crash.scenarios import SCENARIOS


def main(name: str, at: str) -> int:
    """Try the point and say what is broken; 0 when nothing is."""
    if name not in SCENARIOS:
        print(f"There is no scenario {name!r}; there are {', '.join(SCENARIOS)}.", file=sys.stderr)
        return 2
    try:
        number = int(at.partition("+")[0].partition(",")[0])
        violations = points.at_point(name, at)
    except (ValueError, KeyError) as error:
        print(f"AT={at!r} cannot be tried: {error}\n{points.__doc__}", file=sys.stderr)
        return 2
    print(f"{name}: {points.uncrashed(name).points[number - 1]}")
    for each in violations:
        print(f"  {each}")
    print("broken" if violations else "ok: nothing lost, nothing repeated")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
