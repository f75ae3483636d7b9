"""The policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shiftbook.errors import BadInput
from shiftbook.policies.journal import Journal
from shiftbook.policies.masking import Masking
from shiftbook.policies.notes import Notes
from shiftbook.policies.promise import Policy
from shiftbook.policies.transcript import Transcript
from shiftbook.policies.window import Window

POLICIES: Mapping[str, Callable[[], Policy]] = {
    "transcript": Transcript,
    "window": Window,
    "masking": Masking,
    "notes": Notes,
    "journal": Journal,
}
"""What makes a policy, by the name that an agent and the command line use."""


def policy_named(name: str) -> Policy:
    """The policy of that name; `BadInput` names those that there are."""
    if name not in POLICIES:
        raise BadInput(f"There is no policy {name!r}; choose one of: {', '.join(sorted(POLICIES))}.")
    return POLICIES[name]()
