"""A handful of recorded sessions through the live engine; `all_sessions` beside this drives them all."""

from __future__ import annotations

import asyncio

import pytest

from shiftbook.journal.open import open_store
from shiftbook.rerun import Settings
from shiftbook.sessions import open_session
from tests.journal.places import fresh_database
from tests.rerun.all_sessions import SETTINGS, Driven, drive
from tests.rerun.both_stores import differs
from tests.rerun.data import CLAUDE, SKIP_REASON, TAU

pytestmark = pytest.mark.skipif(not CLAUDE.is_dir(), reason=SKIP_REASON)

TRAJECTORIES = "gpt-4o-airline.trajectories.json.gz"
PINS = {
    ("entire-51-2577a596.jsonl.gz", None): (18, 17),
    ("entire-45-ae68c513.jsonl.gz", None): (30, 41),
    ("entire-29-533ff7a3.jsonl.gz", None): (138, 178),
    ("spotter-06-agent-af.jsonl.gz", None): (18, 48),
    (TRAJECTORIES, 3): (11, 7),
    (TRAJECTORIES, 200): (5, 2),
}
"""(file, number of the session in it) -> requests driven, which is all that the file holds, and actions."""


def driven(name: str, only: int | None, settings: Settings) -> Driven:
    folder = TAU if name == TRAJECTORIES else CLAUDE

    async def work() -> Driven:
        store = await open_store(":memory:")
        try:
            return await drive(store, open_session(folder / name, only), settings)
        finally:
            await store.close()

    return asyncio.run(work())


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: each.policy)
@pytest.mark.parametrize(("name", "only"), PINS)
def test_it_goes_through(name: str, only: int | None, settings: Settings) -> None:
    made = driven(name, only, settings)
    assert made.ok
    figures = made.figures
    assert (figures["turns"], figures["actions"]) == PINS[name, only]
    assert made.in_file == figures["turns"]
    assert (figures["cached_share"], figures["cost"]) == (None, None)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: each.policy)
@pytest.mark.parametrize(("name", "only"), [("entire-45-ae68c513.jsonl.gz", None), (TRAJECTORIES, 3)])
def test_p1_f6_both_stores_give_the_same_bytes(name: str, only: int | None, settings: Settings) -> None:
    session = open_session((TAU if name == TRAJECTORIES else CLAUDE) / name, only)
    with fresh_database() as address:
        assert asyncio.run(differs(address, session, settings)) == ""
