"""The decorator keeps the function's signature for type checkers, and they refuse what `tool` refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SNIPPET = """\
from collections.abc import Coroutine
from typing import Any, assert_type

from shiftbook.tools.contract import DidNotHappen, Tool
from shiftbook.tools.function import tool


@tool(repeat="safe")
def count(place: str, *, deep: bool = False) -> int:
    return len(place) + deep


@tool(repeat="reconcile", reconcile=DidNotHappen, timeout_s=5)
async def order(part: str) -> list[str]:
    return [part]


assert_type(count("A", deep=True), int)
ordering: Coroutine[Any, Any, list[str]] = order("bolt")
tools: list[Tool] = [count, order]
count(3)  # refused: type
count("A", wide=True)  # refused: unknown argument
tool(lambda: None)  # refused: no repeat policy
tool(repeat="often")  # refused: no choice
tool(repeat="reconcile")  # refused: nothing to ask
tool(repeat="safe", reconcile=DidNotHappen)  # refused: nothing to reconcile
"""


@pytest.mark.slow
@pytest.mark.parametrize("checker", [["mypy", "--strict"], ["pyright"]], ids=["mypy", "pyright"])
def test_type_checkers_see_the_function_behind_the_tool(checker, tmp_path):
    path = tmp_path / "snippet.py"
    path.write_text(SNIPPET)
    refused = {number for number, line in enumerate(SNIPPET.splitlines(), 1) if "# refused" in line}
    command = [sys.executable, "-m", *checker, str(path)]
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    told = re.findall(r"snippet\.py:(\d+)(?::\d+)?(?: -)?:? error", done.stdout)
    assert {int(number) for number in told} == refused, done.stdout + done.stderr
