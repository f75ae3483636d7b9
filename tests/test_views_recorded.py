"""Our own journal as rows of requests: as reported, estimated where nothing was reported, rebuilds marked."""

from __future__ import annotations

import asyncio
from pathlib import Path

from shiftbook.journal.open import open_store
from shiftbook.rerun import Settings, rerun
from shiftbook.sessions import RecordedRequests, open_session, walk_requests
from shiftbook.views.recorded import MEASURED
from tests.rerun import recordings


def rerun_of(path: Path, session: Path) -> None:
    async def work() -> None:
        store = await open_store(str(path))
        await rerun(store, open_session(session), Settings(policy="transcript"), run="r1")
        await store.close()

    asyncio.run(work())


def test_a_run_is_a_session_with_a_row_a_request(tmp_path: Path) -> None:
    tape = recordings.tangled().write(tmp_path / "tape.jsonl")
    rerun_of(tmp_path / "book", tape)
    before = (tmp_path / "book").read_bytes()
    (found,) = walk_requests([tmp_path / "book"], MEASURED)
    assert isinstance(found, RecordedRequests)
    assert (found.format, found.name) == ("shiftbook", "r1")
    assert len(found.rows) == len(open_session(tape).replies)
    assert {row.source for row in found.rows} == {"estimated"}
    prompts = [row.usage.prompt or 0 for row in found.rows]
    assert prompts == sorted(prompts)
    assert all(prompts)
    assert [row.request for row in found.rows][:2] == ["r1/1", "r1/2"]
    assert (tmp_path / "book").read_bytes() == before
