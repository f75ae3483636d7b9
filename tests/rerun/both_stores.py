"""Every recorded session on SQLite and on PostgreSQL, byte for byte: python -m tests.rerun.both_stores

Each rerun under each policy: the entries' payloads and the prompts' digests must be equal. Prints a line for
each policy and ends with code 1 when a session differs. The data are those of `all_sessions` beside this.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

from shiftbook.entries import ModelAsked
from shiftbook.journal.open import open_store
from shiftbook.rerun import Settings, rerun
from shiftbook.run.book import read_entries
from shiftbook.sessions import Session, open_session
from shiftbook.testing.ground import read_all
from shiftbook.verify import verify
from tests import postgres
from tests.rerun.all_sessions import SETTINGS, claude_files, tau_sessions
from tests.rerun.data import CLAUDE, TAU

RUN = "bothstores"


async def differs(address: str, session: Session, settings: Settings) -> str:
    """What differs between the two reruns of a session, "" when nothing does."""
    told = []
    for place in (":memory:", address):
        store = await open_store(place)
        try:
            await rerun(store, session, settings, run=RUN)
            if not (await verify(store, RUN)).ok:
                return f"does not verify in {store.name}"
            rows = [(row.position, row.kind, row.payload) for row in await read_all(store, RUN)]
            entries = await read_entries(store, RUN)
            digests = [entry.what.digest for entry in entries if isinstance(entry.what, ModelAsked)]
            blobs: list[str] = []
            while page := await store.blobs.names(RUN, blobs[-1] if blobs else ""):
                blobs += page
            told.append((rows, digests, blobs))
        finally:
            await store.close()
    if told[0] == told[1]:
        return ""
    first = next((one[0] for one, two in zip(told[0][0], told[1][0], strict=False) if one != two), 0)
    return f"differs from entry {first} on"


def sessions() -> Iterator[tuple[str, Session]]:
    """All of them, by name."""
    for path in claude_files(CLAUDE):
        yield path.name, open_session(path)
    for number, session in enumerate(tau_sessions(TAU), start=1):
        yield f"tau-bench {number}", session


def main() -> int:
    """See the module."""
    bad = 0
    with postgres.session() as server:
        for settings in SETTINGS:
            count = 0
            for name, session in sessions():
                address = server.create()
                told = asyncio.run(differs(address, session, settings))
                server.drop(address)
                count += 1
                if told:
                    bad += 1
                    print(f"{settings.policy}, {name}: {told}", flush=True)
            print(f"{settings.policy}: {count} sessions on both stores", flush=True)
    print(f"sessions that differ: {bad}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
