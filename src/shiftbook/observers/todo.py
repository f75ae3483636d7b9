"""A to-do tool's list is the plan.

Read from the call's arguments, where such tools take the whole list, else from the result. Known are the
shapes of the common ones: a list under `todos`, `plan`, `items` or `tasks`, of items with a text and a state
in one of the usual words. A list that does not have this shape is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shiftbook.entries import PlanChanged, PlanItem
from shiftbook.messages import Json
from shiftbook.observers.promise import Noticed, Observed
from shiftbook.projections.knowledge import Knowledge
from shiftbook.projections.plan import ITEM_CHARS_MAX, PLAN_ITEMS_MAX, plan_state

TODO_TOOLS = ("TodoWrite", "todo_write", "todowrite", "write_todos", "update_plan", "set_plan")
LISTS = ("todos", "plan", "items", "tasks")
TEXTS = ("content", "text", "step", "title", "task", "description")
STATES = ("status", "state")


@dataclass(frozen=True, slots=True)
class ToDo:
    """The observer for the to-do tools of these names."""

    tools: Sequence[str] = TODO_TOOLS

    def __call__(self, done: Observed, known: Knowledge, /) -> Iterator[Noticed]:
        """One `PlanChanged` when the call carries a list."""
        if done.tool not in self.tools:
            return
        for given in (done.arguments, done.value):
            items = plan_of(given)
            if items is not None:
                yield PlanChanged(items, "observer", (done.position,))
                return


def plan_of(given: Json) -> tuple[PlanItem, ...] | None:
    """The plan in a to-do tool's list; None when there is none of a known shape."""
    listed = given
    if isinstance(given, Mapping):
        listed = next((given[name] for name in LISTS if isinstance(given.get(name), list)), None)
    if not isinstance(listed, list) or len(listed) > PLAN_ITEMS_MAX:
        return None
    items: list[PlanItem] = []
    for number, each in enumerate(listed, 1):
        item = _item(each, str(number))
        if item is None:
            return None
        items.append(item)
    return tuple(items)


def _item(each: Json, number: str) -> PlanItem | None:
    if not isinstance(each, Mapping):
        return None
    text = next((each[name] for name in TEXTS if isinstance(each.get(name), str)), None)
    state = next((plan_state(each[name]) for name in STATES if name in each), None)
    if text is None or state is None:
        return None
    return PlanItem(number, text[:ITEM_CHARS_MAX], state)
