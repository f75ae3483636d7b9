"""A long shift with recall on both stores, byte for byte; invented, so that it runs everywhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from shiftbook.entries import EpochOpened, Recalled
from shiftbook.journal.open import open_store
from shiftbook.rerun import Settings
from shiftbook.run.book import read_entries
from shiftbook.sessions import open_session
from tests.journal.places import fresh_database
from tests.rerun import recordings
from tests.rerun.both_stores import RUN, differs


@pytest.mark.parametrize("cap", [6_000, 12_000])
def test_p1_what_is_recalled_is_the_same_on_both_stores(tmp_path: Path, cap: int) -> None:
    session = open_session(recordings.talk().write(tmp_path / "talk.jsonl"))

    async def recalled(address: str) -> tuple[set[str], int]:
        store = await open_store(address)
        whats = [entry.what for entry in await read_entries(store, RUN)]
        await store.close()
        back = {each.asked_by for each in whats if isinstance(each, Recalled) and each.found}
        return back, sum(isinstance(each, EpochOpened) for each in whats)

    with fresh_database() as address:
        settings = Settings(policy="journal", cap=cap, mark=cap // 2)
        assert asyncio.run(differs(address, session, settings)) == ""
        back, epochs = asyncio.run(recalled(address))
    assert {"message", "rebuild"} <= back
    assert epochs > 3
