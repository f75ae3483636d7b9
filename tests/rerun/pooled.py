"""The cached share of long recorded sessions under a policy: python -m tests.rerun.pooled --policy journal

The sessions of 100 requests and more are rerun; each of our own requests goes through the cache model of
economics, once as if nothing that was kept were ever lost ("no life") and once with the lives of five minutes
and of an hour, by the recorded clock. Prints a line for each session, and for all of them the share pooled
over tokens and the median of the medians.
"""

from __future__ import annotations

import argparse
import asyncio
from statistics import median_low

from shiftbook.economics.cache_request import Ttl
from shiftbook.journal.open import open_store
from shiftbook.policies import POLICIES
from shiftbook.rerun import Settings, rerun
from shiftbook.sessions import Session, open_session
from shiftbook.views import run_figures
from shiftbook.views.own_requests import OwnRequests
from tests.rerun.all_sessions import claude_files
from tests.rerun.data import CLAUDE

TTLS: tuple[Ttl | None, ...] = (None, "5m", "1h")
REQUESTS_MIN = 100


async def figures_of(session: Session, settings: Settings) -> tuple[int, int, list[tuple[int, int]]]:
    """The median and the greatest prompt, and by each life the tokens read and the tokens in all."""
    store = await open_store(f":memory:pooled {settings.policy} {session.source}")
    run = (await rerun(store, session, settings)).summary.run
    counts: list[tuple[int, int]] = []
    middle = most = 0
    for ttl in TTLS:
        own = OwnRequests(ttl)
        tokens = (await run_figures(store, run, own=own))["prompt_tokens"]
        middle, most = tokens["median"] or 0, tokens["max"] or 0
        counts.append((own.counted.read, own.counted.prompt))
    await store.close()
    return middle, most, counts


async def all_of(settings: Settings) -> None:
    """Every long session, and the sums."""
    print(
        f"{settings.policy}, cap {settings.cap:,}, mark {settings.mark}, fixed {settings.fixed}", flush=True
    )
    found = []
    for path in claude_files(CLAUDE):
        session = open_session(path)
        if session.requests_in_file >= REQUESTS_MIN:
            found.append(await figures_of(session, settings))
            middle, most, counts = found[-1]
            shares = " ".join(f"{read / of:.4f}" for read, of in counts)
            print(f"{path.name:<34} median {middle:>7,} max {most:>7,}  {shares}", flush=True)
    pooled = [tuple(map(sum, zip(*(counts[n] for _, _, counts in found), strict=True))) for n in range(3)]
    middles, mosts = [middle for middle, _, _ in found], [most for _, most, _ in found]
    told = ", ".join(
        f"{ttl or 'no'} life {read / of:.4f}" for ttl, (read, of) in zip(TTLS, pooled, strict=True)
    )
    print(
        f"{len(found)} sessions: median of medians {median_low(middles):,}, greatest {max(mosts):,}; "
        f"cached, pooled over tokens: {told}"
    )


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", choices=sorted(POLICIES), default="journal")
    parser.add_argument("--cap", type=int, default=40_000)
    parser.add_argument("--mark", type=int, default=16_000)
    parser.add_argument("--fixed", type=int, default=0)
    asked = parser.parse_args()
    asyncio.run(all_of(Settings(policy=asked.policy, cap=asked.cap, mark=asked.mark, fixed=asked.fixed)))


if __name__ == "__main__":
    main()
