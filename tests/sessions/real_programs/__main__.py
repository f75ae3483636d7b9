"""`make real-programs`, that is `python -m tests.sessions.real_programs`: install, run, read, compare, print.

A figure that differs without a reason in the table of programs makes the exit code 1; a program that cannot
be run here is told and is no failure. `--keep` names a folder for the environments, so that the next run
installs nothing; without it everything is removed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.sessions.real_programs.figures import Figures, Found, of_files, of_server, unlike
from tests.sessions.real_programs.program import CannotRun, Program
from tests.sessions.real_programs.programs import PROGRAMS


def main() -> int:
    """Run the programs; the exit code is 0 when every difference has its reason."""
    ask = argparse.ArgumentParser(prog="python -m tests.sessions.real_programs", description=__doc__)
    ask.add_argument("--only", action="append", default=[], metavar="NAME", help="may be given again")
    ask.add_argument("--keep", type=Path, default=None, metavar="FOLDER", help="environments and files stay")
    ask.add_argument("--list", action="store_true", help="name the programs")
    given = ask.parse_args()
    known = {each.name: each for each in PROGRAMS}
    if given.list:
        print("\n".join(known))
        return 0
    if unknown := [name for name in given.only if name not in known]:
        ask.error(f"no program is called {unknown[0]!r}; there are: {', '.join(known)}")
    failed = 0
    with ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shiftbook-real")))
        for program in [known[name] for name in given.only] or PROGRAMS:
            failed += _tried(program, folder.resolve())
    print(f"\n{failed} with differences that nobody explained" if failed else "\nall as explained")
    return 1 if failed else 0


def _tried(program: Program, under: Path) -> int:
    """One program, told; 1 when a figure differs without a reason."""
    out = under / "files" / program.name
    try:
        exchanges = program.run(under, out)
        versions = program.versions(under)
    except CannotRun as fault:
        print(f"\n{program.name}: cannot be run here: {fault}")
        return 0
    counted = [each for each in exchanges if not program.aside(each)]
    truth = of_server(counted, program.kinds, program.compactions)
    found = of_files(out / program.measured)
    print(f"\n{program.name}: {', '.join(f'{name} {each}' for name, each in versions.items())}")
    if aside := len(exchanges) - len(counted):
        print(f"  {aside} requests of its own that it writes nowhere are left out")
    return _told(program, truth, found)


def _told(program: Program, truth: Figures, found: Found) -> int:
    print(f"  read as {', '.join(found.formats) or 'nothing'}; usage {', '.join(found.sources) or 'none'}")
    for what in sorted(set(found.broken)):
        print(f"  told as not read: {what}")
    differ = unlike(found.figures, truth)
    equal = [name for name in truth.__slots__ if getattr(truth, name) == getattr(found.figures, name)]
    print(f"  equal: {', '.join(f'{name} {getattr(truth, name)}' for name in equal)}")
    wrong = found.formats != (program.format,)
    for name, (ours, servers) in differ.items():
        reason = program.unequal.get(name)
        wrong = wrong or reason is None
        print(f"  {name}: ours {ours}, the server's {servers}: {reason or 'NOT EXPLAINED'}")
    for name in program.unequal:
        if name not in differ:
            wrong = True
            print(f"  {name} is equal after all: take its reason out of the table")
    sys.stdout.flush()
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
