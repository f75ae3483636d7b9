"""The plan: items with a state, whole in every entry that changes it.

The last `PlanChanged` is the plan. A change of some items is made into a whole plan before it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shiftbook.entries import PlanItem, PlanState

PLAN_ITEMS_MAX = 200
ITEM_CHARS_MAX = 1_000

PLAN_WORDS: dict[str, PlanState] = {
    **dict.fromkeys(("open", "pending", "todo", "to do", "not started", "planned", "blocked"), "open"),
    **dict.fromkeys(("doing", "in progress", "active", "started", "current"), "doing"),
    **dict.fromkeys(("done", "completed", "complete", "finished", "closed"), "done"),
    **dict.fromkeys(("dropped", "cancelled", "canceled", "deleted", "skipped", "abandoned"), "dropped"),
}
"""What to-do tools and models call a state, in lower case with spaces, and which of ours it is."""


def plan_state(word: object) -> PlanState | None:
    """Our state for what somebody calls it; None for a word that nobody agreed on."""
    if not isinstance(word, str):
        return None
    return PLAN_WORDS.get(word.strip().lower().replace("_", " ").replace("-", " "))


def changed_plan(items: Sequence[PlanItem], changes: Iterable[PlanItem]) -> tuple[PlanItem, ...]:
    """The plan with these items changed where their id is known, else added at its end.

    An item without a text keeps the one that it has.
    """
    plan = {item.id: item for item in items}
    for change in changes:
        before = plan.get(change.id)
        text = change.text or (before.text if before is not None else "")
        plan[change.id] = PlanItem(change.id, text, change.state)
    return tuple(plan.values())
