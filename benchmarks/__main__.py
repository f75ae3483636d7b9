"""`make bench`: what a turn costs here, against the bare database in the same run.

Prints a table a measure and, with --json, one object. The ratios are the figures; milliseconds belong to
the machine of the day. --long adds 100,000 turns.
"""

from __future__ import annotations

import argparse
import json
import sys

from benchmarks import figures


def main() -> int:
    """Run the measures that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=", ".join(figures.MEASURES))
    parser.add_argument("--long", action="store_true", help="up to 100,000 turns and the many-runs measure")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    unknown = set(arguments.measures) - set(figures.MEASURES)
    if unknown:
        print(
            f"There is no measure {min(unknown)!r}: take of {', '.join(figures.MEASURES)}.",
            file=sys.stderr,
        )
        return 2
    results = {}
    for name, measure in figures.MEASURES.items():
        if arguments.measures and name not in arguments.measures:
            continue
        if name == "many" and not arguments.long and name not in arguments.measures:
            continue
        print(f"# {name}: {measure.__doc__}", file=sys.stderr)
        results[name] = measure(arguments.long)
        if not arguments.json:
            print(json.dumps(results[name], indent=1))
    if arguments.json:
        print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
