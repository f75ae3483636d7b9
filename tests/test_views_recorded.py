"""Our own journal as rows of requests: as reported, estimated where nothing was reported, rebuilds marked."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

from shiftbook.journal.open import open_store
from shiftbook.rerun import Settings, rerun
from shiftbook.sessions import RecordedRequests, open_session, walk_requests
from shiftbook.views import RunFigures, run_figures
from shiftbook.views.recorded import MEASURED
from tests.rerun import recordings


def rerun_of(path: Path, session: Path, settings: Settings = Settings(policy="transcript")) -> RunFigures:
    async def work() -> RunFigures:
        store = await open_store(str(path))
        await rerun(store, open_session(session), settings, run="r1")
        figures = await run_figures(store, "r1")
        await store.close()
        return figures

    return asyncio.run(work())


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


def test_a_bound_in_bytes_is_never_taken_for_tokens(tmp_path: Path) -> None:
    tape = recordings.long().write(tmp_path / "tape.jsonl")
    figures = rerun_of(tmp_path / "book", tape, Settings(policy="window", cap=6_000))
    (found,) = walk_requests([tmp_path / "book"], MEASURED)
    assert isinstance(found, RecordedRequests)
    sizes = [row.usage.prompt or 0 for row in found.rows]
    assert max(sizes) == figures["prompt_tokens"]["max"]
    falls = sum(after < before for before, after in pairwise(sizes))
    assert 0 < falls <= len(found.marks)
