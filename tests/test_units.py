"""Bytes are never told as tokens: not by the types, and not in a figure (K3)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import shiftbook
from shiftbook.entries import ModelAsked
from shiftbook.providers.scripted import Scripted, say
from shiftbook.run.book import read_entries
from shiftbook.views import run_figures

SNIPPET = """
from shiftbook.tokens import Tokens, bound, size

def spend(tokens: Tokens) -> None: ...

spend(bound("text"))
spend(size("text"))
"""


@pytest.mark.slow
def test_k3_a_type_checker_refuses_bytes_for_tokens(tmp_path: Path) -> None:
    path = tmp_path / "units.py"
    path.write_text(SNIPPET, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(path)], capture_output=True, text=True, check=False
    )
    errors = [line for line in done.stdout.splitlines() if "error" in line and "units.py" in line]
    assert len(errors) == 1, done.stdout
    assert 'incompatible type "Bytes"' in errors[0]


def test_k3_a_bound_in_bytes_is_named_so_and_is_not_reported_as_tokens() -> None:
    words = "An ordinary sentence of English words, which take several bytes for each token. " * 20
    agent = shiftbook.Agent(name="units", model=Scripted([say("Yes.")]))

    async def main() -> tuple[ModelAsked, int]:
        store = await shiftbook.open_store(":memory:")
        async with await shiftbook.start(store, agent, words) as run:
            await run.finish()
        asked = [e.what for e in await read_entries(store, run.id) if isinstance(e.what, ModelAsked)]
        figures = await run_figures(store, run.id)
        await store.close()
        told = figures["prompt_tokens"]["max"]
        assert told is not None
        return asked[0], told

    asked, told = asyncio.run(main())
    assert asked.meter == "bytes"
    assert asked.tokens >= len(words)
    assert told < asked.tokens / 2
