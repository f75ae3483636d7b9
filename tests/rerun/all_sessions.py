"""Every recorded session through the live engine: python -m tests.rerun.all_sessions [--data FOLDER]

The 29 Claude Code sessions and the 200 tau-bench runs of the data folder, once under `transcript` with a cap
that holds them whole, then under every other policy with a small one. Prints a line for each session, one
for all tau-bench runs, and ends with code 1 when one did not finish, left a recorded reply out, passed its
cap, or does not verify. The folder is `--data`, SHIFTBOOK_DATA, or `shared/data` beside the checkout.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shiftbook.clock import SystemClock
from shiftbook.journal.open import open_store
from shiftbook.journal.promises import Store
from shiftbook.rerun import Settings, rerun
from shiftbook.sessions import Session, each_session, open_session
from shiftbook.verify import verify
from shiftbook.views import RunFigures, run_figures
from tests.rerun.data import CLAUDE, TAU

SETTINGS = (
    Settings(policy="transcript", cap=1_000_000),
    Settings(policy="window", cap=40_000),
    Settings(policy="masking", cap=40_000, mark=16_000),
    Settings(policy="notes", cap=40_000, mark=16_000),
    Settings(policy="journal", cap=40_000, mark=16_000),
)


@dataclass(frozen=True)
class Driven:
    """A session that went through."""

    figures: RunFigures
    in_file: int
    seconds: float
    ok: bool


async def drive(store: Store, session: Session, settings: Settings) -> Driven:
    """Rerun a session and check what came of it."""
    clock = SystemClock()
    begun = clock.steady_ms()
    made = await rerun(store, session, settings)
    seconds = (clock.steady_ms() - begun) / 1000
    figures = await run_figures(store, made.summary.run)
    most = figures["prompt_tokens"]["max"] or 0
    verdict = await verify(store, made.summary.run)
    ok = (
        verdict.ok
        and figures["state"] == "finished"
        and figures["repeated"] == 0
        and figures["turns"] == len(session.replies)
        and most <= settings.cap
    )
    return Driven(figures, session.requests_in_file, seconds, ok)


def told(name: str, driven: Driven) -> str:
    """A line of the table."""
    figures, tokens = driven.figures, driven.figures["prompt_tokens"]
    return (
        f"{name:<34} {figures['turns']:>4}/{driven.in_file:<4} {figures['actions']:>4} actions  "
        f"median {tokens['median'] or 0:>7,} max {tokens['max'] or 0:>7,}  {driven.seconds:6.2f} s  "
        f"{'ok' if driven.ok else 'NOT AS IT SHOULD BE: ' + figures['state']}"
    )


def tau_sessions(folder: Path) -> Iterator[Session]:
    """The tau-bench runs of all its files."""
    for path in sorted(folder.glob("*trajectories*")):
        yield from each_session(path)


def claude_files(folder: Path) -> Iterator[Path]:
    """The Claude Code sessions, by name."""
    return iter(sorted(folder.glob("*.jsonl.gz")))


async def all_of(claude: Path, tau: Path, settings: Settings, db: Path) -> bool:
    """Drive everything under one setting."""
    print(f"\n{settings.policy}, cap {settings.cap:,}, fixed {settings.fixed}")
    store = await open_store(str(db))
    fine = True
    for path in claude_files(claude):
        driven = await drive(store, open_session(path), settings)
        fine = fine and driven.ok
        print(told(path.name, driven), flush=True)
    runs = [await drive(store, session, settings) for session in tau_sessions(tau)]
    bad = [number for number, driven in enumerate(runs, 1) if not driven.ok]
    turns, seconds = sum(each.figures["turns"] for each in runs), sum(each.seconds for each in runs)
    most = max((each.figures["prompt_tokens"]["max"] or 0 for each in runs), default=0)
    print(f"tau-bench: {len(runs)} runs, {turns:,} turns, max {most:,} tokens, {seconds:.1f} s")
    print(f"tau-bench runs that are not as they should be: {bad or 'none'}")
    await store.close()
    return fine and not bad


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    data: Path | None = parser.parse_args().data
    claude, tau = (CLAUDE, TAU) if data is None else (data / CLAUDE.name, data / TAU.name)
    with tempfile.TemporaryDirectory() as folder:
        fine = [
            asyncio.run(all_of(claude, tau, settings, Path(folder) / f"{settings.policy}.db"))
            for settings in SETTINGS
        ]
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
