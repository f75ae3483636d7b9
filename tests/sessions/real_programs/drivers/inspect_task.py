"""Inspect: a task of two samples with tools and a model that grades, once as `.eval` and once as JSON."""

from __future__ import annotations

import sys
from pathlib import Path

import inspect_ai
from inspect_ai.agent import as_tool, react
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import model_graded_fact
from inspect_ai.tool import Tool, tool

URL, OUT, VENDOR = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
RULES = "The harbour master answers in one line. " * 200
MODELS = {"openai": "openai/gpt-5.1", "anthropic": "anthropic/claude-sonnet-4-5"}


@tool
def sound() -> Tool:
    async def execute(pier: str) -> str:
        """The depth at a pier.

        Args:
            pier: Which one.
        """
        return f"9 m at {pier}"

    return execute


def main() -> None:
    model = get_model(MODELS[VENDOR], base_url=URL, max_retries=0)
    diver = react(name="diver", description="Looks at the ground.", prompt=RULES, tools=[sound()])
    harbour = react(name="harbour", prompt=RULES, tools=[sound(), as_tool(diver)])
    task = inspect_ai.Task(
        dataset=[
            Sample("How deep?", target="9 m", id="first"),
            Sample("And now?", target="9 m", id="second"),
        ],
        solver=harbour,
        scorer=model_graded_fact(model=model),
    )
    kind = sys.argv[4]
    logs = inspect_ai.eval(
        task, model=model, log_dir=str(OUT), log_format=kind, max_samples=1, display="none"
    )
    assert logs[0].status == "success", str(logs[0].error)[:300]


main()
