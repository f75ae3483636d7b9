"""What the measures run in a process of its own: `grow PATH TURNS` and `resume PATH POLICY CAP`."""

from __future__ import annotations

import asyncio
import sys

from benchmarks.figures import ask_once, grow

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["grow", path, count]:
            asyncio.run(grow(path, int(count), "window", 40_000))
        case ["resume", path, policy, cap]:
            print(asyncio.run(ask_once(path, policy, int(cap))))
        case _:
            sys.exit(__doc__)
