"""Wrong values in an author's declarations: refused where they are written, in one sentence."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest

import shiftbook
from shiftbook.errors import AgentMistake, BadInput
from shiftbook.journal.admission import TAG_MAX
from shiftbook.providers.scripted import Scripted, say

ODD: tuple[Any, ...] = (
    None,
    -1,
    0,
    float("nan"),
    True,
    "x",
    b"x",
    [],
    ["a"],
    {},
    {1: 2},
    object(),
    len,
    2**80,
)
REFUSED = {
    "name": (None, -1, b"x", []),
    "model": (None, "gpt", len),
    "instructions": (None, 5, b"x"),
    "fallback": (None, "x", 5, ["gpt"]),
    "tools": (None, "x", 5, len),
    "toolboxes": (None, "x", 5),
    "observers": (None, "x", len),
    "rules": (None, [], "x", {1: "x"}, {"x": 1}),
    "policy": (None, "journals", [], 5),
    "report": (None, "x", 5),
    "report_window": (None, 0, -1, float("nan"), "5", True),
    "cap": (None, 0, -1, float("nan"), 1.5, "5", True),
    "mark": (0, -1, float("nan"), "5", 10**9),
    "fixed": (None, -1, float("nan"), "5"),
    "recall_point": (-1, float("nan"), "5"),
    "recall_set": (-1, "5"),
    "book_tools": ("nothing", 5, ["nothing"]),
    "parameters": (None, [], "x"),
    "limits": (None, {}, 5),
    "redact": (5, "x"),
    "reference": (None, 5),
}


def agent(**parts: Any) -> shiftbook.Agent:
    return shiftbook.Agent(**{"name": "shop", "model": Scripted([say("Hi")]), **parts})


@pytest.mark.parametrize(("part", "value"), [(name, each) for name, many in REFUSED.items() for each in many])
def test_a_part_of_the_wrong_shape(part: str, value: object) -> None:
    with pytest.raises((AgentMistake, BadInput)) as refused:
        agent(**{part: value})
    assert str(refused.value).endswith(".")
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("part", [each.name for each in fields(shiftbook.Agent) if each.init])
def test_no_value_of_a_part_ends_in_another_error(part: str) -> None:
    for value in ODD:
        with suppress(shiftbook.ShiftbookError):
            agent(**{part: value})


@pytest.mark.parametrize("limit", [each.name for each in fields(shiftbook.Limits)])
@pytest.mark.parametrize("value", [-1, float("nan"), "5", True, 1.5])
def test_a_limit_is_a_whole_number(limit: str, value: Any) -> None:
    with pytest.raises(AgentMistake, match=limit):
        shiftbook.Limits(**{limit: value})


def test_the_bounds_of_a_wait_stand_in_order() -> None:
    with pytest.raises(AgentMistake, match="retry_ms_max"):
        shiftbook.Limits(retry_ms_min=10, retry_ms_max=9)


@pytest.mark.parametrize("script", [None, 5, "Hi", b"Hi", {}])
def test_a_script_is_a_list_of_replies(script: Any) -> None:
    with pytest.raises(AgentMistake, match="script"):
        Scripted(script)


@pytest.mark.parametrize(
    "tags", ["blue", None, 5, [None], [5], [""], [" "], ["a\0b"], ["a\nb"], ["\ud800"], ["x" * (TAG_MAX + 1)]]
)
def test_a_tag_that_no_table_could_hold(tags: Any) -> None:
    async def begin() -> list[str]:
        store = await shiftbook.open_store(":memory:")
        with pytest.raises(BadInput, match=r"[Tt]ag"):
            await shiftbook.start(store, agent(), "Hi", tags=tags)
        rows = await store.catalogue.runs()
        await store.close()
        return [row.run for row in rows]

    assert asyncio.run(begin()) == []


def test_an_empty_run_id_is_not_a_made_up_one() -> None:
    async def begin() -> None:
        store = await shiftbook.open_store(":memory:")
        with pytest.raises(BadInput, match="run id"):
            await shiftbook.start(store, agent(), "Hi", run="")
        await store.close()

    asyncio.run(begin())
