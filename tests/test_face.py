"""The face: what users import is what `__all__` says, and it is typed for them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import shiftbook
from shiftbook import errors

ROOT = Path(__file__).parent.parent


def test_all_is_what_is_exposed() -> None:
    exposed = {
        name
        for name, value in vars(shiftbook).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert exposed | {"__version__"} == set(shiftbook.__all__)
    assert list(shiftbook.__all__) == sorted(shiftbook.__all__)


def test_every_error_hangs_on_one_tree_and_most_are_exported() -> None:
    own = [value for value in vars(errors).values() if isinstance(value, type)]
    assert all(issubclass(error, shiftbook.ShiftbookError) for error in own)
    assert {error.__name__ for error in own} <= set(shiftbook.__all__)


def test_the_tree_in_the_docstring_names_every_error() -> None:
    drawn = errors.__doc__ or ""
    own = [name for name, value in vars(errors).items() if isinstance(value, type)]
    assert [name for name in own if name not in drawn] == []


def test_importing_leaves_the_heavy_parts_alone() -> None:
    code = "import sys, shiftbook; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    names = {name.partition(".")[0] for name in loaded.stdout.split()}
    heavy = {"pydantic", "typer", "rich", "anthropic", "openai", "httpx", "bpe_openai", "genai_prices", "mcp"}
    assert names & heavy == set()


@pytest.mark.slow
def test_the_example_is_typed_for_two_checkers() -> None:
    example = str(ROOT / "examples" / "shop.py")
    for checker in (["mypy", "--strict"], ["pyright"]):
        done = subprocess.run(
            [sys.executable, "-m", *checker, example], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout
